#include "harness/train/image_pass.h"

#include "harness/train/repeated.h"

struct running {
    const struct image_pass *pass;
    struct batches *batches;
    struct batch batch;
    struct arena_mark start; /* of the step's memory after the batch */
    struct image_results results;
    struct repeated encode;
    struct fetch_queue fetched;
    size_t sent, kept,
        pending; /* images whose results are on their way or were kept, were kept, and of the batch sent last */
};

static status encode(void *context, struct error *error)
{
    struct running *r = context;
    arena_release(&r->pass->model->step_memory, r->start); /* again after a recording that failed */
    r->results.count = 0;
    return r->pass->encode(r->pass->context, &r->batch, &r->results, error);
}

static status send_results(struct running *r, struct error *error)
{
    struct backend *backend = r->encode.backend;
    for (size_t i = 0; i < r->results.count; i++) {
        const struct tensor *tensor = &r->results.list[i];
        TRY(backend->ops->fetch_copy(backend, &r->fetched, tensor->data, tensor_bytes(tensor), error));
    }
    return backend->ops->fetch_send(backend, &r->fetched, error);
}

static status keep_results(struct running *r, size_t count, struct error *error)
{
    struct backend *backend = r->encode.backend;
    const void *results;
    if (count == 0)
        return OK;
    TRY(backend->ops->fetch_take(backend, &r->fetched, &results, error));
    TRY(r->pass->keep(r->pass->context, r->kept, count, results, error));
    r->kept += count;
    return OK;
}

/* What waits for the device comes after the operations of the batch. */
static status pass_batch(struct running *r, struct error *error)
{
    struct arena *memory = &r->pass->model->step_memory;
    size_t before = r->pending;
    if (stop_requested(r->pass->stop))
        return error_set(error, ERROR_STOPPED, "stopped while images of %s were encoded", r->pass->name);
    arena_reset(memory);
    TRY(batches_take(r->batches, &r->batch, error));
    r->start = arena_mark(memory);
    TRY(repeated_run(&r->encode, r->batch.count, error));
    TRY(send_results(r, error));
    r->pending = r->batch.count;
    r->sent += r->batch.count;
    TRY(keep_results(r, before, error));
    batches_advance(r->batches);
    return OK;
}

status image_pass_run(const struct image_pass *pass, struct error *error)
{
    enum { RECORDED_FROM = 4 }; /* full batches; fewer are done before a recording pays */
    struct model *model = pass->model;
    struct backend *backend = model->backend;
    size_t batch = pass->images->batch;
    struct running r = {.pass = pass};
    r.encode = (struct repeated){.backend = backend,
                                 .log = model->log,
                                 .name = pass->name,
                                 .what = "batches of images",
                                 .body = encode,
                                 .context = &r,
                                 .plainly = pass->plainly || pass->count / batch < RECORDED_FROM};
    if (pass->count == 0)
        return OK;
    TRY(backend->ops->fetch_open(backend, &r.fetched, array_size(batch, pass->bytes), error));
    status result =
        batches_open(&r.batches, model, pass->data, pass->images, 0, (pass->count + batch - 1) / batch, error);
    while (result == OK && r.sent < pass->count)
        result = pass_batch(&r, error);
    NEXT(result, keep_results(&r, r.pending, error));
    repeated_close(&r.encode);
    batches_close(r.batches);
    backend->ops->fetch_close(backend, &r.fetched);
    return result;
}
