/* The inputs of a run: the contents of weights, vocabulary and datasets, whatever their paths. Together with the
 * settings they identify a run.
 *
 *     struct inputs inputs;
 *     TRY(inputs_read(&inputs, &surveyor, suite, run, error));
 *     … inputs.hash, inputs.rows[0].digest …
 *     inputs_free(&inputs);
 *
 * Few-shot runs of all seeds have the same inputs, namely all training images, from which each seed chooses. Runs on
 * parts of one dataset have the inputs of the whole dataset (task −1).
 */
#pragma once

#include "core/digest.h"
#include "datasets/same.h"
#include "datasets/survey.h"
#include "harness/run/run.h"
#include "harness/terminal/progress.h"
#include "results/store.h"

/* Surveys datasets one after another, with shared cache, threads and progress line.
 *
 *     struct surveyor surveyor;
 *     TRY(surveyor_open(&surveyor, &settings, log, progress, stop, error));
 *     TRY(surveyor_look(&surveyor, &survey, dataset, &(struct surveyor_subject){"dtd", 3, 11}, error));
 *     TRY(tasks_survey(run, &surveyor, error));          // of all tasks, before the first step
 *     … run->data.tasks[k].survey.splits[SPLIT_TEST].digest …
 *     surveyor_close(&surveyor);
 */

/* The subject of a survey, for messages: "dtd", the third of eleven. */
struct surveyor_subject {
    const char *name;
    size_t number, count;
};

struct surveyor {
    struct survey_settings settings;
    struct surveyor_subject subject;
    struct progress *progress;
    const struct stop *stop;
    struct threads *threads;
    char *usual_folder;
    bool warned;
    struct same_images images; /* of the tasks that are surveyed */
};

/* log, progress and stop may be NULL; they and the settings are borrowed until it is closed. */
status surveyor_open(struct surveyor *surveyor, const struct settings *settings, const struct log *log,
                     struct progress *progress, const struct stop *stop, struct error *error);
void surveyor_close(struct surveyor *surveyor);

status surveyor_look(struct surveyor *surveyor, struct survey *survey, struct dataset *dataset,
                     const struct surveyor_subject *subject, struct error *error);

/* Fills in the tasks' surveys. Images surveyed by earlier runs are not decoded again (run.cache_folder). With
 * on_unreadable: skip, images that cannot be decoded are removed from the tasks' datasets. Warns of test images that are trained
 * on. ERROR_STOPPED on a stop request. */
status tasks_survey(struct run *run, struct surveyor *surveyor, struct error *error);

/* The same, but only if a task has on_unreadable: skip; otherwise nothing is read. For commands that need no digest.
 * progress and stop may be NULL. */
status tasks_leave_out_unreadable(struct run *run, struct progress *progress, const struct stop *stop,
                                  struct error *error);

struct inputs {
    /* weights, configuration, vocabulary, files and folders of the method's options, then prompts, train and test of
     * each dataset */
    struct input_row *rows;
    size_t count;
    char hash[DIGEST_SIZE]; /* of the settings' hash and all digests; with the seed it identifies a run */
};

/* run: after tasks_survey, which opened its datasets; NULL: datasets are opened here. The caller frees, also
 * after a failure. ERROR_FORMAT if a file changed since the run read it. */
status inputs_read(struct inputs *inputs, struct surveyor *surveyor, const struct suite *suite, const struct run *run,
                   struct error *error);
void inputs_free(struct inputs *inputs);

/* Computes the hash of a run with other settings on the same inputs. */
void inputs_identify(const struct inputs *inputs, const char *settings_hash, char hash[DIGEST_SIZE]);

/* The digest of all settings that locate the inputs and determine how they are read. Suites with the same key have the
 * same inputs. */
void inputs_key(const struct suite *suite, char key[DIGEST_SIZE]);

/* "the test images of mnist (/data/MNIST)", for messages. The caller frees. */
char *inputs_describe(const struct input_row *row, const struct run *run);

/* --- Images that change during a run --- */

/* Detects images that are replaced during a run, by sizes, times and inodes of their files, so that every recorded row
 * was computed from the files surveyed at the start.
 *
 *     struct image_watch watch;
 *     TRY(image_watch_open(&watch, run, error));     // before the survey
 *     TRY(image_watch_after_survey(&watch, error));
 *     TRY(image_watch_check(&watch, task, error));          // before rows are committed
 *     image_watch_close(&watch);
 *
 * Samples of a larger file are in memory and need no watch.
 */

/* Images of a task, or of a folder that an option of the method names. */
struct watched {
    const struct task *task;       /* NULL: of an option */
    const char *name;              /* of the task or the option */
    const struct dataset *dataset; /* of an option: the watch's own */
    enum split split;
    bool files;
    char content[DIGEST_SIZE]; /* of dataset_identify */
};

struct image_watch {
    struct watched *sets;
    size_t count;
};

/* The caller closes it, after a failure too. */
status image_watch_open(struct image_watch *watch, const struct run *run, struct error *error);

/* Call this after images that cannot be decoded were removed from the datasets (on_unreadable: skip). */
status image_watch_after_survey(struct image_watch *watch, struct error *error);

/* ERROR_IO if any of these changed: test images of all tasks, training images of tasks 0 … task, the method's reference
 * images. */
status image_watch_check(const struct image_watch *watch, size_t task, struct error *error);
void image_watch_close(struct image_watch *watch);
