#include "harness/train/batches.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/scope.h"
#include "core/threads.h"

struct batches {
    struct model *model;
    const struct recorded *recorded; /* NULL: a loader reads images */
    struct loader *loader;
    struct loader_settings settings;
    struct transfer_queue queue; /* an entry has labels, for mixed images also `others` and `shares`, and pixels */
    size_t pixels_from;          /* their place in an entry */
    bool mixes;
    size_t next, end; /* the batch that is read next */
    size_t count;     /* images of the batch being copied; `failed` and error: its outcome */
    status failed;
    struct error error;
};

static size_t image_bytes(const struct batches *b)
{
    size_t r = (size_t)b->settings.resolution;
    return r * r * 3;
}

/* A GPU leaves the cores of the host to decoding. */
static size_t decoding_threads(const struct model *model)
{
    size_t ranks = model->work.ranks > 0 ? model->work.ranks : 1,
           threads = (model->settings.threads > 0 ? model->settings.threads : threads_available()) / ranks;
    return model->backend->asynchronous && threads > 0 ? threads : 1;
}

static status open_loader(struct batches *b, struct error *error)
{
    struct loader_settings settings = b->settings;
    settings.threads = decoding_threads(b->model);
    settings.ahead = 4;
    return loader_create(&b->loader, &settings, error);
}

