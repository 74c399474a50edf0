#include "adapters/gated_prefixes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/rng.h"

enum { GATE_NUMBERS = 65 }; /* of RNG_INIT, which others do not use */

#define SCALE 0.05f    /* of the deltas */
#define CERTAIN 0.825f /* weight of a sample from which on all of its values count */

static const struct {
    const char *name;
    bool trained, image; /* image: in that tower alone */
} tensors[GATED_TENSORS] = {
    [GATED_VALUES] = {"prefix_pool", true, false},           [GATED_SCORES] = {"prefix_gate", true, false},
    [GATED_BIAS] = {"prefix_gate_bias", true, false},        [GATED_UP] = {"prefix_up", true, false},
    [GATED_UP_BIAS] = {"prefix_up_bias", true, false},       [GATED_DOWN] = {"prefix_down", false, false},
    [GATED_HEADS] = {"prefix_heads", false, false},          [GATED_MEAN] = {"prefix_gate_mean", false, true},
    [GATED_VARIANCE] = {"prefix_gate_variance", false, true}};

static void name_tensor(char *name, size_t size, enum tower tower, size_t block, enum gated_tensor which)
{
    snprintf(name, size, "%stransformer.resblocks.%zu.attn.%s", tower == TOWER_IMAGE ? "visual." : "", block,
             tensors[which].name);
}

static size_t scores_of(const struct prefix_settings *s, enum tower tower)
{
    return s->heads[tower] * s->length[tower];
}

size_t gated_heads(size_t most, size_t length, size_t width)
{
    size_t heads = 1;
    while (2 * heads <= most && width % (2 * heads) == 0 && 2 * heads * length <= width)
        heads *= 2;
    return heads;
}

/* --- A task's slices --- */

static const struct parameter *tensor_of(const struct prefix_layer *layer, enum gated_tensor which)
{
    return &layer->prefixes->parameters->list[layer->index + which];
}

static size_t offset_of(const struct prefix_layer *layer, enum gated_tensor which, size_t task)
{
    const struct parameter *p = tensor_of(layer, which);
    return p->shape[0] > 1 ? task * (p->size / p->shape[0]) : 0;
}

static size_t task_of(const struct prefixes *p)
{
    return (size_t)(p->tested >= 0 ? p->tested : p->trained);
}

static float *value_of(const struct prefix_layer *layer, enum gated_tensor which)
{
    const struct prefixes *p = layer->prefixes;
    return parameters_weight(p->parameters, layer->index + which).value + offset_of(layer, which, task_of(p));
}

static float *gradient_of(const struct prefix_layer *layer, enum gated_tensor which)
{
    const struct prefixes *p = layer->prefixes;
    return parameters_weight(p->parameters, layer->index + which).gradient + offset_of(layer, which, task_of(p));
}

/* Of one task, from the host. */
static status write(const struct prefix_layer *layer, enum gated_tensor which, size_t task, const float *values,
                    struct error *error)
{
    struct parameters *group = layer->prefixes->parameters;
    const struct parameter *p = tensor_of(layer, which);
    size_t n = p->size / p->shape[0];
    return group->backend->ops->upload(group->backend,
                                       parameters_write(group, p->offset + offset_of(layer, which, task), n), values,
                                       n * sizeof *values, error);
}

/* --- The hook --- */

/* The rows that are wanted; the delta's products on both sides. */
struct gated_pass {
    struct matrix x, scores, low, residual;
};

static status take(struct matrix *matrix, const struct block_context *context, enum tensor_type type, size_t rows,
                   size_t columns, const char *name, struct error *error)
{
    struct tensor tensor;
    TRY(tensor_take(&tensor, context->arena, type, name, 2, (size_t[]){rows, columns}, error));
    *matrix = matrix_of(&tensor);
    return OK;
}

static struct matrix weight(const struct prefix_layer *layer, enum gated_tensor which, size_t columns)
{
    const struct parameter *p = tensor_of(layer, which);
    return matrix_rows(value_of(layer, which), p->size / p->shape[0] / columns, columns);
}

static status drop(const struct prefix_layer *layer, const struct block_context *context, size_t samples,
                   struct matrix x, struct error *error)
{
    enum { PLACES = 4, NUMBERS = 40 }; /* as in block_drop, behind the numbers of both towers */
    uint64_t number = ((uint64_t)(TOWERS + layer->tower) << 16 | layer->block) * PLACES;
    float probability = layer->prefixes->settings.dropout;
    if (!context->training || probability == 0 || samples == 0)
        return OK;
    return context->backend->ops->dropout(
        context->backend,
        &(struct dropout){.x = x,
                          .out = x,
                          .probability = probability,
                          .base = (number << NUMBERS) + context->first * (x.rows / samples * x.columns),
                          .state = context->state},
        error);
}

