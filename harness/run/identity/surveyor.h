/* Surveys datasets one after another, with shared cache, threads and progress line.
 *
 *     struct surveyor surveyor;
 *     TRY(surveyor_open(&surveyor, &settings, log, progress, stop, error));
 *     TRY(surveyor_look(&surveyor, &survey, dataset, &(struct surveyor_subject){"dtd", 3, 11}, error));
 *     TRY(surveyor_tasks(run, &surveyor, error));          // of all tasks, before the first step
 *     … run->data.tasks[k].survey.splits[SPLIT_TEST].digest …
 *     surveyor_close(&surveyor);
 */
#pragma once

#include "datasets/same.h"
#include "datasets/survey.h"
#include "harness/run/run.h"
#include "harness/terminal/progress.h"

/* The subject of a survey, for messages: "dtd", the third of eleven. */
struct surveyor_subject {
    const char *name;
    size_t number, count;
};

struct surveyor {
    struct survey_settings settings;
    struct surveyor_subject subject;
    struct progress *progress;
    struct threads *threads;
    char *usual_folder;
    bool warned;
    struct same_images images; /* of the tasks that are surveyed */
};

/* log, progress and stop may be NULL; they and the settings are borrowed until it is closed. */
status surveyor_open(struct surveyor *surveyor, const struct settings *settings, const struct log *log,
                     struct progress *progress, const struct stop *stop, struct error *error);
void surveyor_close(struct surveyor *surveyor);

/* Digests a file; the progress line names it. */
status surveyor_read(struct surveyor *surveyor, struct file_digest *digest, const char *path, struct error *error);

status surveyor_look(struct surveyor *surveyor, struct survey *survey, struct dataset *dataset,
                     const struct surveyor_subject *subject, struct error *error);

/* Fills in the tasks' surveys. Images surveyed by earlier runs are not decoded again (run.cache_folder). With
 * on_unreadable: skip, images that cannot be decoded are removed from the tasks' datasets. Warns of test images that are trained
 * on. ERROR_STOPPED on a stop request. */
status surveyor_tasks(struct run *run, struct surveyor *surveyor, struct error *error);

/* The same, but only if a task has on_unreadable: skip; otherwise nothing is read. For commands that need no digest.
 * progress and stop may be NULL. */
status surveyor_leave_out_unreadable(struct run *run, struct progress *progress, const struct stop *stop,
                                     struct error *error);
