#include "harness/train/services/reference_images.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "harness/train/batches.h"

status reference_images_open(struct reference_images *images, const char *folder, struct error *error)
{
    *images = (struct reference_images){0};
    return folder != NULL ? dataset_of_images(&images->dataset, folder, error) : OK;
}

void reference_images_close(struct reference_images *images)
{
    batches_close(images->batches);
    free(images->order);
    dataset_close(images->dataset);
    *images = (struct reference_images){0};
}

static void repeat_in_order(struct reference_images *images, size_t count)
{
    size_t size = dataset_size(images->dataset, SPLIT_TRAIN);
    free(images->order);
    images->order = xmalloc(array_size(count, sizeof *images->order));
    for (size_t i = 0; i < count; i++)
        images->order[i] = (uint32_t)(i % size);
}

status reference_images_begin(struct reference_images *images, const struct method_run *run, const struct task *task,
                              size_t batch, size_t first, struct arena *arena, struct error *error)
{
    struct model *model = run->model;
    struct loader_settings settings = {.dataset = images->dataset != NULL ? images->dataset : task->dataset,
                                       .split = SPLIT_TRAIN,
                                       .resolution = (int)model->clip->dimensions.resolution,
                                       .squash = clip_squashes(&model->clip->dimensions),
                                       .batch = batch,
                                       .shuffle = true,
                                       .full = true,
                                       .order = RNG_REFERENCE,
                                       .seed = model->seed,
                                       .task = (uint32_t)task->index,
                                       .cache = images->dataset != NULL ? NULL : run->data->cache};
    batches_close(images->batches);
    images->batches = NULL;
    images->left = task->settings.iterations - first;
    if (images->left == 0)
        return OK;
    if (images->in_order) {
        settings.item_count = array_size(task->settings.iterations, batch);
        repeat_in_order(images, settings.item_count);
        settings.items = images->order;
        settings.shuffle = false;
    }
    TRY(batches_open(&images->batches, model, run->data, &settings, first, task->settings.iterations, error));
    images->left--;
    images->batch.data = NULL;
    TRY(batches_take_images(images->batches, arena, &images->batch, error));
    batches_advance(images->batches);
    return OK;
}

status reference_images_next(struct reference_images *images, struct error *error)
{
    if (images->left == 0)
        return OK;
    images->left--;
    TRY(batches_take_images(images->batches, NULL, &images->batch, error));
    batches_advance(images->batches);
    return OK;
}
