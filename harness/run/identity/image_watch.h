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
#pragma once

#include "harness/run/run.h"
#include "harness/scenario/witness.h"

/* Images of a task, or of a folder that an option of the method names. */
struct watched {
    const struct task *task;       /* NULL: of an option */
    const char *name;              /* of the task or the option */
    const struct dataset *dataset; /* of an option: the watch's own */
    enum split split;
    struct witness seen;
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
