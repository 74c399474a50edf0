/* Notices images that are replaced while a run goes on, by sizes, times and inodes of their files: what is recorded was
 * computed from the files that were surveyed when it began.
 *
 *     struct image_watch watch;
 *     TRY(image_watch_open(&watch, experiment, error));     // before the survey
 *     TRY(image_watch_after_survey(&watch, error));
 *     TRY(image_watch_check(&watch, task, error));          // before rows are kept
 *     image_watch_close(&watch);
 *
 * Samples of a larger file are in memory since the dataset was opened and need none.
 */
#ifndef MTIL_HARNESS_RUN_IMAGE_WATCH_H
#define MTIL_HARNESS_RUN_IMAGE_WATCH_H

#include "harness/run/experiment.h"

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
    const struct experiment *experiment;
    struct watched_split *splits; /* [tasks, SPLITS] */
    struct watched_folder *folders;
    size_t folder_count;
};

/* The caller closes it, after a failure too. */
status image_watch_open(struct image_watch *watch, const struct experiment *experiment, struct error *error);

/* Images that cannot be decoded have left the datasets (on_unreadable: skip). */
status image_watch_after_survey(struct image_watch *watch, struct error *error);

/* ERROR_IO when the test images of any task have changed since, or the training images of those up to task, or the
 * method's. */
status image_watch_check(const struct image_watch *watch, size_t task, struct error *error);
void image_watch_close(struct image_watch *watch);

#endif
