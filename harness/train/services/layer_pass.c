#include "harness/train/services/layer_pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/scope.h"
#include "harness/model/model.h"
#include "harness/train/batches.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"

/* --- Subspaces --- */

void subspace_free(struct subspace *space)
{
    free(space->basis);
    *space = (struct subspace){0};
}

/* For each vector u: matrix −= u (uᵀ matrix), which for orthonormal vectors is their projection. */
void subspace_remove(const struct subspace *space, double *matrix, size_t columns)
{
    OWNED double *row = xmalloc(array_size(columns, sizeof *row));
    for (int32_t i = 0; i < space->rank; i++) {
        const double *u = space->basis + (size_t)i * space->n;
        memset(row, 0, columns * sizeof *row);
        for (size_t r = 0; r < space->n; r++)
            for (size_t c = 0; c < columns; c++)
                row[c] += u[r] * matrix[r * columns + c];
        for (size_t r = 0; r < space->n; r++)
            for (size_t c = 0; c < columns; c++)
                matrix[r * columns + c] -= u[r] * row[c];
    }
}

static double energy(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i] * values[i];
    return sum;
}

static size_t vectors_wanted(const struct subspace *space, const double *s, size_t k, double covered, double total,
                             double share)
{
    size_t count = 0;
    bool first = space->rank == 0;
    while (count < k && space->n > (size_t)space->rank + count &&
           (covered + (first ? s[count] * s[count] : 0)) / total < share) {
        covered += s[count] * s[count];
        count++;
    }
    return first && count == 0 ? 1 : count;
}

status subspace_extend(struct subspace *space, const double *matrix, size_t n, size_t columns, double share,
                       struct error *error)
{
    size_t k = n < columns ? n : columns, values = array_size(n, columns);
    OWNED double *rest = xmalloc(values * sizeof *rest);
    SCOPED(svd_free) struct svd f = {0};
    space->n = n;
    memcpy(rest, matrix, values * sizeof *rest);
    subspace_remove(space, rest, columns);
    double total = energy(matrix, values), covered = total - energy(rest, values);
    TRY(svd_create(&f, rest, n, columns, error));
    size_t count = total > 0 ? vectors_wanted(space, f.s, k, covered, total, share) : 0;
    space->basis = xrealloc(space->basis, array_size((size_t)space->rank + count + 1, n * sizeof *space->basis));
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < n; r++)
            space->basis[((size_t)space->rank + i) * n + r] = f.u[r * k + i];
    space->rank += (int32_t)count;
    return OK;
}

static status subspace_keep(struct subspace *space, size_t n, const char *name, const struct serializer *serializer,
                            struct error *error)
{
    char rank[96];
    snprintf(rank, sizeof rank, "%s.rank", name);
    TRY(serializer_host(serializer, rank, SAFETENSOR_I32, 1, &space->rank, error));
    space->n = n;
    if (!serializer->saving)
        space->basis = xrealloc(space->basis, array_size((size_t)space->rank + 1, n * sizeof *space->basis));
    return space->rank > 0
               ? serializer_host(serializer, name, SAFETENSOR_F64, (size_t)space->rank * n, space->basis, error)
               : OK;
}

/* --- Passes --- */

static status add_covariance(struct linear_tap *tap, struct backend *backend, struct matrix x, struct error *error)
{
    const struct layer_sum *layer = (const struct layer_sum *)tap;
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = x,
                                             .transpose_a = true,
                                             .b = x,
                                             .accumulate = true,
                                             .out = matrix_rows(layer->sum, layer->rows, layer->columns)},
                              error);
}

static status add_inputs(struct linear_tap *tap, struct backend *backend, struct matrix x, struct error *error)
{
    struct layer_sum *layer = (struct layer_sum *)tap;
    struct tensor *sum = &layer->inputs;
    if (sum->data == NULL) {
        struct tensor places;
        TRY(tensor_take(sum, layer->arena, TENSOR_F32, "inputs of a layer", 2, (size_t[]){x.rows, x.columns}, error));
        TRY(tensor_take(&places, layer->arena, TENSOR_I32, "places", 1, &x.rows, error));
        TRY(backend->ops->zero(backend, sum->data, tensor_bytes(sum), error));
        TRY(backend->ops->arange(backend, &(struct arange){.count = x.rows, .step = 1, .out = places.data}, error));
        layer->places = places.data;
    }
    if (sum->shape[0] != x.rows)
        return error_set(error, ERROR_ARGUMENT, "inputs of a layer: %zu in a batch, expected %zu as before", x.rows,
                         sum->shape[0]);
    return backend->ops->scatter_rows(
        backend, &(struct scatter_rows){.x = x, .out = matrix_of(sum), .rows = layer->places}, error);
}

