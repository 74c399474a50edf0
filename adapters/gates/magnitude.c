/* q = p diag(m). With `magnitude`, m_k is that of all rows of task k (SD-LoRA: Wu et al., ICLR 2025); with `importance`, every row of
 * the one task in use has its own (CoDyRA: Lu et al., ICLR 2026). The diagonal is the product of the magnitudes [1, count] with masks
 * [count, rows²], so that every backend has it and its gradient. */
#include "adapters/deltas.h"

static const struct deltas *deltas_of(const struct delta *d)
{
    return ((const struct delta_entry *)d->state)->deltas;
}

/* All rows that have magnitudes; those in use are the first. */
static status take_square(const struct delta *d, struct arena *arena, struct tensor *square, struct error *error)
{
    size_t rows = delta_magnitudes(deltas_of(d)).rows;
    return tensor_take(square, arena, TENSOR_F32, "diagonal", 2, (size_t[]){rows, rows}, error);
}

static struct matrix in_use(const struct delta *d, const struct tensor *square)
{
    struct matrix m = matrix_columns(matrix_of(square), 0, d->rows);
    m.rows = d->rows;
    return m;
}

static status diagonal(const struct delta *d, struct backend *backend, struct arena *arena, struct tensor *square,
                       struct error *error)
{
    const struct delta_entry *e = d->state;
    struct delta_magnitudes m = delta_magnitudes(e->deltas);
    float *values = parameters_weight(e->deltas->parameters, e->magnitude).value + m.first;
    TRY(take_square(d, arena, square, error));
    size_t n = tensor_elements(square);
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_rows(values, 1, m.count),
                                             .b = matrix_rows(e->deltas->masks, m.count, n),
                                             .exact = true,
                                             .out = matrix_rows(square->data, 1, n)},
                              error);
}

static status forward(const struct delta *d, struct backend *backend, struct arena *arena, bool training,
                      struct matrix p, struct matrix q, struct error *error)
{
    struct tensor square;
    TRY(diagonal(d, backend, arena, &square, error));
    return backend->ops->gemm(backend, &(struct gemm){.a = p, .b = in_use(d, &square), .exact = true, .out = q}, error);
}

static status backward(const struct delta *d, struct backend *backend, struct arena *arena, struct matrix p,
                       struct matrix dq, struct matrix dp, struct error *error)
{
    const struct delta_entry *e = d->state;
    struct delta_magnitudes m = delta_magnitudes(e->deltas);
    float *gradient = parameters_weight(e->deltas->parameters, e->magnitude).gradient;
    struct tensor square, dsquare;
    TRY(diagonal(d, backend, arena, &square, error));
    TRY(backend->ops->gemm(backend, &(struct gemm){.a = dq, .b = in_use(d, &square), .exact = true, .out = dp}, error));
    if (gradient == NULL || !d->trains)
        return OK;
    TRY(take_square(d, arena, &dsquare, error));
    size_t n = tensor_elements(&dsquare);
    TRY(backend->ops->zero(backend, dsquare.data, tensor_bytes(&dsquare), error));
    TRY(backend->ops->gemm(
        backend, &(struct gemm){.a = p, .transpose_a = true, .b = dq, .exact = true, .out = in_use(d, &dsquare)},
        error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_rows(e->deltas->masks, m.count, n),
                                             .b = matrix_rows(dsquare.data, n, 1),
                                             .exact = true,
                                             .accumulate = true,
                                             .out = matrix_rows(gradient + m.first, m.count, 1)},
                              error);
}

const struct delta_gate gate_magnitude = {.name = "magnitude", .forward = forward, .backward = backward};
const struct delta_gate gate_importance = {.name = "importance", .forward = forward, .backward = backward};
