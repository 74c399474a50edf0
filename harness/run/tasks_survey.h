/* What the images of all tasks show, looked at before the first step: digests of what a run computes from, and images
 * that cannot be decoded, told before anything is trained.
 *
 *     TRY(tasks_survey(experiment, &surveyor, error));
 *     … experiment->tasks[k].survey.splits[SPLIT_TEST].digest …
 */
#ifndef MTIL_HARNESS_RUN_TASKS_SURVEY_H
#define MTIL_HARNESS_RUN_TASKS_SURVEY_H

#include "harness/run/experiment.h"
#include "harness/run/surveyor.h"

/* Fills in the tasks' surveys. What was found in earlier runs is not decoded again (run.cache_folder). With
 * on_unreadable: skip, images that cannot be decoded are then no longer in the tasks' datasets. ERROR_STOPPED when stop
 * is requested. */
status tasks_survey(struct experiment *experiment, struct surveyor *surveyor, struct error *error);

/* The same where a task has on_unreadable: skip, so that those images are left out; else nothing is read. For what
 * needs no digest. progress and stop may be NULL. */
status tasks_leave_out_unreadable(struct experiment *experiment, struct progress *progress, const struct stop *stop,
                                  struct error *error);

#endif
