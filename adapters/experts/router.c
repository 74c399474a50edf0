/* Noisy top-k: which experts a sample goes to, by what, and what that adds to the loss. */
#include "adapters/experts/expert.h"

static status take(struct tensor *tensor, const struct block_site *site, const char *name, size_t rows, size_t columns,
                   struct error *error)
{
    return tensor_take(tensor, site->arena, TENSOR_F32, name, 2, (size_t[]){rows, columns}, error);
}

static bool is_balanced(const struct adapter_tower *tower, const struct block_site *site)
{
    return site->training && tower->adapters->settings.balance != BALANCE_NONE && tower->adapters->loss != NULL;
}

/* Memory that the backward pass reads. */
static status take_kept(const struct adapter_tower *tower, const struct block_site *site, struct expert_pass *pass,
                        struct error *error)
{
    const struct adapter_settings *s = &tower->adapters->settings;
    size_t samples = pass->routed.dispatch.samples;
    struct tensor noise, gates, logits;
    TRY(take(&noise, site, "router noise", 2 * samples, s->experts, error));
    pass->noise_logits = noise.data;
    pass->drawn = pass->noise_logits + samples * s->experts;
    pass->balance_gates = pass->balance_logits = pass->balance_noise = NULL;
    if (!is_balanced(tower, site))
        return OK;
    TRY(take(&gates, site, "gates' share of the balance loss", samples, s->top_k, error));
    TRY(take(&logits, site, "logits' share of the balance loss", 2 * samples, s->experts, error));
    pass->balance_gates = gates.data;
    pass->balance_logits = logits.data;
    pass->balance_noise = pass->balance_logits + samples * s->experts;
    return OK;
}

/* Tokens that are not of their sample go without a router. */
static status look_at_tokens(const struct adapter_tower *tower, const struct block_site *site, const struct tensor *x,
                             struct expert_pass *pass, struct error *error)
{
    struct tensor routers;
    size_t tokens = x->shape[0] * x->shape[1];
    TRY(tensor_take(&routers, site->arena, TENSOR_I32, "routers of the tokens", 1, &tokens, error));
    pass->gate = *x;
    pass->gate.shape[0] = tokens;
    pass->gate.shape[1] = 1;
    pass->gate.shape[2] = tower->width;
    pass->router = routers.data;
    return site->backend->ops->spread_positions(site->backend,
                                                &(struct spread_positions){.batch = x->shape[0],
                                                                           .positions = x->shape[1],
                                                                           .lengths = site->lengths,
                                                                           .value = site->router,
                                                                           .out = routers.data},
                                                error);
}

/* What decides: the first position of each sample, or the mean of those that are its own, or every one. */
static status look_at(const struct adapter_tower *tower, const struct block_site *site, const struct tensor *x,
                      struct expert_pass *pass, struct error *error)
{
    if (pass->routed.tokens)
        return look_at_tokens(tower, site, x, pass, error);
    pass->gate = *x;
    pass->router = site->router;
    if (tower->adapters->settings.gate_input != GATE_MEAN)
        return OK;
    TRY(tensor_take(&pass->gate, site->arena, TENSOR_F32, "means that decide", 3,
                    (size_t[]){x->shape[0], 1, tower->width}, error));
    return site->backend->ops->mean_positions(site->backend,
                                              &(struct mean_positions){.batch = x->shape[0],
                                                                       .positions = x->shape[1],
                                                                       .width = tower->width,
                                                                       .lengths = site->lengths,
                                                                       .x = x->data,
                                                                       .out = pass->gate.data},
                                              error);
}

static status run_router(const struct adapter_tower *tower, size_t bank, const struct block_site *site, size_t before,
                         struct expert_pass *pass, struct error *error)
{
    const struct adapter_settings *s = &tower->adapters->settings;
    const struct expert_bank *b = &tower->banks[bank];
    return site->backend->ops->route(
        site->backend,
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
                        .training = site->training,
                        .noise = site->noise,
                        .noise_base = expert_numbers(site) + before * s->experts,
                        .state = site->state,
                        .epsilon = s->noise_epsilon,
                        .dispatch = &pass->routed.dispatch,
                        .noise_logits = pass->noise_logits,
                        .drawn = pass->drawn,
                        .logits = pass->balance_logits,
                        .counts = b->counts,
                        .used = b->used,
                        .frozen = b->frozen},
        error);
}

