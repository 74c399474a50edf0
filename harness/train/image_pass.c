#include "harness/train/image_pass.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/scope.h"
#include "harness/train/guard.h"

/* --- Repeated operations --- */

static status record(struct repeated *r, size_t batch, struct error *error)
{
    r->plainly = true;
    TRY(r->backend->ops->record(r->backend, &r->recording, r->body, r->context, error));
    if (r->recording.owner != NULL)
        r->recorded = batch;
    else if (r->recording.refused.code != OK)
        log_warn(r->log, "%s: %s cannot be recorded, so each is launched separately, which is slower: %s", r->name,
                 r->what, r->recording.refused.message);
    return OK;
}

status repeated_run(struct repeated *r, size_t batch, struct error *error)
{
    if (r->recorded == batch && batch > 0)
        return r->backend->ops->replay(r->backend, &r->recording, error);
    if (!r->plainly && r->largest == batch)
        return record(r, batch, error);
    if (r->largest < batch)
        r->largest = batch;
    return r->body(r->context, error);
}

void repeated_close(struct repeated *r)
{
    r->backend->ops->recording_destroy(r->backend, &r->recording);
}

/* --- A pass --- */

struct running {
    const struct image_pass *pass;
    struct batches *batches;
    struct batch batch;
    struct arena_mark start; /* of the step's memory after the batch */
    struct image_results results;
    struct repeated encode;
    struct transfer_queue fetched;
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
    TRY(backend->ops->queue_open(backend, &r.fetched, TO_HOST, array_size(batch, pass->bytes), error));
    status result =
        batches_open(&r.batches, model, pass->data, pass->images, 0, (pass->count + batch - 1) / batch, error);
    while (result == OK && r.sent < pass->count)
        result = pass_batch(&r, error);
    NEXT(result, keep_results(&r, r.pending, error));
    repeated_close(&r.encode);
    batches_close(r.batches);
    backend->ops->queue_close(backend, &r.fetched);
    return result;
}

/* --- Frozen features --- */

struct frozen {
    struct model *model;
    const struct loader_settings *images;
    float *means, *features; /* [n, width] and [n, embed], each unless NULL */
};

static status encode_frozen(void *context, const struct batch *batch, struct image_results *results,
                            struct error *error)
{
    const struct frozen *frozen = context;
    struct model *model = frozen->model;
    struct encoding encoding = {.arena = &model->step_memory, .whole = true};
    struct tower_pass pass;
    struct tensor output, mean;
    TRY(clip_encode_images(model->clip, &encoding, &batch->images, &pass, &output, error));
    TRY(clip_mean_patches(model->clip, &model->step_memory, &pass, &mean, error));
    results->list[results->count++] = mean;
    if (frozen->features != NULL)
        results->list[results->count++] = output;
    return OK;
}

static status keep_frozen(void *context, size_t first, size_t count, const void *results, struct error *error)
{
    const struct frozen *frozen = context;
    size_t width = frozen->model->clip->dimensions.image_width, embed = model_feature_width(frozen->model);
    const float *means = results, *features = means + count * width;
    struct guarded_images images = {.dataset = frozen->images->dataset,
                                    .split = frozen->images->split,
                                    .items = frozen->images->items,
                                    .first = first,
                                    .n = count,
                                    .width = width,
                                    .features = means};
    TRY(guard_images(&images, error));
    if (frozen->means != NULL)
        memcpy(frozen->means + first * width, means, count * width * sizeof *means);
    if (frozen->features == NULL)
        return OK;
    images.width = embed;
    images.features = features;
    TRY(guard_images(&images, error));
    memcpy(frozen->features + first * embed, features, count * embed * sizeof *features);
    return OK;
}

/* images: which ones; the rest of their settings is set here. */
static status pass_frozen(struct model *model, const struct data *data, struct loader_settings *images, float *means,
                          float *features, const struct stop *stop, struct error *error)
{
    images->resolution = (int)model->clip->dimensions.resolution;
    images->squash = clip_squashes(&model->clip->dimensions);
    images->batch = model->evaluation_batch;
    /* Training images are read once, test images for every row of the accuracy matrix. */
    images->cache = images->split == SPLIT_TEST ? data->cache : NULL;
    struct frozen frozen = {.model = model, .images = images, .means = means, .features = features};
    return image_pass_run(
        &(struct image_pass){.model = model,
                             .data = data,
                             .images = images,
                             .count = images->item_count,
                             .bytes =
                                 (model->clip->dimensions.image_width + model_feature_width(model)) * sizeof *means,
                             .name = dataset_name(images->dataset),
                             .stop = stop,
                             .encode = encode_frozen,
                             .keep = keep_frozen,
                             .context = &frozen},
        error);
}

