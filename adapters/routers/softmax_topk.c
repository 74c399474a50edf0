/* Softmax top-k with a capacity (WideNet: Xue et al., "Go Wider Instead of Deeper", AAAI 2022; RMoE: Wu et al., "Residual
 * Mixture of Experts", 2022): struct route_softmax and struct balance_softmax. R starts uniform within ±1/√d, as PyTorch
 * starts a linear layer, because routers of zeros would send everything to the first experts. In evaluation there is no
 * capacity limit, so that an answer does not depend on the rest of its batch. */
#include <math.h>
#include <stdlib.h>

#include "adapters/routers/router.h"
#include "core/alloc.h"
#include "core/rng.h"
#include "core/scope.h"

/* The arrays of a pass: p [samples, E], the gradient of the balance loss by p, the weights of aligned outputs [samples, K],
 * and, where the first position decides, these positions [samples, d]. */
enum { PROBABILITIES = SOFTMAX_PROBABILITIES, BALANCE_SLOPES, WEIGHTS, FIRST_POSITIONS };

static status start(struct adapter_tower *tower, size_t index, uint64_t seed, struct error *error)
{
    const struct expert_bank *bank = &tower->banks[index];
    const struct parameter *p = &tower->parameters->list[bank->routers];
    uint32_t which = 1 + 3 * TOWERS + (uint32_t)(tower - tower->adapters->towers);
    struct rng rng = rng_make(seed, RNG_INIT, which, (uint32_t)bank->block);
    OWNED float *values = xmalloc(array_size(p->size, sizeof *values));
    float bound = 1.0f / sqrtf((float)tower->width);
    for (size_t i = 0; i < p->size; i++)
        values[i] = bound * (2.0f * rng_uniform(&rng, i) - 1.0f);
    return parameters_upload(tower->parameters, p, values, error);
}

/* C · K · T / E choices, rounded up; 0: no limit. */
static size_t limit_of(const struct expert_pass *pass, const struct block_context *context)
{
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    double fair = (double)(pass->routed.dispatch.samples * s->top_k) / (double)s->experts;
    return context->training ? (size_t)ceil(s->capacity * fair * (1 - 1e-12)) : 0; /* 1.1 · 10 is 11 */
}

static status number_first_positions(const struct expert_pass *pass, const struct block_context *context,
                                     const int32_t **rows, struct error *error)
{
    struct tensor numbers;
    size_t samples = pass->routed.dispatch.samples;
    TRY(tensor_take(&numbers, context->arena, TENSOR_I32, "rows that decide", 1, &samples, error));
    *rows = numbers.data;
    return context->backend->ops->arange(
        context->backend, &(struct arange){.count = samples, .step = (int32_t)pass->gate.shape[1], .out = numbers.data},
        error);
}

static struct matrix positions_of(const struct expert_pass *pass, const void *values)
{
    return matrix_rows((void *)values, pass->routed.dispatch.samples * pass->gate.shape[1], pass->tower->width);
}

/* x [samples, d], without a copy where samples have one position each. */
static status first_positions(struct expert_pass *pass, const struct block_context *context, const float **x,
                              struct error *error)
{
    size_t samples = pass->routed.dispatch.samples, width = pass->tower->width;
    const int32_t *rows;
    *x = pass->gate.data;
    if (pass->gate.shape[1] == 1)
        return OK;
    TRY(router_take(pass, context, FIRST_POSITIONS, "first positions", samples, width, error));
    *x = pass->kept[FIRST_POSITIONS];
    TRY(number_first_positions(pass, context, &rows, error));
    return context->backend->ops->gather_rows(
        context->backend,
        &(struct gather_rows){.x = positions_of(pass, pass->gate.data),
                              .out = matrix_rows(pass->kept[FIRST_POSITIONS], samples, width),
                              .rows = rows},
        error);
}

static status take_kept(struct expert_pass *pass, const struct block_context *context, struct error *error)
{
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    size_t samples = pass->routed.dispatch.samples;
    pass->kept[BALANCE_SLOPES] = NULL;
    pass->kept[WEIGHTS] = pass->decision.weights; /* a shared decision outlives the pass */
    TRY(router_take(pass, context, PROBABILITIES, "probabilities of experts", samples, s->experts, error));
    if (s->aligned_output != ALIGN_NONE && pass->kept[WEIGHTS] == NULL)
        TRY(router_take(pass, context, WEIGHTS, "weights of aligned outputs", samples, s->top_k, error));
    if (router_is_balanced(pass, context))
        TRY(router_take(pass, context, BALANCE_SLOPES, "gradient of the balance loss", samples, s->experts, error));
    pass->routed.weights = pass->kept[WEIGHTS];
    return OK;
}

