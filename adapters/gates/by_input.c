/* Each task's rows but the last are an expert, weighted by what a linear gate makes of the token (MINGLE: Qiu et al., NeurIPS 2025,
 * arXiv 2505.11883). The gate's w is the last row of A, its b the first value of the last row of B, whose others stay 0:
 *
 *     p = x Aᵀ,   g_t = w_t · x + b_t = p_{last row of t} + b_t,   q_i = g_t p_i for the expert's rows of t, 0 for the last ones
 *
 * With the number BY_INPUT_ALONE not 0 the gates are 1. Behind the masks that select (struct deltas) both are matrix products:
 * q = p ⊙ (p M + bᵀ M), M [rows, rows] with 1 from the last row of a task to its other rows; alone q = p D. */
#include "adapters/deltas.h"

static const struct deltas *deltas_of(const struct delta *d)
{
    return ((const struct delta_entry *)d->state)->deltas;
}

static bool is_alone(const struct delta *d)
{
    return deltas_of(d)->settings.gate_numbers[BY_INPUT_ALONE] != 0;
}

/* Of all tasks' rows; M from row 0 on, D below it. */
static struct matrix selection(const struct delta *d, bool alone)
{
    const struct deltas *deltas = deltas_of(d);
    size_t all = deltas->settings.tasks * deltas->settings.rank;
    struct matrix m = matrix_columns(matrix_rows(deltas->masks + (alone ? all * all : 0), d->rows, all), 0, d->rows);
    return m;
}

/* h = p M + bᵀ M, [N, rows] */
static status weigh(const struct delta *d, struct backend *backend, struct arena *arena, struct matrix p,
                    struct matrix *h, struct error *error)
{
    struct tensor weights, bias;
    struct matrix m = selection(d, false);
    TRY(tensor_take(&weights, arena, TENSOR_F32, "weights of experts", 2, (size_t[]){p.rows, p.columns}, error));
    TRY(tensor_take(&bias, arena, TENSOR_F32, "their biases", 2, (size_t[]){1, p.columns}, error));
    *h = matrix_of(&weights);
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = matrix_columns(matrix_rows(d->b, d->rows, d->out), 0, 1),
                                          .transpose_a = true,
                                          .b = m,
                                          .exact = true,
                                          .out = matrix_of(&bias)},
                           error));
    return backend->ops->gemm(backend, &(struct gemm){.a = p, .b = m, .exact = true, .bias = bias.data, .out = *h},
                              error);
}

static status forward(const struct delta *d, struct backend *backend, struct arena *arena, bool training,
                      struct matrix p, struct matrix q, struct error *error)
{
    struct matrix h;
    if (is_alone(d))
        return backend->ops->gemm(backend, &(struct gemm){.a = p, .b = selection(d, true), .exact = true, .out = q},
                                  error);
    TRY(weigh(d, backend, arena, p, &h, error));
    return delta_multiply(backend, p, h, q, error);
}

/* The gradient of the last task's b, from that of h. */
static status add_bias(const struct delta *d, struct backend *backend, struct arena *arena, struct matrix dh,
                       struct error *error)
{
    struct matrix m = selection(d, false);
    struct tensor sums;
    size_t last = d->rows - 1;
    if (d->db == NULL)
        return OK;
    TRY(tensor_take(&sums, arena, TENSOR_F32, "sums", 2, (size_t[]){1, dh.columns}, error));
    TRY(backend->ops->zero(backend, sums.data, tensor_bytes(&sums), error));
    TRY(backend->ops->column_sum(backend, &(struct column_sum){.x = dh, .out = sums.data}, error));
    size_t all = deltas_of(d)->settings.tasks * deltas_of(d)->settings.rank;
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_of(&sums),
                                             .b = matrix_rows((float *)m.data + last * all, d->rows, 1),
                                             .exact = true,
                                             .accumulate = true,
                                             .out = matrix_rows(d->db + (d->trained - 1) * d->out, 1, 1)},
                              error);
}

static status backward(const struct delta *d, struct backend *backend, struct arena *arena, struct matrix p,
                       struct matrix dq, struct matrix dp, struct error *error)
{
    struct tensor gradient;
    struct matrix h;
    if (is_alone(d))
        return backend->ops->gemm(backend, &(struct gemm){.a = dq, .b = selection(d, true), .exact = true, .out = dp},
                                  error);
    TRY(tensor_take(&gradient, arena, TENSOR_F32, "gradient of the weights", 2, (size_t[]){p.rows, p.columns}, error));
    struct matrix dh = matrix_of(&gradient);
    TRY(weigh(d, backend, arena, p, &h, error));
    TRY(delta_multiply(backend, dq, p, dh, error));
    TRY(delta_multiply(backend, dq, h, dp, error));
    TRY(add_bias(d, backend, arena, dh, error));
    return backend->ops->gemm(
        backend,
        &(struct gemm){
            .a = dh, .b = selection(d, false), .transpose_b = true, .exact = true, .accumulate = true, .out = dp},
        error);
}

const struct delta_gate gate_by_input = {.name = "by_input", .forward = forward, .backward = backward};
