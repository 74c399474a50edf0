/* A magnitude for the rows of each task: q = p diag(m), m_k for the rows of task k (SD-LoRA: Wu et al., ICLR 2025). The diagonal is
 * the product of the magnitudes [1, tasks] with masks [tasks, rows²], so that every backend has it and its gradient. */
#include "adapters/deltas.h"

/* All rows of the group's tasks; those in use are the first. */
static status take_square(const struct delta *d, struct arena *arena, struct tensor *square, struct error *error)
{
    const struct delta_entry *e = d->state;
    size_t rows = e->deltas->settings.tasks * e->deltas->settings.rank;
    return tensor_take(square, arena, TENSOR_F32, "diagonal", 2, (size_t[]){rows, rows}, error);
}

static struct matrix in_use(const struct delta *d, const struct tensor *square)
{
    struct matrix m = matrix_columns(matrix_of(square), 0, d->rows);
    m.rows = d->rows;
    return m;
}

static struct matrix masks(const struct delta_entry *e, size_t values)
{
    return matrix_rows(e->deltas->masks, e->deltas->settings.tasks, values);
}

static status diagonal(const struct delta *d, struct backend *backend, struct arena *arena, struct tensor *square,
                       struct error *error)
{
    const struct delta_entry *e = d->state;
    float *m = parameters_weight(e->deltas->parameters, e->magnitude).value;
    TRY(take_square(d, arena, square, error));
    size_t values = tensor_elements(square);
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_rows(m, 1, e->deltas->settings.tasks),
                                             .b = masks(e, values),
                                             .exact = true,
                                             .out = matrix_rows(square->data, 1, values)},
                              error);
}

static status forward(const struct delta *d, struct backend *backend, struct arena *arena, bool training,
                      struct matrix p, struct matrix q, struct error *error)
{
    struct tensor square;
    (void)training;
    TRY(diagonal(d, backend, arena, &square, error));
    return backend->ops->gemm(backend, &(struct gemm){.a = p, .b = in_use(d, &square), .exact = true, .out = q}, error);
}

static status backward(const struct delta *d, struct backend *backend, struct arena *arena, struct matrix p,
                       struct matrix dq, struct matrix dp, struct error *error)
{
    const struct delta_entry *e = d->state;
    float *gradient = parameters_weight(e->deltas->parameters, e->magnitude).gradient;
    struct tensor square, dsquare;
    TRY(diagonal(d, backend, arena, &square, error));
    TRY(backend->ops->gemm(backend, &(struct gemm){.a = dq, .b = in_use(d, &square), .exact = true, .out = dp}, error));
    if (gradient == NULL || !d->trains)
        return OK;
    TRY(take_square(d, arena, &dsquare, error));
    size_t values = tensor_elements(&dsquare);
    TRY(backend->ops->zero(backend, dsquare.data, tensor_bytes(&dsquare), error));
    TRY(backend->ops->gemm(
        backend, &(struct gemm){.a = p, .transpose_a = true, .b = dq, .exact = true, .out = in_use(d, &dsquare)},
        error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = masks(e, values),
                                             .b = matrix_rows(dsquare.data, values, 1),
                                             .exact = true,
                                             .accumulate = true,
                                             .out = matrix_rows(gradient, e->deltas->settings.tasks, 1)},
                              error);
}

const struct delta_gate gate_magnitude = {.name = "magnitude", .forward = forward, .backward = backward};