/* What the routing of this batch adds to the loss; with its gradients, which the backward pass finds in pass. */
static status add_balance(const struct adapter_tower *tower, const struct block_site *site,
                          const struct expert_pass *pass, struct error *error)
{
    const struct adapters *adapters = tower->adapters;
    if (!is_balanced(tower, site))
        return OK;
    return site->backend->ops->balance(
        site->backend,
        &(struct balance){.dispatch = &pass->routed.dispatch,
                          .epsilon = adapters->settings.noise_epsilon,
                          .weight = adapters->settings.balance_weight * adapters->loss_share,
                          .logits = pass->balance_logits,
                          .noise_logits = pass->noise_logits,
                          .drawn = pass->drawn,
                          .dnoise_logits = pass->balance_noise,
                          .dgates = pass->balance_gates,
                          .loss = adapters->loss},
        error);
}

status router_forward(struct expert_pass *pass, const struct block_site *site, const struct tensor *x,
                      struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    TRY(take_kept(tower, site, pass, error));
    TRY(look_at(tower, site, x, pass, error));
    TRY(run_router(tower, pass->bank, site, site->first * (pass->routed.tokens ? x->shape[1] : 1), pass, error));
    return add_balance(tower, site, pass, error);
}

static status add_gates(const struct block_site *site, const struct expert_pass *pass, float *dgates,
                        struct error *error)
{
    return site->backend->ops->weighted_sum(
        site->backend,
        &(struct weighted_sum){.count = 2,
                               .n = pass->routed.dispatch.samples * pass->routed.dispatch.top_k,
                               .inputs = {dgates, pass->balance_gates},
                               .weights = {1, 1},
                               .out = dgates},
        error);
}

/* dgate += the gradient of what decides, unless it has no data. */
static status run_backward(const struct adapter_tower *tower, size_t bank, const struct block_site *site,
                           const struct expert_pass *pass, const float *dgates, const struct tensor *dgate,
                           struct error *error)
{
    const struct dispatch *dispatch = &pass->routed.dispatch;
    struct weight routers = parameters_weight(tower->parameters, tower->banks[bank].routers),
                  noise = parameters_weight(tower->parameters, tower->banks[bank].noise);
    return site->backend->ops->route_backward(site->backend,
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
                                                                       .noise_logits = pass->noise_logits,
                                                                       .drawn = pass->drawn,
                                                                       .dgates = dgates,
                                                                       .dlogits = pass->balance_logits,
                                                                       .dnoise_logits = pass->balance_noise,
                                                                       .drouters = routers.gradient,
                                                                       .dnoise = noise.gradient,
                                                                       .dx = dgate->data},
                                              error);
}

static status mean_backward(const struct adapter_tower *tower, size_t bank, const struct block_site *site,
                            const struct expert_pass *pass, const float *dgates, const struct tensor *dx,
                            struct error *error)
{
    struct backend *backend = site->backend;
    struct arena_mark mark = arena_mark(site->arena);
    struct tensor dgate;
    TRY(tensor_take(&dgate, site->arena, TENSOR_F32, "gradient of the means", 3, pass->gate.shape, error));
    TRY(backend->ops->zero(backend, dgate.data, tensor_bytes(&dgate), error));
    TRY(run_backward(tower, bank, site, pass, dgates, &dgate, error));
    TRY(backend->ops->mean_positions_backward(backend,
                                              &(struct mean_positions_backward){.batch = dx->shape[0],
                                                                                .positions = dx->shape[1],
                                                                                .width = tower->width,
                                                                                .lengths = site->lengths,
                                                                                .dout = dgate.data,
                                                                                .dx = dx->data},
                                              error));
    arena_release(site->arena, mark);
    return OK;
}

status router_backward(struct expert_pass *pass, const struct block_site *site, float *dgates, const struct tensor *dx,
                       struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    bool means = tower->adapters->settings.gate_input == GATE_MEAN && dx->data != NULL;
    if (pass->balance_gates != NULL)
        TRY(add_gates(site, pass, dgates, error));
    return (means ? mean_backward : run_backward)(tower, pass->bank, site, pass, dgates, dx, error);
}

/* A choice of one among one. */
status router_send_all(struct expert_pass *pass, const struct block_site *site, const struct tensor *x,
                       struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    return site->backend->ops->route(site->backend,
                                     &(struct route){.batch = x->shape[0],
                                                     .positions = x->shape[1],
                                                     .width = tower->width,
                                                     .experts = 1,
                                                     .top_k = 1,
                                                     .routers = tower->adapters->settings.tasks,
                                                     .x = x->data,
                                                     .routers_value = tower->no_preference,
                                                     .router = site->router,
                                                     .dispatch = &pass->shared.dispatch},
                                     error);
}
