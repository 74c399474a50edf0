/* Images on which a method compares the model with a teacher: those of any folder, or the training images of the current
 * task, in the evaluation transform. Batch i of a task depends on (seed, task, i) alone and is independent of the batches
 * that are trained on; every batch has the same size.
 *
 *     TRY(reference_images_open(&images, "/data/imagenet", error));                 // NULL: those of the current task
 *     TRY(reference_images_begin(&images, e, task, batch, first, arena, error));    // batch `first` is in images.batch
 *     TRY(reference_images_next(&images, error));                                   // the next one, at the same place
 *     reference_images_close(&images);
 *
 * On the device: one batch of pixels; on the host: those that are decoded ahead.
 */
#ifndef MTIL_HARNESS_TRAIN_SERVICES_REFERENCE_IMAGES_H
#define MTIL_HARNESS_TRAIN_SERVICES_REFERENCE_IMAGES_H

#include "harness/run/experiment.h"

struct batches;

struct reference_images {
    struct dataset *dataset; /* NULL: the current task's */
    struct batches *batches; /* NULL: no task was begun */
    size_t left;             /* batches of the task that are still to come */
    struct tensor batch;     /* device, as struct image_batch has it; at one place throughout a task */
};

/* Lists the folder. */
status reference_images_open(struct reference_images *images, const char *folder, struct error *error);
void reference_images_close(struct reference_images *images);

/* arena: of the task. */
status reference_images_begin(struct reference_images *images, struct experiment *e, const struct task *task,
                              size_t batch, size_t first, struct arena *arena, struct error *error);

/* Nothing happens after the task's last batch. */
status reference_images_next(struct reference_images *images, struct error *error);

#endif