static status pass(const struct prefix_layer *layer, const struct block_context *context,
                   const struct attention_values *values, struct gated_pass *g, struct error *error)
{
    const struct prefix_settings *s = &layer->prefixes->settings;
    struct backend *backend = context->backend;
    const struct tensor *attended = &values->attended;
    size_t rows = attended->shape[0] * attended->shape[1], width = attended->shape[2];
    g->x = matrix_of(&values->normal);
    if (context->rows != NULL) {
        TRY(take(&g->x, context, values->normal.type, rows, width, "rows of prefixes", error));
        TRY(backend->ops->gather_rows(
            backend, &(struct gather_rows){.x = matrix_of(&values->normal), .out = g->x, .rows = context->rows},
            error));
    }
    TRY(take(&g->scores, context, TENSOR_F32, rows, scores_of(s, layer->tower), "scores of prefixes", error));
    TRY(take(&g->low, context, backend_operand_type(backend), rows, s->rank, "low rank of prefixes", error));
    TRY(take(&g->residual, context, TENSOR_F32, rows, width, "deltas of prefixes", error));
    TRY(backend->ops->gemm(
        backend,
        &(struct gemm){.a = g->x, .b = weight(layer, GATED_SCORES, width), .transpose_b = true, .out = g->scores},
        error));
    TRY(backend->ops->gemm(
        backend, &(struct gemm){.a = g->x, .b = weight(layer, GATED_DOWN, width), .transpose_b = true, .out = g->low},
        error));
    TRY(drop(layer, context, attended->shape[0], g->low, error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = g->low,
                                             .b = weight(layer, GATED_UP, s->rank),
                                             .transpose_b = true,
                                             .bias = value_of(layer, GATED_UP_BIAS),
                                             .out = g->residual},
                              error);
}

static struct gated_prefix_operands operands(const struct prefix_layer *layer, const struct block_context *context,
                                             const struct attention_values *values, const struct gated_pass *g)
{
    const struct prefixes *p = layer->prefixes;
    bool image = layer->tower == TOWER_IMAGE;
    return (struct gated_prefix_operands){.batch = values->attended.shape[0],
                                          .positions = values->normal.shape[1],
                                          .width = values->attended.shape[2],
                                          .heads = p->settings.heads[layer->tower],
                                          .length = p->settings.length[layer->tower],
                                          .type = values->attended.type,
                                          .rows = context->rows,
                                          .rows_per_sample = context->rows_per_sample,
                                          .router = context->router,
                                          .weights = p->towers[layer->tower].weights,
                                          .used = value_of(layer, GATED_HEADS),
                                          .scores = g->scores.data,
                                          .bias = value_of(layer, GATED_BIAS),
                                          .values = value_of(layer, GATED_VALUES),
                                          .residual = g->residual.data,
                                          .scale = SCALE,
                                          .certain = CERTAIN,
                                          .mean = image ? value_of(layer, GATED_MEAN) : NULL,
                                          .variance = image ? value_of(layer, GATED_VARIANCE) : NULL};
}

static status forward(void *state, const struct block_context *context, const struct block *block,
                      const struct attention_values *values, struct error *error)
{
    const struct prefix_layer *layer = state;
    struct arena_mark mark = arena_mark(context->arena);
    struct gated_pass g;
    float *seen = layer->tower == TOWER_IMAGE ? layer->prefixes->seen : NULL;
    TRY(pass(layer, context, values, &g, error));
    if (seen != NULL)
        seen += layer->block * values->attended.shape[0] * g.scores.columns;
    TRY(context->backend->ops->gated_prefix(context->backend,
                                            &(struct gated_prefix){.prefix = operands(layer, context, values, &g),
                                                                   .out = values->attended.data,
                                                                   .seen = seen},
                                            error));
    arena_release(context->arena, mark);
    return OK;
}

/* Gradients of the weights behind products: scores = x · scoresᵀ, residual = low · upᵀ + bias. */
static status weights_backward(const struct prefix_layer *layer, struct backend *backend, const struct gated_pass *g,
                               const struct gated_pass *d, struct error *error)
{
    size_t width = g->x.columns;
    TRY(backend->ops->gemm(
        backend,
        &(struct gemm){.a = d->scores,
                       .transpose_a = true,
                       .b = g->x,
                       .accumulate = true,
                       .out = matrix_rows(gradient_of(layer, GATED_SCORES), g->scores.columns, width)},
        error));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = d->residual,
                                          .transpose_a = true,
                                          .b = g->low,
                                          .accumulate = true,
                                          .out = matrix_rows(gradient_of(layer, GATED_UP), width, g->low.columns)},
                           error));
    return backend->ops->column_sum(
        backend, &(struct column_sum){.x = d->residual, .out = gradient_of(layer, GATED_UP_BIAS)}, error);
}

