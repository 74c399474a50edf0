/* Batches of uint8 pixels at the model's resolution, decoded and cropped ahead of their use.
 *
 *     struct loader *loader;
 *     struct loader_settings settings = {.dataset = dataset, .split = SPLIT_TRAIN, .resolution = 224, .batch = 64,
 *                                        .shuffle = true, .augment = true, .seed = seed, .task = k,
 *                                        .threads = 2, .ahead = 4};
 *     TRY(loader_create(&loader, &settings, error));
 *     TRY(loader_read(loader, step, pixels, labels, NULL, NULL, &count, error));
 *
 * Batch `step` depends on the seed, the task and step alone: an epoch has ceil(items / batch) batches, the last one may
 * be smaller, epoch e is shuffled with rng (seed, order, task, e), and the crop of a training image is drawn with
 * (seed, RNG_CROP, task, epoch) at the item's index, like its augmentation; with augmentation.one_crop, the crops of all
 * epochs are those of epoch 0. Steps read in order are ready; any other step is decoded on demand.
 */
#pragma once

#include <stdbool.h>

#include "core/scope.h"
#include "datasets/augment/augment.h"
#include "datasets/cache/cache.h"

struct loader;

struct loader_settings {
    const struct dataset *dataset; /* borrowed until loader_destroy */
    enum split split;
    const uint32_t *items; /* indices into the split, borrowed; NULL: all of them */
    size_t item_count;
    int resolution;
    size_t batch;
    bool shuffle, augment;  /* augment: random-resized crop; otherwise resize and centre crop */
    bool squash;            /* without augment: the whole image to the square instead, as SigLIP's are */
    bool mirror;            /* without augment: left and right of every image change places */
    bool full;              /* every batch has the same size: an epoch leaves out the images that do not fill one */
    enum rng_purpose order; /* purpose of the shuffle's draws; 0: RNG_ORDER */
    uint64_t seed;
    uint32_t task;
    size_t threads;                   /* that decode in the background; 0: the caller decodes */
    size_t ahead;                     /* batches kept ready */
    struct cache *cache;              /* of decoded images, borrowed until loader_destroy; NULL: none */
    size_t part, parts;               /* load share `part` of `parts` of every batch; parts 0: all of it */
    struct augmentation augmentation; /* after the crop; needs augment */
};

/* Share `part` of `parts` of `total` items: as even as possible; the first share is the last to be empty. */
struct loader_share {
    size_t first, count;
};
struct loader_share loader_share_of(size_t total, size_t part, size_t parts);

/* With a cache on the disk, this may take as long as decoding the whole split. */
status loader_create(struct loader **loader, const struct loader_settings *settings, struct error *error);

/* pixels [count, R, R, 3] RGB, labels [count]; count ≤ settings.batch. With mixup or CutMix an image is mixed with the one
 * before it in the whole batch, the first with the last, as in torchvision: partners [count] are the labels of the second
 * images, and own is the share of the first label of each. Otherwise both stay as they are and may be NULL. */
status loader_read(struct loader *loader, uint64_t step, uint8_t *pixels, int32_t *labels, int32_t *partners,
                   float *own, size_t *count, struct error *error);

/* Images of batch `step` in all shares together. */
size_t loader_batch_size(const struct loader *loader, uint64_t step);
void loader_destroy(struct loader *loader); /* NULL is allowed */
SCOPED_POINTER(struct loader, loader_destroy)
