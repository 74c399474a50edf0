/* For methods that learn classes on features of a frozen image tower: a pass over a task's training images. Classes have
 * numbers among those of all tasks, one task after another.
 *
 *     struct frozen_rows rows;
 *     TRY(frozen_rows_read(&rows, run, task, error));                        // end_task
 *     frozen_rows_free(&rows);
 */
#pragma once

#include "core/rng.h"
#include "harness/train/method.h"

struct frozen_rows {
    size_t n, width, first, classes; /* the task's first class; classes of all tasks so far, with this one */
    float *features;                 /* [n, width], in the evaluation transform, not normalised */
    int32_t *labels;                 /* [n] */
};
status frozen_rows_read(struct frozen_rows *rows, const struct method_run *run, const struct task *task,
                        struct error *error);
void frozen_rows_shuffle(struct frozen_rows *rows, struct rng rng);
void frozen_rows_free(struct frozen_rows *rows); /* after a failure, too */

/* Number of the class of the first column that the hook `scores` gets: 0, or with evaluation.label_space: task the task's
 * first. */
size_t frozen_classes_column(const struct method_run *run, const struct task *task);
size_t frozen_classes_images(const struct data *data); /* training images of all tasks */