/* The layers of the deltas, each once. */
static status take_layers(struct layer_pass *pass, const struct model *model, enum layer_sum_kind kind,
                          struct arena *arena, struct error *error)
{
    const struct deltas *d = model->deltas;
    pass->list = xcalloc(d->count, sizeof *pass->list);
    for (size_t i = 0; i < d->count; i++) {
        struct linear *linear = d->list[i].linear;
        struct layer_sum *layer = &pass->list[pass->count];
        struct tensor memory;
        if (i > 0 && linear == d->list[i - 1].linear)
            continue;
        *layer = (struct layer_sum){.tap.see = kind == LAYER_INPUTS ? add_inputs : add_covariance,
                                    .linear = linear,
                                    .rows = kind == LAYER_GRADIENT ? linear->out : linear->in,
                                    .columns = linear->in,
                                    .arena = arena};
        TRY(tensor_take(&memory, arena, TENSOR_F32, "sums of a layer", 2, (size_t[]){layer->rows, layer->columns},
                        error));
        TRY(model->backend->ops->zero(model->backend, memory.data, tensor_bytes(&memory), error));
        layer->sum = memory.data;
        pass->count++;
    }
    return OK;
}

/* A frozen weight with somewhere to put a gradient gets one. */
static void attach(const struct layer_pass *pass, enum layer_sum_kind kind, bool on)
{
    for (size_t i = 0; i < pass->count; i++)
        if (kind != LAYER_GRADIENT)
            pass->list[i].linear->tap = on ? &pass->list[i].tap : NULL;
        else
            pass->list[i].linear->weight.gradient = on ? pass->list[i].sum : NULL;
}

static status pass_batches(struct method_run *run, const struct task *task, size_t count, struct error *error)
{
    struct model *model = run->model;
    SCOPED(batches_close_at) struct batches *batches = NULL;
    struct batch batch;
    TRY(batches_open_task(&batches, model, run->data, task, 0, count, error));
    for (size_t i = 0; i < count; i++) {
        arena_reset(&model->step_memory);
        TRY(batches_take(batches, &batch, error));
        TRY(model_set_step(model, task->index, i, 0, error));
        TRY(classification_loss(run, task, &batch, error));
        batches_advance(batches);
        if (stop_requested(model->stop))
            return error_set(error, ERROR_STOPPED, "%s: stopped in a pass over its images", task->settings.name);
    }
    return OK;
}

static status fetch(struct layer_pass *pass, const struct model *model, size_t batches, struct error *error)
{
    const struct backend_ops *ops = model->backend->ops;
    for (size_t i = 0; i < pass->count; i++) {
        struct layer_sum *layer = &pass->list[i];
        size_t n = layer->rows * layer->columns;
        if (layer->inputs.data != NULL)
            TRY(add_covariance(&layer->tap, model->backend, matrix_of(&layer->inputs), error));
        if (model->work.group != NULL) {
            if (!replicas_agree(model->work.replicas))
                return error_set(error, ERROR_STOPPED, "another GPU stopped in a pass over its images");
            TRY(ops->all_reduce(model->backend,
                                &(struct all_reduce){.group = model->work.group,
                                                     .rank = model->work.rank,
                                                     .reduction = SUM_FLOATS,
                                                     .values = layer->sum,
                                                     .n = n},
                                error));
        }
        OWNED float *values = xmalloc(array_size(n, sizeof *values));
        layer->values = xmalloc(array_size(n, sizeof *layer->values));
        TRY(ops->download(model->backend, values, layer->sum, n * sizeof *values, error));
        for (size_t k = 0; k < n; k++)
            layer->values[k] = (double)values[k] / (double)batches;
    }
    return OK;
}

