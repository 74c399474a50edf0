#include "models/delta.h"

static status take(struct matrix *rows, struct arena *arena, size_t n, size_t columns, struct error *error)
{
    struct tensor tensor;
    TRY(tensor_take(&tensor, arena, TENSOR_F32, "low rank", 2, (size_t[]){n, columns}, error));
    *rows = matrix_of(&tensor);
    return OK;
}

/* p = x Aᵀ and q = gate(p), which is p itself without one. */
static status between(const struct delta *d, struct backend *backend, struct arena *arena, bool training,
                      struct matrix x, struct matrix *p, struct matrix *q, struct error *error)
{
    TRY(take(p, arena, x.rows, d->rows, error));
    TRY(backend->ops->gemm(
        backend, &(struct gemm){.a = x, .b = matrix_rows(d->a, d->rows, x.columns), .transpose_b = true, .out = *p},
        error));
    *q = *p;
    if (d->gate == NULL)
        return OK;
    TRY(take(q, arena, x.rows, d->rows, error));
    return d->gate->forward(d, backend, arena, training, *p, *q, error);
}

status delta_forward(const struct delta *d, struct backend *backend, struct arena *arena, bool training,
                     struct matrix x, struct gemm_term *term, struct error *error)
{
    struct matrix p;
    *term = (struct gemm_term){.b = matrix_rows(d->b, d->rows, d->out), .first = d->first, .scale = d->scale};
    return between(d, backend, arena, training, x, &p, &term->a, error);
}

/* gradient [trained, columns of right] += scale · leftᵀ right over the trained rows */
static status add_gradient(const struct delta *d, struct backend *backend, struct matrix left, struct matrix right,
                           float scale, float *gradient, struct error *error)
{
    if (gradient == NULL)
        return OK;
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_columns(left, d->rows - d->trained, d->trained),
                                             .transpose_a = true,
                                             .b = right,
                                             .scale = scale,
                                             .accumulate = true,
                                             .out = matrix_rows(gradient, d->trained, right.columns)},
                              error);
}

status delta_backward(const struct delta *d, struct backend *backend, struct arena *arena, struct matrix x,
                      struct matrix dy, size_t in, struct gemm_term *term, struct error *error)
{
    struct matrix p = {0}, q = {0}, dq, dp, dout = matrix_columns(dy, d->first, d->out);
    if (d->trains)
        TRY(between(d, backend, arena, true, x, &p, &q, error));
    TRY(take(&dq, arena, dy.rows, d->rows, error));
    TRY(backend->ops->gemm(
        backend,
        &(struct gemm){
            .a = dout, .b = matrix_rows(d->b, d->rows, d->out), .transpose_b = true, .scale = d->scale, .out = dq},
        error));
    TRY(add_gradient(d, backend, q, dout, d->scale, d->db, error));
    dp = dq;
    if (d->gate != NULL) {
        TRY(take(&dp, arena, dy.rows, d->rows, error));
        TRY(d->gate->backward(d, backend, arena, p, dq, dp, error));
    }
    *term = (struct gemm_term){.a = dp, .b = matrix_rows(d->a, d->rows, in), .scale = 1};
    return add_gradient(d, backend, dp, x, 1, d->da, error);
}