/* dnormal += … */
static status input_backward(const struct prefix_layer *layer, const struct block_context *context, size_t samples,
                             struct gated_pass *d, const struct tensor *dnormal, struct error *error)
{
    struct backend *backend = context->backend;
    const struct backend_ops *ops = backend->ops;
    size_t width = d->residual.columns;
    const int32_t *rows = context->rows;
    struct tensor all;
    TRY(take(&d->low, context, TENSOR_F32, d->scores.rows, layer->prefixes->settings.rank, "gradient of a low rank",
             error));
    TRY(take(&d->x, context, TENSOR_F32, d->scores.rows, width, "gradient of rows", error));
    TRY(ops->gemm(
        backend, &(struct gemm){.a = d->residual, .b = weight(layer, GATED_UP, d->low.columns), .out = d->low}, error));
    TRY(drop(layer, context, samples, d->low, error));
    TRY(ops->gemm(backend, &(struct gemm){.a = d->scores, .b = weight(layer, GATED_SCORES, width), .out = d->x},
                  error));
    TRY(ops->gemm(backend,
                  &(struct gemm){.a = d->low, .b = weight(layer, GATED_DOWN, width), .accumulate = true, .out = d->x},
                  error));
    if (rows == NULL) {
        TRY(tensor_take(&all, context->arena, TENSOR_I32, "rows", 1, &d->x.rows, error));
        TRY(ops->arange(backend, &(struct arange){.count = d->x.rows, .step = 1, .out = all.data}, error));
        rows = all.data;
    }
    return ops->scatter_rows(backend, &(struct scatter_rows){.x = d->x, .out = matrix_of(dnormal), .rows = rows},
                             error);
}

static status backward(void *state, const struct block_context *context, const struct block *block,
                       const struct attention_values *values, const struct attention_values *gradients,
                       struct error *error)
{
    const struct prefix_layer *layer = state;
    struct arena_mark mark = arena_mark(context->arena);
    struct gated_pass g, d;
    TRY(pass(layer, context, values, &g, error));
    TRY(take(&d.scores, context, TENSOR_F32, g.scores.rows, g.scores.columns, "gradient of scores", error));
    TRY(take(&d.residual, context, TENSOR_F32, g.residual.rows, g.residual.columns, "gradient of deltas", error));
    TRY(context->backend->ops->gated_prefix_backward(
        context->backend,
        &(struct gated_prefix_backward){.prefix = operands(layer, context, values, &g),
                                        .dout = gradients->attended.data,
                                        .dscores = d.scores.data,
                                        .dresidual = d.residual.data,
                                        .dvalues = gradient_of(layer, GATED_VALUES),
                                        .dbias = gradient_of(layer, GATED_BIAS)},
        error));
    TRY(weights_backward(layer, context->backend, &g, &d, error));
    if (gradients->normal.data != NULL)
        TRY(input_backward(layer, context, values->attended.shape[0], &d, &gradients->normal, error));
    arena_release(context->arena, mark);
    return OK;
}

status gated_layer_declare(struct prefix_layer *layer, size_t width, struct attention_hook *hook, struct error *error)
{
    struct prefixes *p = layer->prefixes;
    const struct prefix_settings *s = &p->settings;
    size_t t = s->tasks, n = s->length[layer->tower], scores = scores_of(s, layer->tower);
    if (width % s->heads[layer->tower] != 0)
        return error_set(error, ERROR_ARGUMENT, "prefixes of %zu heads: expected a divisor of the width, %zu",
                         s->heads[layer->tower], width);
    const struct {
        int rank;
        size_t shape[TENSOR_RANK];
    } sizes[GATED_TENSORS] = {[GATED_VALUES] = {3, {t, n, width}},
                              [GATED_SCORES] = {3, {t, scores, width}},
                              [GATED_BIAS] = {3, {t, s->positions[layer->tower], scores}},
                              [GATED_UP] = {3, {t, width, s->rank}},
                              [GATED_UP_BIAS] = {2, {t, width}},
                              [GATED_DOWN] = {3, {1, s->rank, width}},
                              [GATED_HEADS] = {2, {t, 1}},
                              [GATED_MEAN] = {2, {t, scores}},
                              [GATED_VARIANCE] = {2, {t, scores}}};
    for (int k = 0; k < GATED_TENSORS; k++) {
        char name[64];
        size_t index;
        if (tensors[k].image && layer->tower != TOWER_IMAGE)
            continue;
        name_tensor(name, sizeof name, layer->tower, layer->block, (enum gated_tensor)k);
        TRY(parameters_add(p->parameters, name, sizes[k].rank, sizes[k].shape, tensors[k].trained ? t : 1,
                           tensors[k].trained ? 0 : t, &index, error));
        layer->index = k == 0 ? index : layer->index;
    }
    *hook = (struct attention_hook){
        .state = layer, .trained = true, .reads_normal = true, .forward = forward, .backward = backward};
    return OK;
}

