/* The table of routers, and the input rows that all of them share. */
#include "adapters/routers/router.h"

#include "core/text.h"

#define ENTRY(name) &router_##name,
static const struct router_kind *const kinds[] = {ROUTER_KINDS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(router_kind, struct router_kind, kinds, "suite", "router")

const struct router_kind *router_kind_of(const struct adapter_settings *settings)
{
    return settings->router != NULL ? settings->router : &router_noisy_topk;
}

status router_check(const struct adapter_settings *s, const char *where, struct error *error)
{
    static const char *const losses[] = {"none", "cv", "widenet", "rmoe"};
    const struct router_kind *router = router_kind_of(s);
    if (s->top_k > s->experts)
        return error_set(
            error, ERROR_ARGUMENT,
            "%s: adapter.top_k is %zu, but there are only %zu experts to choose from; lower adapter.top_k or "
            "raise adapter.experts",
            where, s->top_k, s->experts);
    if (s->routing == ROUTING_PER_TOKEN && s->gate_input != GATE_CLASS_TOKEN)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: adapter.gate_input is mean, but with adapter.routing per_token every token decides for "
                         "itself; set adapter.gate_input=class_token or adapter.routing=per_sample",
                         where);
    if (!(router->balances >> s->balance & 1))
        return error_set(error, ERROR_ARGUMENT,
                         "%s: adapter.balance_loss is %s, which router %s does not have; cv is that of noisy_topk, "
                         "widenet and rmoe are those of softmax_topk",
                         where, losses[s->balance], router->name);
    return router->check != NULL ? router->check(s, error) : OK;
}

bool router_is_balanced(const struct expert_pass *pass, const struct block_context *context)
{
    const struct adapters *adapters = pass->tower->adapters;
    return context->training && adapters->settings.balance != BALANCE_NONE && adapters->loss != NULL;
}

bool router_adds_used(const struct expert_pass *pass)
{
    return pass->index > 0 && pass[-1].bank == pass->bank;
}

status router_take(struct expert_pass *pass, const struct block_context *context, size_t array, const char *name,
                   size_t rows, size_t columns, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, context->arena, TENSOR_F32, name, 2, (size_t[]){rows, columns}, error));
    pass->kept[array] = memory.data;
    return OK;
}

/* Positions past the end of their sample get no router. */
static status look_at_tokens(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                             struct error *error)
{
    struct tensor routers;
    size_t tokens = x->shape[0] * x->shape[1];
    TRY(tensor_take(&routers, context->arena, TENSOR_I32, "routers of the tokens", 1, &tokens, error));
    pass->gate = *x;
    pass->gate.shape[0] = tokens;
    pass->gate.shape[1] = 1;
    pass->gate.shape[2] = pass->tower->width;
    pass->router = routers.data;
    return context->backend->ops->spread_positions(context->backend,
                                                   &(struct spread_positions){.batch = x->shape[0],
                                                                              .positions = x->shape[1],
                                                                              .lengths = context->lengths,
                                                                              .value = context->router,
                                                                              .out = routers.data},
                                                   error);
}

/* The router's input: the first position of each sample, the mean over its positions, or every position. */
static status look_at(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                      struct error *error)
{
    if (pass->routed.tokens)
        return look_at_tokens(pass, context, x, error);
    pass->gate = *x;
    pass->router = context->router;
    if (pass->tower->adapters->settings.gate_input != GATE_MEAN)
        return OK;
    TRY(tensor_take(&pass->gate, context->arena, TENSOR_F32, "means that decide", 3,
                    (size_t[]){x->shape[0], 1, pass->tower->width}, error));
    return context->backend->ops->mean_positions(context->backend,
                                                 &(struct mean_positions){.batch = x->shape[0],
                                                                          .positions = x->shape[1],
                                                                          .width = pass->tower->width,
                                                                          .lengths = context->lengths,
                                                                          .x = x->data,
                                                                          .out = pass->gate.data},
                                                 error);
}

bool router_reads_all(const struct adapter_tower *tower)
{
    const struct adapter_settings *s = &tower->adapters->settings;
    bool averages_alone = router_kind_of(s)->averages && expert_decision_users(tower) == 1;
    return s->gate_input == GATE_MEAN || (s->routing == ROUTING_PER_TOKEN && !averages_alone);
}

status router_forward(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                      struct error *error)
{
    TRY(look_at(pass, context, x, error));
    size_t before = context->first * (pass->routed.tokens ? x->shape[1] : 1);
    return router_kind_of(&pass->tower->adapters->settings)->forward(pass, context, before, error);
}

static status mean_backward(struct expert_pass *pass, const struct block_context *context, float *dgates,
                            const struct tensor *dx, struct error *error)
{
    struct backend *backend = context->backend;
    struct arena_mark mark = arena_mark(context->arena);
    struct tensor dgate;
    TRY(tensor_take(&dgate, context->arena, TENSOR_F32, "gradient of the means", 3, pass->gate.shape, error));
    TRY(backend->ops->zero(backend, dgate.data, tensor_bytes(&dgate), error));
    TRY(router_kind_of(&pass->tower->adapters->settings)->backward(pass, context, dgates, dgate.data, error));
    TRY(backend->ops->mean_positions_backward(backend,
                                              &(struct mean_positions_backward){.batch = dx->shape[0],
                                                                                .positions = dx->shape[1],
                                                                                .width = pass->tower->width,
                                                                                .lengths = context->lengths,
                                                                                .dout = dgate.data,
                                                                                .dx = dx->data},
                                              error));
    arena_release(context->arena, mark);
    return OK;
}

status router_backward(struct expert_pass *pass, const struct block_context *context, float *dgates,
                       const struct tensor *dx, struct error *error)
{
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    if (s->gate_input == GATE_MEAN && dx->data != NULL)
        return mean_backward(pass, context, dgates, dx, error);
    return router_kind_of(s)->backward(pass, context, dgates, dx->data, error);
}

/* Sends every sample to the only expert. */
status router_send_all(const struct expert_layer *layer, const struct block_context *context, const struct tensor *x,
                       struct error *error)
{
    const struct adapter_tower *tower = layer->tower;
    struct dispatch dispatch = layer->dispatch;
    return context->backend->ops->route(context->backend,
                                        &(struct route){.batch = x->shape[0],
                                                        .positions = x->shape[1],
                                                        .width = tower->width,
                                                        .experts = 1,
                                                        .top_k = 1,
                                                        .routers = tower->adapters->settings.tasks,
                                                        .x = x->data,
                                                        .routers_value = tower->no_preference,
                                                        .router = context->router,
                                                        .dispatch = &dispatch},
                                        error);
}
