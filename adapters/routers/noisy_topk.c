/* Noisy top-k (Shazeer et al. 2017, equations 3 to 5, and of its balance loss section 4 and appendix A). */
#include "adapters/routers/router.h"

/* The arrays of a pass, per sample: noise logits and the noise drawn [E], and the gradients of the balance loss, of gates
 * [K], clean logits and noise logits [E]. */
enum { NOISE_LOGITS, DRAWN, BALANCE_GATES, BALANCE_LOGITS, BALANCE_NOISE };

static status take_kept(struct expert_pass *pass, const struct block_context *context, struct error *error)
{
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    size_t samples = pass->routed.dispatch.samples;
    TRY(router_take(pass, context, NOISE_LOGITS, "router noise", 2 * samples, s->experts, error));
    pass->kept[DRAWN] = pass->kept[NOISE_LOGITS] + samples * s->experts;
    pass->kept[BALANCE_GATES] = pass->kept[BALANCE_LOGITS] = pass->kept[BALANCE_NOISE] = NULL;
    if (!router_is_balanced(pass, context))
        return OK;
    TRY(router_take(pass, context, BALANCE_GATES, "gates' share of the balance loss", samples, s->top_k, error));
    TRY(router_take(pass, context, BALANCE_LOGITS, "logits' share of the balance loss", 2 * samples, s->experts,
                    error));
    pass->kept[BALANCE_NOISE] = pass->kept[BALANCE_LOGITS] + samples * s->experts;
    return OK;
}

/* Adds the balance loss of this batch, and keeps its gradients in pass for the backward pass. */
static status add_balance(struct expert_pass *pass, const struct block_context *context, struct error *error)
{
    const struct adapters *adapters = pass->tower->adapters;
    if (!router_is_balanced(pass, context))
        return OK;
    return context->backend->ops->balance(
        context->backend,
        &(struct balance){.dispatch = &pass->routed.dispatch,
                          .epsilon = adapters->settings.noise_epsilon,
                          .weight = adapters->settings.balance_weight * pass->tower->adapters->loss_share,
                          .share = pass->tower->adapters->loss_share,
                          .logits = pass->kept[BALANCE_LOGITS],
                          .noise_logits = pass->kept[NOISE_LOGITS],
                          .drawn = pass->kept[DRAWN],
                          .dnoise_logits = pass->kept[BALANCE_NOISE],
                          .dgates = pass->kept[BALANCE_GATES],
                          .loss = adapters->loss,
                          .unweighted = adapters->balance},
        error);
}

static status forward(struct expert_pass *pass, const struct block_context *context, size_t before, struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    const struct adapter_settings *s = &tower->adapters->settings;
    const struct expert_bank *b = &tower->banks[pass->bank];
    TRY(take_kept(pass, context, error));
    TRY(context->backend->ops->route(
        context->backend,
        &(struct route){.batch = pass->routed.dispatch.samples,
                        .positions = pass->gate.shape[1],
                        .width = tower->width,
                        .experts = s->experts,
                        .top_k = s->top_k,
                        .routers = s->tasks,
                        .x = pass->gate.data,
                        .routers_value = parameters_weight(tower->parameters, b->routers).value,
                        .noise_value = parameters_weight(tower->parameters, b->noise).value,
                        .router = pass->router,
                        .training = context->training,
                        .noise_base = expert_numbers(context) + before * s->experts,
                        .state = context->state,
                        .epsilon = s->noise_epsilon,
                        .dispatch = &pass->routed.dispatch,
                        .noise_logits = pass->kept[NOISE_LOGITS],
                        .drawn = pass->kept[DRAWN],
                        .logits = pass->kept[BALANCE_LOGITS],
                        .counts = b->counts,
                        .used = b->used,
                        .add_used = router_adds_used(pass),
                        .frozen = b->frozen},
        error));
    return add_balance(pass, context, error);
}

static status add_gates(const struct expert_pass *pass, const struct block_context *context, float *dgates,
                        struct error *error)
{
    return context->backend->ops->weighted_sum(
        context->backend,
        &(struct weighted_sum){.count = 2,
                               .n = pass->routed.dispatch.samples * pass->routed.dispatch.top_k,
                               .inputs = {dgates, pass->kept[BALANCE_GATES]},
                               .weights = {1, 1},
                               .out = dgates},
        error);
}

static status backward(struct expert_pass *pass, const struct block_context *context, float *dgates, float *dx,
                       struct error *error)
{
    const struct dispatch *dispatch = &pass->routed.dispatch;
    const struct adapter_tower *tower = pass->tower;
    const struct expert_bank *bank = &tower->banks[pass->bank];
    struct weight routers = parameters_weight(tower->parameters, bank->routers),
                  noise = parameters_weight(tower->parameters, bank->noise);
    if (pass->kept[BALANCE_GATES] != NULL)
        TRY(add_gates(pass, context, dgates, error));
    return context->backend->ops->route_backward(context->backend,
                                                 &(struct route_backward){.batch = dispatch->samples,
                                                                          .positions = pass->gate.shape[1],
                                                                          .width = tower->width,
                                                                          .experts = dispatch->experts,
                                                                          .top_k = dispatch->top_k,
                                                                          .x = pass->gate.data,
                                                                          .routers_value = routers.value,
                                                                          .noise_value = noise.value,
                                                                          .router = pass->router,
                                                                          .dispatch = dispatch,
                                                                          .noise_logits = pass->kept[NOISE_LOGITS],
                                                                          .drawn = pass->kept[DRAWN],
                                                                          .dgates = dgates,
                                                                          .dlogits = pass->kept[BALANCE_LOGITS],
                                                                          .dnoise_logits = pass->kept[BALANCE_NOISE],
                                                                          .drouters = routers.gradient,
                                                                          .dnoise = noise.gradient,
                                                                          .dx = dx},
                                                 error);
}

const struct router_kind router_noisy_topk = {
    .name = "noisy_topk",
    .source = "Shazeer et al., ICLR 2017, Outrageously Large Neural Networks",
    .formula = "g = softmax over the K largest of x R + n (softplus(x N) + noise_epsilon), n ~ N(0, 1) in training",
    .weights = true,
    .noise_weights = true,
    .balances = 1u << BALANCE_NONE | 1u << BALANCE_CV,
    .forward = forward,
    .backward = backward};
