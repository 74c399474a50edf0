/* For methods that learn classes on features of a frozen image tower: a pass over a task's training images, and the place of
 * the method's own scores beside those of zero-shot CLIP. Classes have numbers among those of all tasks, one task after
 * another.
 *
 *     struct frozen_rows rows;
 *     TRY(frozen_rows_read(&rows, run, task, error));                        // end_task
 *     frozen_rows_free(&rows);
 *
 *     struct frozen_classes classes = {.width = d, .learned = n, .share = 1, .others = -FLT_MAX, .scores = own, .context = x};
 *     TRY(frozen_classes_fuse(&classes, first, features, n, columns, scores, NULL, error));           // scores
 */
#ifndef MTIL_HARNESS_TRAIN_SERVICES_FROZEN_CLASSES_H
#define MTIL_HARNESS_TRAIN_SERVICES_FROZEN_CLASSES_H

#include "core/rng.h"
#include "harness/train/method.h"

struct frozen_rows {
    size_t n, width, first, classes; /* the task's first class; classes of all tasks so far, with this one */
    float *features;                 /* [n, width], in the evaluation transform, not normalised */
    int32_t *labels;                 /* [n] */
};
status frozen_rows_read(struct frozen_rows *rows, struct method_run *run, const struct task *task, struct error *error);
void frozen_rows_shuffle(struct frozen_rows *rows, struct rng rng);
void frozen_rows_free(struct frozen_rows *rows); /* after a failure, too */

/* Number of the class of the first column that the hook `scores` gets: 0, or with evaluation.label_space: task the task's
 * first. */
size_t frozen_classes_column(const struct method_run *run, const struct task *task);
size_t frozen_classes_images(const struct data *data); /* training images of all tasks */

/* The classes learned so far, those before `learned`. */
struct frozen_classes {
    size_t width, learned;
    double share, others; /* of the own scores in the sum; the own score of a class that is not learned */
    status (*scores)(const void *context, const float *features, size_t n, double *scores,
                     struct error *error); /* [n, learned] */
    const void *context;
};

/* Columns are the classes first, first + 1, …; features [n, width]. On entry scores [n, columns] are those of CLIP's texts.
 * With p = softmax(scores) they become, where the best class of p is learned (adapted [n], unless NULL, receives whether it
 * is), (1 − share) p + share · own, elsewhere p: so the answer for an image that CLIP takes for a class not learned is
 * CLIP's. */
status frozen_classes_fuse(const struct frozen_classes *classes, size_t first, const float *features, size_t n,
                           size_t columns, float *scores, bool *adapted, struct error *error);

#endif