status frozen_features(struct model *model, const struct data *data, const struct dataset *dataset, enum split split,
                       const uint32_t *items, size_t n, float *means, float *features, const struct stop *stop,
                       struct error *error)
{
    struct loader_settings settings = {.dataset = dataset, .split = split, .items = items, .item_count = n};
    return pass_frozen(model, data, &settings, means, features, stop, error);
}

/* --- Frozen rows --- */

size_t frozen_classes_column(const struct method_run *run, const struct task *task)
{
    return run->model->settings.label_space == LABEL_SPACE_TASK ? data_first_class(run->data, task) : 0;
}

size_t frozen_classes_images(const struct data *data)
{
    size_t images = 0;
    for (size_t k = 0; k < data->task_count; k++)
        images += dataset_size(data->tasks[k].dataset, SPLIT_TRAIN);
    return images;
}

status frozen_classes_once(const struct settings *settings, struct error *error)
{
    return settings->shared_classes
               ? error_set(error, ERROR_ARGUMENT,
                           "suite: method.name: %s learns every class once, but with data.shared_classes all tasks "
                           "have the same classes; choose another method, as ran_pac",
                           settings->method->name)
               : OK;
}

void frozen_classes_decide(float *row, size_t columns, size_t known, const double *own)
{
    size_t best = 0;
    for (size_t c = 1; c < columns; c++)
        best = row[c] > row[best] ? c : best;
    for (size_t c = 0; best < known && c < columns; c++)
        row[c] = c < known ? (float)own[c] : -FLT_MAX;
}

status frozen_rows_read(struct frozen_rows *rows, const struct method_run *run, const struct task *task,
                        struct error *error)
{
    struct model *model = run->model;
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), first = data_first_class(run->data, task),
           width = model_feature_width(model);
    *rows = (struct frozen_rows){.n = n,
                                 .width = width,
                                 .first = first,
                                 .classes = first + dataset_classes(task->dataset),
                                 .features = xmalloc(array_size(n, width * sizeof *rows->features)),
                                 .labels = xmalloc(array_size(n, sizeof *rows->labels))};
    for (size_t i = 0; i < n; i++)
        rows->labels[i] = (int32_t)first + dataset_label(task->dataset, SPLIT_TRAIN, i);
    return frozen_features(model, run->data, task->dataset, SPLIT_TRAIN, NULL, n, NULL, rows->features, model->stop,
                           error);
}

status frozen_rows_mirror(struct frozen_rows *rows, const struct method_run *run, const struct task *task,
                          struct error *error)
{
    size_t n = rows->n;
    struct loader_settings settings = {.dataset = task->dataset, .split = SPLIT_TRAIN, .item_count = n, .mirror = true};
    rows->features = xrealloc(rows->features, array_size(2 * n, rows->width * sizeof *rows->features));
    rows->labels = xrealloc(rows->labels, array_size(2 * n, sizeof *rows->labels));
    memcpy(rows->labels + n, rows->labels, n * sizeof *rows->labels);
    rows->n = 2 * n;
    return pass_frozen(run->model, run->data, &settings, NULL, rows->features + n * rows->width, run->model->stop,
                       error);
}

void frozen_rows_shuffle(struct frozen_rows *rows, struct rng rng)
{
    size_t bytes = rows->width * sizeof *rows->features;
    OWNED uint32_t *order = xmalloc(array_size(rows->n, sizeof *order));
    float *features = xmalloc(array_size(rows->n, bytes));
    int32_t *labels = xmalloc(array_size(rows->n, sizeof *labels));
    rng_permutation(&rng, rows->n, order);
    for (size_t i = 0; i < rows->n; i++) {
        memcpy(features + i * rows->width, rows->features + order[i] * rows->width, bytes);
        labels[i] = rows->labels[order[i]];
    }
    free(rows->features);
    free(rows->labels);
    rows->features = features;
    rows->labels = labels;
}

size_t frozen_rows_of_class(const struct frozen_rows *rows, size_t class, float *features)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++)
        if ((size_t)rows->labels[i] == class)
            memcpy(features + n++ * rows->width, rows->features + i * rows->width, rows->width * sizeof *features);
    return n;
}

void frozen_rows_widen(const float *features, size_t n, size_t width, bool unit, double *out)
{
    for (size_t i = 0; i < n * width; i++)
        out[i] = (double)features[i];
    for (size_t i = 0; unit && i < n; i++)
        linear_unit(out + i * width, width);
}

void frozen_rows_free(struct frozen_rows *rows)
{
    free(rows->features);
    free(rows->labels);
    *rows = (struct frozen_rows){0};
}
