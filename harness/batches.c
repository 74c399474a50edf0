#include "harness/batches.h"

#include <stdlib.h>

#include "core/threads.h"
#include "datasets/loader.h"

struct batches {
    struct experiment *experiment;
    struct loader *loader;
    struct feed feed;         /* a load has a batch's labels, then its pixels */
    size_t most, pixels_from; /* images of a batch; the place of the pixels in a load */
    size_t next, end;         /* the iteration whose batch is read next */
    size_t count;             /* images of the batch on its way; with `failed`, what became of it */
    status failed;
    struct error error;
};

static size_t image_bytes(const struct batches *b)
{
    size_t r = b->experiment->clip->dimensions.resolution;
    return r * r * 3;
}

static status open_loader(struct batches *b, const struct task *task, struct error *error)
{
    struct experiment *e = b->experiment;
    size_t members = e->work.members > 0 ? e->work.members : 1,
           threads = (e->settings.threads > 0 ? e->settings.threads : threads_available()) / members;
    struct loader_settings settings = {.dataset = task->dataset,
                                       .split = SPLIT_TRAIN,
                                       .resolution = (int)e->clip->dimensions.resolution,
                                       .batch = task->settings.batch,
                                       .shuffle = true,
                                       .augment = true,
                                       .seed = e->seed,
                                       .task = (uint32_t)task->index,
                                       .threads = e->backend->asynchronous && threads > 0 ? threads : 1,
                                       .ahead = 4,
                                       .cache = e->cache,
                                       .part = e->work.member,
                                       .parts = e->work.members};
    return loader_create(&b->loader, &settings, error);
}

status batches_open(struct batches **result, struct experiment *e, const struct task *task, size_t first,
                    struct error *error)
{
    enum { ALIGNMENT = 64 };
    struct batches *b = calloc(1, sizeof *b);
    if (b == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for batches", task->settings.name);
    *b = (struct batches){
        .experiment = e, .most = task->settings.batch, .next = first, .end = task->settings.iterations};
    b->pixels_from = (b->most * sizeof(int32_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t pixels = array_size(b->most, image_bytes(b));
    status opened =
        pixels < SIZE_MAX - b->pixels_from
            ? e->backend->ops->feed_open(e->backend, &b->feed, b->pixels_from + pixels, error)
            : error_set(error, ERROR_MEMORY, "%s: a batch of %zu images fits no memory; lower training.batch",
                        task->settings.name, b->most);
    if (opened == OK)
        opened = open_loader(b, task, error);
    if (opened != OK) {
        batches_close(b);
        return opened;
    }
    batches_advance(b);
    *result = b;
    return OK;
}

static status send_next(struct batches *b, struct error *error)
{
    struct backend *backend = b->experiment->backend;
    void *host;
    TRY(backend->ops->feed_room(backend, &b->feed, &host, error));
    TRY(loader_read(b->loader, b->next, (uint8_t *)host + b->pixels_from, host, NULL, &b->count, error));
    return backend->ops->feed_send(backend, &b->feed, b->pixels_from + b->count * image_bytes(b), error);
}

void batches_advance(struct batches *b)
{
    if (b->next == b->end || b->failed != OK)
        return;
    b->failed = send_next(b, &b->error);
    b->next++;
}

static status copy_to(struct batches *b, const struct tensor *tensor, const uint8_t *from, struct error *error)
{
    struct backend *backend = b->experiment->backend;
    return backend->ops->copy(backend, tensor->data, from, tensor_bytes(tensor), error);
}

status batches_take(struct batches *b, struct batch *batch, struct error *error)
{
    struct experiment *e = b->experiment;
    size_t r = e->clip->dimensions.resolution;
    struct tensor labels;
    const void *load;
    if (b->failed != OK) {
        if (error != NULL)
            *error = b->error;
        return b->failed;
    }
    batch->count = b->count;
    batch->total = loader_batch_size(b->loader, b->next - 1);
    batch->first = loader_share_of(batch->total, e->work.member, e->work.members).first;
    TRY(tensor_take(&batch->images, &e->step, TENSOR_U8, "images", 4, (size_t[]){b->count, r, r, 3}, error));
    TRY(tensor_take(&labels, &e->step, TENSOR_I32, "labels", 1, &b->count, error));
    batch->labels = labels.data;
    TRY(e->backend->ops->feed_receive(e->backend, &b->feed, &load, error));
    TRY(copy_to(b, &labels, load, error));
    TRY(copy_to(b, &batch->images, (const uint8_t *)load + b->pixels_from, error));
    return e->backend->ops->feed_release(e->backend, &b->feed, error);
}

void batches_close(struct batches *b)
{
    if (b == NULL)
        return;
    loader_destroy(b->loader);
    b->experiment->backend->ops->feed_close(b->experiment->backend, &b->feed);
    free(b);
}