static status run_pass(struct layer_pass *pass, struct method_run *run, const struct task *task,
                       enum layer_sum_kind kind, size_t batches, struct error *error)
{
    struct model *model = run->model;
    TRY(take_layers(pass, model, kind, &model->task_memory, error));
    TRY(model->head->begin_task(model, task, 0, &model->task_memory, &model->classes, error));
    TRY(model_fill(model, &model->task_memory, task->settings.batch, 0, &model->routers, error));
    attach(pass, kind, true);
    status result = pass_batches(run, task, batches, error);
    attach(pass, kind, false);
    NEXT(result, fetch(pass, model, batches, error));
    return result;
}

status layer_pass_run(struct layer_pass *pass, struct method_run *run, const struct task *task,
                      enum layer_sum_kind kind, size_t batches, struct error *error)
{
    struct model *model = run->model;
    const struct head_classes classes = model->classes;
    const int32_t *routers = model->routers;
    struct arena_mark mark = arena_mark(&model->task_memory);
    size_t batch = task->settings.batch, images = dataset_size(task->dataset, SPLIT_TRAIN);
    *pass = (struct layer_pass){0};
    status result = run_pass(pass, run, task, kind, batches > 0 ? batches : (images + batch - 1) / batch, error);
    model->classes = classes;
    model->routers = routers;
    arena_release(&model->task_memory, mark);
    if (result != OK)
        layer_pass_free(pass);
    return result;
}

void layer_pass_free(struct layer_pass *pass)
{
    for (size_t i = 0; i < pass->count; i++)
        free(pass->list[i].values);
    free(pass->list);
    *pass = (struct layer_pass){0};
}

/* --- Designed deltas --- */

status designed_open(struct method_run *run, struct error *error)
{
    struct designed *s = run->state;
    const struct deltas *d = run->model->deltas;
    s->spaces = xcalloc(d->count, sizeof *s->spaces);
    for (size_t i = 0; i < d->count; i++)
        if (i == 0 || d->list[i].linear != d->list[i - 1].linear)
            s->spaces[s->count++].n = d->list[i].in;
    return OK;
}

void designed_close(struct method_run *run)
{
    struct designed *s = run->state;
    for (size_t i = 0; i < s->count; i++)
        subspace_free(&s->spaces[i]);
    free(s->spaces);
}

/* Uses the rows, trains none of them, and hands a pass over the task to `take`. */
static status pass_to(status (*take)(struct method_run *run, const struct task *task, const struct layer_pass *pass,
                                     struct error *error),
                      struct method_run *run, const struct task *task, size_t rows, enum layer_sum_kind kind,
                      size_t batches, struct error *error)
{
    SCOPED(layer_pass_free) struct layer_pass pass = {0};
    TRY(deltas_begin_task(run->model->deltas, rows, rows, 0, error));
    TRY(layer_pass_run(&pass, run, task, kind, batches, error));
    return take(run, task, &pass, error);
}

status designed_begin_task(struct method_run *run, const struct task *task, bool resumed, const struct design *design,
                           struct error *error)
{
    size_t first = design->sets * task->index, own = first + design->sets - 1;
    if (!resumed && task->index > 0) {
        const struct task *before = &run->data->tasks[task->index - 1];
        TRY(pass_to(design->protect, run, before, first - 1, design->inputs, design->batches(run, before), error));
    } else if (!resumed) {
        TRY(design->protect(run, NULL, NULL, error));
    }
    if (!resumed)
        TRY(pass_to(design->start, run, task, first, design->starts, design->batches(run, task), error));
    TRY(deltas_begin_task(run->model->deltas, own, own, DELTA_B, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

status designed_keep(struct method_run *run, const char *name, const struct serializer *serializer, struct error *error)
{
    struct designed *s = run->state;
    for (size_t i = 0; i < s->count; i++) {
        char numbered[64];
        snprintf(numbered, sizeof numbered, "%s.%zu", name, i);
        TRY(subspace_keep(&s->spaces[i], s->spaces[i].n, numbered, serializer, error));
    }
    return OK;
}
