/* Images on which a method compares the model with a teacher: any folder, or the training images of the current task,
 * in the evaluation transform. Batch i of a task depends on (seed, task, i) only and is independent of the training
 * batches; all batches have the same size.
 *
 *     TRY(reference_images_open(&images, "/data/imagenet", error));                 // NULL: those of the current task
 *     TRY(reference_images_begin(&images, run, task, batch, first, arena, error));    // batch `first` is in images.batch
 *     TRY(reference_images_next(&images, error));                                   // the next one, at the same place
 *     reference_images_close(&images);
 *
 * Instead of a folder, the caller may set dataset and in_order before reference_images_begin: batch i is then images i · B,
 * i · B + 1, … of the dataset, beginning again after the last one.
 *
 * The device holds one batch of pixels, the host the batches decoded ahead.
 */
#pragma once

#include "harness/train/method.h"

struct batches;

struct reference_images {
    struct dataset *dataset; /* NULL: the current task's */
    bool in_order;           /* not shuffled, cycling */
    uint32_t *order;         /* the images of all batches of the task, if in_order */
    struct batches *batches; /* NULL: no task was begun */
    size_t left;             /* remaining batches of the task */
    struct tensor batch;     /* device, as of clip_encode_images; its address is the same throughout a task */
};

/* Lists the folder. */
status reference_images_open(struct reference_images *images, const char *folder, struct error *error);
void reference_images_close(struct reference_images *images);

/* arena: of the task. */
status reference_images_begin(struct reference_images *images, const struct method_run *run, const struct task *task,
                              size_t batch, size_t first, struct arena *arena, struct error *error);

/* Does nothing after the last batch of the task. */
status reference_images_next(struct reference_images *images, struct error *error);
