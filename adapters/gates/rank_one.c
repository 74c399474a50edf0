/* Each row of A and B is an expert of rank one that chooses itself (MoRAM: Lu et al., ICML 2026, arXiv 2506.21035). With the keys a_i
 * and values b_i of all rows in use:
 *
 *     p_i = a_i · x,   n = p / ‖p‖,   w = softmax(n / temperature) over the top_k largest n, 0 elsewhere
 *     y += scale · Σ_i w_i p_i b_i
 *
 * In evaluation, w_i = 0 where n_i is below the threshold, without normalising again. The backward pass computes n and w again. */
#include "adapters/deltas.h"

/* [N, rows] each, and [N] */
struct activation_pass {
    struct tensor unit, weight, norms; /* n, w, ‖p‖ */
};

static status activate(const struct delta *delta, struct backend *backend, struct arena *arena, bool training,
                       struct matrix p, struct activation_pass *pass, struct error *error)
{
    const float *numbers = ((const struct delta_entry *)delta->state)->deltas->settings.gate_numbers;
    const size_t shape[2] = {p.rows, p.columns};
    TRY(tensor_take(&pass->unit, arena, TENSOR_F32, "unit projections on the keys", 2, shape, error));
    TRY(tensor_take(&pass->weight, arena, TENSOR_F32, "weights of the experts", 2, shape, error));
    TRY(tensor_take(&pass->norms, arena, TENSOR_F32, "norms of the projections", 1, shape, error));
    struct matrix n = matrix_of(&pass->unit);
    TRY(backend->ops->normalize(backend, &(struct normalize){.x = p, .y = n, .norms = pass->norms.data}, error));
    return backend->ops->sparse_softmax(
        backend,
        &(struct sparse_softmax){.x = n,
                                 .y = matrix_of(&pass->weight),
                                 .top_k = (size_t)numbers[RANK_ONE_TOP_K],
                                 .temperature = numbers[RANK_ONE_TEMPERATURE],
                                 .threshold = training ? 0 : numbers[RANK_ONE_THRESHOLD]},
        error);
}

static status forward(const struct delta *delta, struct backend *backend, struct arena *arena, bool training,
                      struct matrix p, struct matrix q, struct error *error)
{
    struct activation_pass pass;
    TRY(activate(delta, backend, arena, training, p, &pass, error));
    return delta_multiply(backend, p, matrix_of(&pass.weight), q, error);
}

/* dp = dq ⊙ w + what comes through w and n */
static status backward(const struct delta *delta, struct backend *backend, struct arena *arena, struct matrix p,
                       struct matrix dq, struct matrix dp, struct error *error)
{
    const float *numbers = ((const struct delta_entry *)delta->state)->deltas->settings.gate_numbers;
    struct activation_pass pass;
    struct tensor slopes;
    TRY(activate(delta, backend, arena, true, p, &pass, error));
    TRY(tensor_take(&slopes, arena, TENSOR_F32, "gradient of the weights", 2, (size_t[]){p.rows, p.columns}, error));
    struct matrix slope = matrix_of(&slopes);
    TRY(delta_multiply(backend, dq, matrix_of(&pass.weight), dp, error));
    TRY(delta_multiply(backend, dq, p, slope, error));
    TRY(backend->ops->sparse_softmax_backward(
        backend,
        &(struct sparse_softmax_backward){
            .y = matrix_of(&pass.weight), .dy = slope, .dx = slope, .temperature = numbers[RANK_ONE_TEMPERATURE]},
        error));
    return backend->ops->normalize_backward(
        backend,
        &(struct normalize_backward){.y = matrix_of(&pass.unit), .dy = slope, .dx = dp, .norms = pass.norms.data},
        error);
}

const struct delta_gate gate_rank_one = {.name = "rank_one", .forward = forward, .backward = backward};
