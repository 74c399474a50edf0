#include "models/rank_one.h"

/* Per row and expert: [rows, experts] each. */
struct activation_pass {
    struct tensor projection, unit, weight; /* p, n, w */
    struct tensor norms;                    /* [rows] */
};

static struct matrix stacked(const float *values, size_t rows, size_t columns)
{
    return matrix_rows((float *)values, rows, columns);
}

static status take(struct tensor *tensor, const struct rank_one *layer, struct arena *arena, size_t rows,
                   const char *name, struct error *error)
{
    return tensor_take(tensor, arena, TENSOR_F32, name, 2, (size_t[]){rows, layer->experts}, error);
}

static status activate(const struct rank_one *layer, struct backend *backend, struct arena *arena, struct matrix x,
                       float threshold, struct activation_pass *pass, struct error *error)
{
    TRY(take(&pass->projection, layer, arena, x.rows, "projections on the keys", error));
    TRY(take(&pass->unit, layer, arena, x.rows, "unit projections", error));
    TRY(take(&pass->weight, layer, arena, x.rows, "weights of the experts", error));
    TRY(tensor_take(&pass->norms, arena, TENSOR_F32, "norms", 1, &x.rows, error));
    struct matrix p = matrix_of(&pass->projection), n = matrix_of(&pass->unit);
    TRY(backend->ops->gemm(
        backend,
        &(struct gemm){
            .a = x, .b = stacked(layer->keys.value, layer->experts, layer->in), .transpose_b = true, .out = p},
        error));
    TRY(backend->ops->normalize(backend, &(struct normalize){.x = p, .y = n, .norms = pass->norms.data}, error));
    return backend->ops->sparse_softmax(backend,
                                        &(struct sparse_softmax){.x = n,
                                                                 .y = matrix_of(&pass->weight),
                                                                 .top_k = layer->top_k,
                                                                 .temperature = layer->temperature,
                                                                 .threshold = threshold},
                                        error);
}

static status multiply(struct backend *backend, const struct tensor *a, const struct tensor *b,
                       const struct tensor *out, struct error *error)
{
    return backend->ops->multiply(
        backend, &(struct multiply){.n = tensor_elements(out), .a = a->data, .b = b->data, .out = out->data}, error);
}

status rank_one_forward(const struct rank_one *layer, struct backend *backend, struct arena *arena, struct matrix x,
                        bool training, struct matrix y, struct error *error)
{
    struct arena_mark mark = arena_mark(arena);
    struct activation_pass pass;
    TRY(activate(layer, backend, arena, x, training ? 0 : layer->threshold, &pass, error));
    TRY(multiply(backend, &pass.projection, &pass.weight, &pass.weight, error));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = matrix_of(&pass.weight),
                                          .b = stacked(layer->values.value, layer->experts, layer->out),
                                          .out = y,
                                          .accumulate = true},
                           error));
    arena_release(arena, mark);
    return OK;
}

/* The trained rows of the gradient [experts, columns of other] += aᵀ other, of a's trained columns */
static status add_gradient(const struct rank_one *layer, struct backend *backend, float *gradient,
                           const struct tensor *a, struct matrix other, struct error *error)
{
    size_t count = layer->experts - layer->first;
    if (gradient == NULL || count == 0)
        return OK;
    return backend->ops->gemm(
        backend,
        &(struct gemm){.a = matrix_columns(matrix_of(a), layer->first, count),
                       .transpose_a = true,
                       .b = other,
                       .out = matrix_rows(gradient + layer->first * other.columns, count, other.columns),
                       .accumulate = true},
        error);
}

/* dp = dz ⊙ w + the gradient through w and n, from dz, the gradient of p ⊙ w, which is overwritten. */
static status projections_backward(const struct rank_one *layer, struct backend *backend,
                                   const struct activation_pass *pass, const struct tensor *dz, const struct tensor *dp,
                                   struct error *error)
{
    struct matrix slope = matrix_of(dz);
    TRY(multiply(backend, dz, &pass->weight, dp, error));
    TRY(multiply(backend, dz, &pass->projection, dz, error));
    TRY(backend->ops->sparse_softmax_backward(
        backend,
        &(struct sparse_softmax_backward){
            .y = matrix_of(&pass->weight), .dy = slope, .dx = slope, .temperature = layer->temperature},
        error));
    return backend->ops->normalize_backward(
        backend,
        &(struct normalize_backward){
            .y = matrix_of(&pass->unit), .dy = slope, .dx = matrix_of(dp), .norms = pass->norms.data},
        error);
}

status rank_one_backward(const struct rank_one *layer, struct backend *backend, struct arena *arena, struct matrix x,
                         struct matrix dy, struct matrix dx, struct error *error)
{
    struct arena_mark mark = arena_mark(arena);
    struct activation_pass pass;
    struct tensor dz, dp;
    TRY(activate(layer, backend, arena, x, 0, &pass, error));
    TRY(take(&dz, layer, arena, x.rows, "gradient of the weighted projections", error));
    TRY(take(&dp, layer, arena, x.rows, "gradient of the projections", error));
    TRY(multiply(backend, &pass.projection, &pass.weight, &dp, error)); /* for the moment p ⊙ w */
    TRY(add_gradient(layer, backend, layer->values.gradient, &dp, dy, error));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = dy,
                                          .b = stacked(layer->values.value, layer->experts, layer->out),
                                          .transpose_b = true,
                                          .out = matrix_of(&dz)},
                           error));
    TRY(projections_backward(layer, backend, &pass, &dz, &dp, error));
    TRY(add_gradient(layer, backend, layer->keys.gradient, &dp, x, error));
    if (dx.data != NULL)
        TRY(backend->ops->gemm(backend,
                               &(struct gemm){.a = matrix_of(&dp),
                                              .b = stacked(layer->keys.value, layer->experts, layer->in),
                                              .out = dx,
                                              .accumulate = true},
                               error));
    arena_release(arena, mark);
    return OK;
}