/* --- Initial values --- */

/* weight [3 · width, width] on the host; vectors and their factors as rows. */
struct decomposed {
    size_t width;
    float *weight;
    struct svd scores, values;
    double norm; /* mean norm of the value weight's columns */
};

static double *widen(const float *values, size_t n)
{
    double *wide = xmalloc(array_size(n + 1, sizeof *wide));
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    return wide;
}

static status decompose(struct decomposed *d, struct threads *pool, struct error *error)
{
    size_t width = d->width, square = width * width;
    OWNED double *whole = widen(d->weight, 3 * square), *product = xmalloc(array_size(square, sizeof *product));
    linear_multiply(
        pool, &(struct linear_product){
                  .rows = width, .columns = width, .inner = width, .a = whole, .b = whole + square, .out = product});
    for (size_t c = 0; c < width; c++) {
        double sum = 0;
        for (size_t r = 0; r < width; r++)
            sum += whole[2 * square + r * width + c] * whole[2 * square + r * width + c];
        d->norm += sqrt(sum) / (double)width;
    }
    TRY(svd_create(&d->scores, product, width, width, error));
    return svd_create(&d->values, whole + 2 * square, width, width, error);
}

/* rows [count, width]: the first columns of U, times the factor */
static void take_columns(const struct svd *svd, size_t width, size_t count, double factor, float *rows)
{
    for (size_t r = 0; r < count; r++)
        for (size_t k = 0; k < width; k++)
            rows[r * width + k] = (float)(factor * svd->u[k * width + r]);
}

static status fill(const struct prefix_layer *layer, enum gated_tensor which, size_t task, float value,
                   struct error *error)
{
    const struct parameter *p = tensor_of(layer, which);
    size_t n = p->size / p->shape[0];
    OWNED float *values = xmalloc(array_size(n, sizeof *values));
    for (size_t i = 0; i < n; i++)
        values[i] = value;
    return write(layer, which, task, values, error);
}

static status initialize_layer(const struct prefix_layer *layer, const struct decomposed *d, size_t task, uint64_t seed,
                               struct error *error)
{
    const struct prefix_settings *s = &layer->prefixes->settings;
    bool image = layer->tower == TOWER_IMAGE;
    size_t width = d->width, scores = scores_of(s, layer->tower), up = width * s->rank;
    struct rng rng = rng_make(seed, RNG_INIT, GATE_NUMBERS, (uint32_t)layer->index);
    OWNED float *rows = xmalloc(array_size(width, (scores + s->rank) * sizeof *rows));
    take_columns(&d->scores, width, scores, 1, rows);
    TRY(write(layer, GATED_SCORES, task, rows, error));
    take_columns(&d->values, width, s->length[layer->tower], d->norm, rows);
    TRY(write(layer, GATED_VALUES, task, rows, error));
    for (size_t i = 0; i < s->rank * width; i++)
        rows[i] = (float)d->values.vt[i];
    TRY(write(layer, GATED_DOWN, task, rows, error));
    for (size_t i = 0; i < up; i++)
        rows[i] = 0.02f * rng_normal(&rng, i);
    TRY(write(layer, GATED_UP, task, rows, error));
    TRY(fill(layer, GATED_UP_BIAS, task, 0, error));
    TRY(fill(layer, GATED_BIAS, task, image ? -4.0f : -2.0f, error));
    TRY(fill(layer, GATED_HEADS, task, 1, error));
    return image ? fill(layer, GATED_VARIANCE, task, 1, error) : OK;
}

static void decomposed_free(struct decomposed *d)
{
    free(d->weight);
    svd_free(&d->scores);
    svd_free(&d->values);
}

static status initialize_block(struct prefixes *p, const struct clip *clip, enum tower tower, size_t block, size_t task,
                               struct threads *pool, uint64_t seed, struct error *error)
{
    SCOPED(decomposed_free) struct decomposed d = {.width = clip->towers[tower].width};
    size_t values = array_size(3 * d.width, d.width);
    d.weight = xmalloc(array_size(values, sizeof *d.weight));
    TRY(p->backend->ops->download(p->backend, d.weight, clip->towers[tower].blocks[block].in_proj.weight.value,
                                  values * sizeof *d.weight, error));
    TRY(decompose(&d, pool, error));
    return initialize_layer(&p->towers[tower].layers[block], &d, task, seed, error);
}

