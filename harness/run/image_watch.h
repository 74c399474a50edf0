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
#ifndef MTIL_HARNESS_RUN_IMAGE_WATCH_H
#define MTIL_HARNESS_RUN_IMAGE_WATCH_H

#include "harness/run/run.h"

struct watched_split {
    bool files;
    char content[DIGEST_SIZE]; /* of dataset_identify */
};

/* A folder that an option of the method names. */
struct watched_folder {
    const char *option;
    struct dataset *dataset;
    struct watched_split images;
};

struct image_watch {
    const struct run *run;
    struct watched_split *splits; /* [tasks, SPLITS] */
    struct watched_folder *folders;
    size_t folder_count;
};

/* The caller closes it, after a failure too. */
status image_watch_open(struct image_watch *watch, const struct run *run, struct error *error);

/* Call this after images that cannot be decoded were removed from the datasets (on_unreadable: skip). */
status image_watch_after_survey(struct image_watch *watch, struct error *error);

/* ERROR_IO if any of these changed: test images of all tasks, training images of tasks 0 … task, the method's reference
 * images. */
status image_watch_check(const struct image_watch *watch, size_t task, struct error *error);
void image_watch_close(struct image_watch *watch);

#endif