static status open_queue(struct batches *b, size_t batch, struct error *error)
{
    enum { ALIGNMENT = 64 };
    struct backend *backend = b->model->backend;
    size_t labels = (b->mixes ? 3 : 1) * batch * sizeof(int32_t);
    b->pixels_from = (labels + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t pixels = array_size(batch, image_bytes(b));
    if (pixels > SIZE_MAX - b->pixels_from)
        return error_set(error, ERROR_MEMORY, "a batch of %zu images fits no memory; lower its size", batch);
    return backend->ops->queue_open(backend, &b->queue, TO_DEVICE, b->pixels_from + pixels, error);
}

status batches_open(struct batches **result, struct model *model, const struct data *data,
                    const struct loader_settings *settings, size_t first, size_t end, struct error *error)
{
    SCOPED(batches_close_at) struct batches *b = xcalloc(1, sizeof *b);
    *b = (struct batches){.model = model, .recorded = data->recorded, .settings = *settings, .next = first, .end = end};
    b->mixes = augmentation_mixes(&settings->augmentation);
    if (data->recorded == NULL) {
        TRY(open_queue(b, settings->batch, error));
        TRY(open_loader(b, error));
        batches_advance(b);
    }
    *result = TAKE(b);
    return OK;
}

static status open_share(struct batches **batches, struct model *model, const struct data *data,
                         const struct task *task, size_t first, size_t end, size_t part, size_t parts,
                         struct error *error)
{
    struct loader_settings settings = {.dataset = task->dataset,
                                       .split = SPLIT_TRAIN,
                                       .resolution = (int)model->clip->dimensions.resolution,
                                       .batch = task->settings.batch,
                                       .shuffle = true,
                                       .augment = true,
                                       .augmentation = task->settings.augmentation,
                                       .seed = model->seed,
                                       .task = (uint32_t)task->index,
                                       .cache = task == &data->joint ? NULL : data->cache,
                                       .part = part,
                                       .parts = parts};
    return batches_open(batches, model, data, &settings, first, end, error);
}

status batches_open_task(struct batches **batches, struct model *model, const struct data *data,
                         const struct task *task, size_t first, size_t end, struct error *error)
{
    return open_share(batches, model, data, task, first, end, model->work.rank, model->work.ranks, error);
}

status batches_open_whole(struct batches **batches, struct model *model, const struct data *data,
                          const struct task *task, size_t first, size_t end, struct error *error)
{
    return open_share(batches, model, data, task, first, end, 0, 1, error);
}

static status send_next(struct batches *b, struct error *error)
{
    struct backend *backend = b->model->backend;
    void *host;
    float own;
    TRY(backend->ops->staging_acquire(backend, &b->queue, &host, error));
    int32_t *others = b->mixes ? (int32_t *)host + b->settings.batch : NULL;
    float *shares = b->mixes ? (float *)host + 2 * b->settings.batch : NULL;
    double start = clock_seconds();
    TRY(loader_read(b->loader, b->next, (uint8_t *)host + b->pixels_from, host, others, &own, &b->count, error));
    b->model->waited += clock_seconds() - start;
    for (size_t i = 0; shares != NULL && i < b->count; i++)
        shares[i] = own;
    return backend->ops->staging_send(backend, &b->queue, b->pixels_from + b->count * image_bytes(b), error);
}

void batches_advance(struct batches *b)
{
    if (b->next == b->end || b->failed != OK || b->recorded != NULL)
        return;
    b->failed = send_next(b, &b->error);
    b->next++;
}

static status copy_to(struct batches *b, const struct tensor *tensor, const void *from, struct error *error)
{
    struct backend *backend = b->model->backend;
    return backend->ops->copy(backend, tensor->data, from, tensor_bytes(tensor), error);
}

/* This rank's share of a batch of `total` images. */
static void place(const struct batches *b, size_t total, struct batch *batch)
{
    struct loader_share share = loader_share_of(total, b->settings.part, b->settings.parts);
    batch->count = share.count;
    batch->first = share.first;
    batch->total = total;
}

/* Allocates the labels (NULL: not needed) and, unless they have memory, the images. */
static status allocate(const struct batches *b, struct arena *arena, enum tensor_type type, struct batch *batch,
                       struct tensor *labels, struct error *error)
{
    size_t r = (size_t)b->settings.resolution, n = batch->count;
    if (batch->images.data == NULL)
        TRY(tensor_take(&batch->images, arena, type, "images", 4,
                        type == TENSOR_U8 ? (size_t[]){n, r, r, 3} : (size_t[]){n, 3, r, r}, error));
    if (labels == NULL)
        return OK;
    TRY(tensor_take(labels, arena, TENSOR_I32, "labels", 1, &n, error));
    batch->labels.labels = labels->data;
    return OK;
}

static status take_recorded(struct batches *b, struct arena *arena, struct batch *batch, struct tensor *labels,
                            struct error *error)
{
    const struct recorded *recorded = b->recorded;
    struct backend *backend = b->model->backend;
    size_t r = b->model->clip->dimensions.resolution;
    struct recorded_batch found;
    TRY(recorded->batch(recorded->context, &b->settings, b->next++, &found, error));
    place(b, found.count, batch);
    TRY(allocate(b, arena, TENSOR_F32, batch, labels, error));
    if (labels != NULL)
        TRY(backend->ops->upload(backend, labels->data, found.labels + batch->first, tensor_bytes(labels), error));
    return backend->ops->upload(backend, batch->images.data, found.images + batch->first * 3 * r * r,
                                tensor_bytes(&batch->images), error);
}

/* The second labels of mixed images, from an entry of the queue. */
static status take_mixed(struct batches *b, struct arena *arena, const void *entry, struct batch *batch,
                         struct error *error)
{
    struct tensor others, shares;
    TRY(tensor_take(&others, arena, TENSOR_I32, "second labels", 1, &batch->count, error));
    TRY(tensor_take(&shares, arena, TENSOR_F32, "shares of labels", 1, &batch->count, error));
    TRY(copy_to(b, &others, (const int32_t *)entry + b->settings.batch, error));
    TRY(copy_to(b, &shares, (const float *)entry + 2 * b->settings.batch, error));
    batch->labels.others = others.data;
    batch->labels.shares = shares.data;
    return OK;
}

static status take(struct batches *b, struct arena *arena, struct batch *batch, struct tensor *labels,
                   struct error *error)
{
    struct backend *backend = b->model->backend;
    const void *entry;
    if (b->recorded != NULL)
        return take_recorded(b, arena, batch, labels, error);
    if (b->failed != OK) {
        if (error != NULL)
            *error = b->error;
        return b->failed;
    }
    place(b, loader_batch_size(b->loader, b->next - 1), batch);
    TRY(allocate(b, arena, TENSOR_U8, batch, labels, error));
    TRY(backend->ops->staging_receive(backend, &b->queue, &entry, error));
    if (labels != NULL)
        TRY(copy_to(b, labels, entry, error));
    if (labels != NULL && b->mixes)
        TRY(take_mixed(b, arena, entry, batch, error));
    TRY(copy_to(b, &batch->images, (const uint8_t *)entry + b->pixels_from, error));
    return backend->ops->staging_release(backend, &b->queue, error);
}

status batches_take(struct batches *b, struct batch *batch, struct error *error)
{
    struct tensor labels;
    batch->images.data = NULL;
    batch->labels = (struct image_labels){0};
    return take(b, &b->model->step_memory, batch, &labels, error);
}

status batches_take_images(struct batches *b, struct arena *arena, struct tensor *images, struct error *error)
{
    struct batch batch = {.images = *images};
    TRY(take(b, arena, &batch, NULL, error));
    *images = batch.images;
    return OK;
}

void batches_close(struct batches *b)
{
    if (b == NULL)
        return;
    loader_destroy(b->loader);
    b->model->backend->ops->queue_close(b->model->backend, &b->queue);
    free(b);
}