status gated_prefixes_initialize(struct prefixes *p, const struct clip *clip, size_t task, struct threads *pool,
                                 uint64_t seed, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < p->settings.blocks[t]; b++)
            TRY(initialize_block(p, clip, (enum tower)t, b, task, pool, seed, error));
    return OK;
}

/* --- What the training images decide --- */

/* The public code rounds the product down and its logarithm to the nearest whole number. */
static double heads_for(double fineness, size_t heads, size_t most)
{
    double wanted = floor(fineness * (double)heads), rounded = wanted < 1 ? 1 : exp2(rint(log2(wanted)));
    return rounded < (double)most ? rounded : (double)most;
}

status gated_prefixes_choose_heads(struct prefixes *p, const struct clip *clip, size_t task, double fineness,
                                   struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < p->settings.blocks[t]; b++) {
            float heads = (float)heads_for(fineness, clip->towers[t].blocks[b].heads, p->settings.heads[t]);
            TRY(write(&p->towers[t].layers[b], GATED_HEADS, task, &heads, error));
        }
    return OK;
}

status gated_prefixes_describe(struct prefixes *p, size_t task, const double *sums, const double *squares, size_t n,
                               struct error *error)
{
    size_t scores = scores_of(&p->settings, TOWER_IMAGE);
    OWNED float *means = xmalloc(array_size(scores, 2 * sizeof *means));
    float *variances = means + scores;
    for (size_t b = 0; b < p->settings.blocks[TOWER_IMAGE]; b++) {
        for (size_t k = 0; k < scores; k++) {
            double mean = sums[b * scores + k] / (double)n;
            means[k] = (float)mean;
            variances[k] = (float)fmax(0, squares[b * scores + k] / (double)n - mean * mean);
        }
        TRY(write(&p->towers[TOWER_IMAGE].layers[b], GATED_MEAN, task, means, error));
        TRY(write(&p->towers[TOWER_IMAGE].layers[b], GATED_VARIANCE, task, variances, error));
    }
    return OK;
}

/* --- Files --- */

static status find(const struct safetensors *file, enum tower tower, enum gated_tensor which,
                   const struct safetensor **found, struct error *error)
{
    char name[128];
    name_tensor(name, sizeof name - 2, tower, 0, which);
    strcat(name, ".0");
    *found = safetensors_find(file, name);
    if (*found != NULL && (*found)->rank == 2)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected two sizes, found %s", safetensors_path(file), name,
                     *found != NULL ? shape_text((*found)->rank, (*found)->shape).text : "none");
}

status gated_settings_read(const struct safetensors *file, enum tower tower, struct prefix_settings *settings,
                           struct error *error)
{
    const struct safetensor *bias, *down;
    TRY(find(file, tower, GATED_BIAS, &bias, error));
    TRY(find(file, tower, GATED_DOWN, &down, error));
    settings->positions[tower] = bias->shape[0];
    settings->heads[tower] = bias->shape[1] / settings->length[tower];
    settings->rank = down->shape[0];
    return settings->heads[tower] > 0
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: tensor %s: expected a bias for each of %zu values, found %s",
                           safetensors_path(file), bias->name, settings->length[tower],
                           shape_text(bias->rank, bias->shape).text);
}

status gated_heads_check(const struct prefixes *p, const struct safetensors *file, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t i = 0; p->settings.heads[t] > 0 && i < p->settings.blocks[t] * p->settings.tasks; i++) {
            const struct prefix_layer *layer = &p->towers[t].layers[i / p->settings.tasks];
            const struct parameter *heads = tensor_of(layer, GATED_HEADS), *up = tensor_of(layer, GATED_UP_BIAS);
            size_t width = up->shape[1], task = i % p->settings.tasks;
            float found;
            TRY(p->backend->ops->download(p->backend, &found, p->parameters->values + heads->offset + task,
                                          sizeof found, error));
            bool whole = found >= 0 && found <= (float)p->settings.heads[t] && found == floorf(found);
            if (!whole || (found > 0 && width % (size_t)found != 0)) /* 0: not trained yet */
                return error_set(error, ERROR_FORMAT,
                                 "%s: tensor %s.%zu: expected a divisor of %zu up to %zu, found %g",
                                 safetensors_path(file), heads->name, task, width, p->settings.heads[t], (double)found);
        }
    return OK;
}
