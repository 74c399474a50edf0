/* Surveys the images of all tasks before the first step: digests of the inputs, and images that cannot be decoded,
 * reported before anything is trained.
 *
 *     TRY(tasks_survey(run, &surveyor, error));
 *     … run->tasks[k].survey.splits[SPLIT_TEST].digest …
 */
#ifndef MTIL_HARNESS_RUN_TASKS_SURVEY_H
#define MTIL_HARNESS_RUN_TASKS_SURVEY_H

#include "harness/run/run.h"
#include "harness/run/surveyor.h"

/* Fills in the tasks' surveys. Images surveyed by earlier runs are not decoded again (run.cache_folder). With
 * on_unreadable: skip, images that cannot be decoded are removed from the tasks' datasets. ERROR_STOPPED on a stop
 * request. */
status tasks_survey(struct run *run, struct surveyor *surveyor, struct error *error);

/* The same, but only if a task has on_unreadable: skip; otherwise nothing is read. For commands that need no digest.
 * progress and stop may be NULL. */
status tasks_leave_out_unreadable(struct run *run, struct progress *progress, const struct stop *stop,
                                  struct error *error);

#endif
