/* O-LoRA (Wang et al., EMNLP 2023 Findings, arXiv 2310.14152): every task has a delta of its own, whose A is pushed to be orthogonal
 * to those of all earlier tasks; these are merged into the weights, and stay:
 *
 *     loss = cross-entropy + lambda · Σ_matrices Σ_{i<t} Σ |A_t A_iᵀ|
 *
 * The public code sums magnitudes; the paper's Equation 8 sums squares. The code is followed. Its second term, lamda_2 times the
 * norms of the new halves, is left out: it is 0 in the runs of most tasks there, and training.l2 and training.weight_decay
 * decay as others do. The sign of a product, the gradient of its magnitude, is the product divided by its norm. */
#include "harness/methods/methods.h"
#include "harness/model/model.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "lambda", 0, 1e6, "0.5", "strength of the loss that makes A orthogonal to the earlier ones"),
    {0}};

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    TRY(deltas_begin_task(run->model->deltas, task->index, task->index, DELTA_A | DELTA_B, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

/* Gradients of A_t [rank, in] against the earlier rows [earlier, in] in front of it, and the loss. */
static status add_orthogonality(struct method_run *run, const struct delta_entry *e, size_t earlier, float lambda,
                                struct error *error)
{
    struct model *model = run->model;
    const struct backend_ops *ops = model->backend->ops;
    size_t rank = model->settings.delta.rank, n = rank * earlier;
    struct matrix own = matrix_rows(e->delta->a, rank, e->in),
                  others = matrix_rows(e->delta->a - earlier * e->in, earlier, e->in);
    struct tensor products, signs;
    TRY(tensor_take(&products, run->step_memory, TENSOR_F32, "products of A", 2, (size_t[]){rank, earlier}, error));
    TRY(tensor_take(&signs, run->step_memory, TENSOR_F32, "their signs", 2, (size_t[]){rank, earlier}, error));
    TRY(ops->gemm(
        model->backend,
        &(struct gemm){.a = own, .b = others, .transpose_b = true, .exact = true, .out = matrix_of(&products)}, error));
    TRY(ops->normalize(model->backend,
                       &(struct normalize){.x = matrix_rows(products.data, n, 1), .y = matrix_rows(signs.data, n, 1)},
                       error));
    TRY(ops->gemm(model->backend,
                  &(struct gemm){.a = matrix_of(&signs),
                                 .b = others,
                                 .scale = lambda,
                                 .exact = true,
                                 .accumulate = true,
                                 .out = matrix_rows(e->delta->da, rank, e->in)},
                  error));
    return ops->gemm(model->backend,
                     &(struct gemm){.a = matrix_rows(products.data, 1, n),
                                    .b = matrix_rows(signs.data, n, 1),
                                    .scale = lambda,
                                    .exact = true,
                                    .accumulate = true,
                                    .out = matrix_rows(model->loss, 1, 1)},
                     error);
}

/* Here gradients and loss are those of all ranks together. */
static status before_update(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    const struct deltas *d = run->model->deltas;
    float lambda = (float)options_real(run->options, "lambda");
    if (task->index == 0 || lambda == 0)
        return OK;
    arena_reset(run->step_memory);
    for (size_t i = 0; i < d->count; i++)
        TRY(add_orthogonality(run, &d->list[i], task->index * d->settings.rank, lambda, error));
    return OK;
}

const struct method method_o_lora = {
    .name = "o_lora",
    .source = "Wang et al., EMNLP 2023 Findings",
    .formula = "W + scale · Σ_{i≤t} B_i A_i, task t trains B_t A_t; loss = cross-entropy + lambda · Σ_{i<t} Σ |A_t "
               "A_iᵀ|",
    .options = options,
    .trains = GROUP_DELTAS,
    .begin_task = begin_task,
    .before_update = before_update};
