#include "harness/train/batches.h"

#include <stdlib.h>

#include "core/threads.h"

struct batches {
    struct experiment *experiment;
    struct loader *loader;
    size_t part, parts;         /* the share of each batch, as in struct loader_settings */
    struct staging_queue queue; /* an entry has a batch's labels, then its pixels */
    size_t pixels_from;         /* their place in an entry */
    size_t next, end;           /* the batch that is read next */
    size_t count;               /* images of the batch on its way; with `failed`, what became of it */
    status failed;
    struct error error;
};

static size_t image_bytes(const struct batches *b)
{
    size_t r = b->experiment->clip->dimensions.resolution;
    return r * r * 3;
}

/* A device that computes by itself leaves the cores of the host to decoding. */
static size_t decoding_threads(const struct experiment *e)
{
    size_t members = e->work.members > 0 ? e->work.members : 1,
           threads = (e->settings.threads > 0 ? e->settings.threads : threads_available()) / members;
    return e->backend->asynchronous && threads > 0 ? threads : 1;
}

static status open_loader(struct batches *b, const struct loader_settings *wanted, struct error *error)
{
    struct loader_settings settings = *wanted;
    settings.threads = decoding_threads(b->experiment);
    settings.ahead = 4;
    return loader_create(&b->loader, &settings, error);
}

static status open_queue(struct batches *b, size_t batch, struct error *error)
{
    enum { ALIGNMENT = 64 };
    struct backend *backend = b->experiment->backend;
    b->pixels_from = (batch * sizeof(int32_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t pixels = array_size(batch, image_bytes(b));
    if (pixels > SIZE_MAX - b->pixels_from)
        return error_set(error, ERROR_MEMORY, "a batch of %zu images fits no memory; lower its size", batch);
    return backend->ops->staging_open(backend, &b->queue, b->pixels_from + pixels, error);
}

status batches_open(struct batches **result, struct experiment *e, const struct loader_settings *settings, size_t first,
                    size_t end, struct error *error)
{
    struct batches *b = calloc(1, sizeof *b);
    if (b == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for batches", dataset_name(settings->dataset));
    *b = (struct batches){.experiment = e, .part = settings->part, .parts = settings->parts, .next = first, .end = end};
    status opened = open_queue(b, settings->batch, error);
    if (opened == OK)
        opened = open_loader(b, settings, error);
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
    TRY(backend->ops->staging_acquire(backend, &b->queue, &host, error));
    TRY(loader_read(b->loader, b->next, (uint8_t *)host + b->pixels_from, host, NULL, &b->count, error));
    return backend->ops->staging_send(backend, &b->queue, b->pixels_from + b->count * image_bytes(b), error);
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
    const void *entry;
    if (b->failed != OK) {
        if (error != NULL)
            *error = b->error;
        return b->failed;
    }
    batch->count = b->count;
    batch->total = loader_batch_size(b->loader, b->next - 1);
    batch->first = loader_share_of(batch->total, b->part, b->parts).first;
    TRY(tensor_take(&batch->images, &e->step, TENSOR_U8, "images", 4, (size_t[]){b->count, r, r, 3}, error));
    TRY(tensor_take(&labels, &e->step, TENSOR_I32, "labels", 1, &b->count, error));
    batch->labels = labels.data;
    TRY(e->backend->ops->staging_receive(e->backend, &b->queue, &entry, error));
    TRY(copy_to(b, &labels, entry, error));
    TRY(copy_to(b, &batch->images, (const uint8_t *)entry + b->pixels_from, error));
    return e->backend->ops->staging_release(e->backend, &b->queue, error);
}

void batches_close(struct batches *b)
{
    if (b == NULL)
        return;
    loader_destroy(b->loader);
    b->experiment->backend->ops->staging_close(b->experiment->backend, &b->queue);
    free(b);
}