static status forward(struct expert_pass *pass, const struct block_context *context, size_t before, struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    const struct adapters *adapters = tower->adapters;
    const struct adapter_settings *s = &adapters->settings;
    const struct expert_bank *bank = &tower->banks[pass->bank];
    const float *x;
    TRY(take_kept(pass, context, error));
    TRY(first_positions(pass, context, &x, error));
    TRY(context->backend->ops->route_softmax(
        context->backend,
        &(struct route_softmax){.samples = pass->routed.dispatch.samples,
                                .width = tower->width,
                                .experts = s->experts,
                                .top_k = s->top_k,
                                .routers = s->tasks,
                                .x = x,
                                .routers_value = parameters_weight(tower->parameters, bank->routers).value,
                                .router = pass->router,
                                .training = context->training,
                                .noise_deviation = s->router_noise,
                                .noise_base = expert_numbers(context) + before * s->experts,
                                .state = context->state,
                                .limit = limit_of(pass, context),
                                .dispatch = &pass->routed.dispatch,
                                .probabilities = pass->kept[PROBABILITIES],
                                .aligned = s->aligned_output,
                                .weights = pass->kept[WEIGHTS],
                                .counts = bank->counts,
                                .used = bank->used,
                                .add_used = router_adds_used(pass),
                                .frozen = bank->frozen},
        error));
    if (pass->kept[BALANCE_SLOPES] == NULL)
        return OK;
    return context->backend->ops->balance_softmax(
        context->backend,
        &(struct balance_softmax){.kind = s->balance == BALANCE_LOSS_RMOE ? BALANCE_RMOE : BALANCE_WIDENET,
                                  .dispatch = &pass->routed.dispatch,
                                  .probabilities = pass->kept[PROBABILITIES],
                                  .weight = s->balance_weight * pass->tower->adapters->loss_share,
                                  .share = pass->tower->adapters->loss_share,
                                  .dprobabilities = pass->kept[BALANCE_SLOPES],
                                  .loss = adapters->loss,
                                  .unweighted = adapters->balance},
        error);
}

static status run_backward(struct expert_pass *pass, const struct block_context *context, const float *x,
                           const float *dgates, float *dx, struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    const struct adapter_settings *s = &tower->adapters->settings;
    struct weight routers = parameters_weight(tower->parameters, tower->banks[pass->bank].routers);
    return context->backend->ops->route_softmax_backward(
        context->backend,
        &(struct route_softmax_backward){.samples = pass->routed.dispatch.samples,
                                         .width = tower->width,
                                         .experts = s->experts,
                                         .top_k = s->top_k,
                                         .routers = s->tasks,
                                         .x = x,
                                         .routers_value = routers.value,
                                         .router = pass->router,
                                         .dispatch = &pass->routed.dispatch,
                                         .probabilities = pass->kept[PROBABILITIES],
                                         .dgates = dgates,
                                         .dprobabilities = pass->kept[BALANCE_SLOPES],
                                         .drouters = routers.gradient,
                                         .dx = dx},
        error);
}

static status backward(struct expert_pass *pass, const struct block_context *context, float *dgates, float *dx,
                       struct error *error)
{
    struct backend *backend = context->backend;
    struct tensor first;
    const int32_t *rows;
    const size_t shape[] = {pass->routed.dispatch.samples, pass->tower->width};
    if (pass->gate.shape[1] == 1)
        return run_backward(pass, context, pass->gate.data, dgates, dx, error);
    if (dx == NULL)
        return run_backward(pass, context, pass->kept[FIRST_POSITIONS], dgates, NULL, error);
    TRY(tensor_take(&first, context->arena, TENSOR_F32, "gradient of the first positions", 2, shape, error));
    TRY(backend->ops->zero(backend, first.data, tensor_bytes(&first), error));
    TRY(run_backward(pass, context, pass->kept[FIRST_POSITIONS], dgates, first.data, error));
    TRY(number_first_positions(pass, context, &rows, error));
    return backend->ops->scatter_rows(
        backend, &(struct scatter_rows){.x = matrix_of(&first), .out = positions_of(pass, dx), .rows = rows}, error);
}

const struct router_kind router_softmax_topk = {
    .name = "softmax_topk",
    .source = "Xue et al., AAAI 2022, Go Wider Instead of Deeper; Wu et al. 2022, Residual Mixture of Experts",
    .formula = "g = the K largest of softmax(x R + n), not renormalised, n ~ N(0, router_noise²) in training",
    .weights = true,
    .balances = 1u << BALANCE_NONE | 1u << BALANCE_LOSS_WIDENET | 1u << BALANCE_LOSS_RMOE,
    .start = start,
    .forward = forward,
    .backward = backward};
