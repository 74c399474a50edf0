/* The hook: y += Σ_k g_k ε_k(x) over the experts that the router chose, and the shared one. */
#include "adapters/experts/expert.h"
#include "adapters/experts/kind.h"
#include "adapters/routers/router.h"
#include "adapters/statistics.h"

static size_t samples_of(const struct adapter_settings *s, const struct tensor *x)
{
    return s->routing == ROUTING_PER_TOKEN ? x->shape[0] * x->shape[1] : x->shape[0];
}

size_t expert_decision_users(const struct adapter_tower *tower)
{
    return tower->adapted / tower->decisions;
}

/* Takes memory for a decision that later blocks use; in evaluation it must outlast this block's own memory. */
static status begin(void *state, const struct block_context *context, const struct tensor *x, struct error *error)
{
    struct expert_pass *pass = state;
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    struct shared_decision *decision = &pass->decision;
    const size_t shape[] = {samples_of(s, x), s->top_k};
    struct tensor weights, dgates;
    *decision = (struct shared_decision){0};
    TRY(expert_dispatch_take(&decision->dispatch, context, shape[0], s->experts, s->top_k, error));
    if (s->aligned_output != ALIGN_NONE) {
        TRY(tensor_take(&weights, context->arena, TENSOR_F32, "weights of aligned outputs", 2, shape, error));
        decision->weights = weights.data;
    }
    if (!context->training)
        return OK;
    TRY(tensor_take(&dgates, context->arena, TENSOR_F32, "gradient of shared gates", 2, shape, error));
    decision->dgates = dgates.data;
    return context->backend->ops->zero(context->backend, dgates.data, tensor_bytes(&dgates), error);
}

static status take_dispatch(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                            struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    const struct adapter_settings *s = &tower->adapters->settings;
    size_t samples = samples_of(s, x);
    if (pass->decider != pass) {
        pass->routed.dispatch = pass->decider->routed.dispatch;
        pass->routed.weights = pass->decider->routed.weights;
        return OK;
    }
    if (expert_decision_users(tower) > 1)
        pass->routed.dispatch = pass->decision.dispatch;
    else
        TRY(expert_dispatch_take(&pass->routed.dispatch, context, samples, s->experts, s->top_k, error));
    size_t kept = pass->index / expert_decision_users(tower) * samples * s->top_k;
    if (tower->choices != NULL)
        pass->routed.dispatch.chosen = tower->choices + kept;
    if (tower->gates != NULL)
        pass->routed.dispatch.gates = tower->gates + kept;
    return OK;
}

static status take_routed(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                          struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    const struct adapter_settings *s = &tower->adapters->settings;
    const struct expert_bank *bank = &tower->banks[pass->bank];
    pass->routed = (struct expert_layer){.tower = tower,
                                         .frozen = bank->frozen,
                                         .tokens = s->routing == ROUTING_PER_TOKEN,
                                         .constant = router_kind_of(s)->averages,
                                         .numbers = expert_numbers(context)};
    const struct expert_stack routed = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
    expert_layer_use(&pass->routed, tower->parameters, &routed);
    TRY(take_dispatch(pass, context, x, error));
    return expert_layer_take(&pass->routed, context, pass->routed.tokens ? 1 : x->shape[1], error);
}

/* The router's input in f32: the block's residual stream, or the experts' input where they replace the MLP. */
static status rows_that_decide(const struct expert_pass *pass, const struct block_context *context,
                               const struct tensor *x, const struct tensor *ln2_x, struct tensor *rows,
                               struct error *error)
{
    bool replaces = expert_kind_of(&pass->tower->adapters->settings)->place == REPLACES_MLP;
    *rows = replaces ? *ln2_x : *x;
    if (rows->type == TENSOR_F32)
        return OK;
    TRY(tensor_take(rows, context->arena, TENSOR_F32, "rows that decide", 3, ln2_x->shape, error));
    return context->backend->ops->activate(context->backend,
                                           &(struct activate){.x = matrix_of(ln2_x), .out = matrix_of(rows)}, error);
}

/* The forward pass where no router chooses: all samples go through the mean of the experts, as through an MLP. */
static status forward_mean(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                           const struct tensor *input, struct tensor *y, struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    size_t d = tower->width, m = tower->hidden;
    float *parts[EXPERT_PARTS];
    TRY(adapters_mean(tower->adapters, context->tower, pass->bank, parts, error));
    if (expert_kind_of(&tower->adapters->settings)->place == REPLACES_MLP) {
        const struct block dense = {.width = d,
                                    .hidden = m,
                                    .activation = tower->activation,
                                    .c_fc = {.weight.value = parts[0], .bias.value = parts[1], .out = m, .in = d},
                                    .c_proj = {.weight.value = parts[2], .bias.value = parts[3], .out = d, .in = m}};
        return block_mlp(context, &dense, input, (struct matrix){0}, x, y, error);
    }
    struct expert_layer mean = {.tower = tower};
    for (int i = 0; i < EXPERT_PARTS; i++)
        mean.parts[i].value = parts[i];
    TRY(expert_dispatch_take(&mean.dispatch, context, x->shape[0], 1, 1, error));
    TRY(expert_layer_take(&mean, context, x->shape[1], error));
    TRY(router_send_all(&mean, context, x, error));
    return expert_layer_forward(&mean, context, input, y, error);
}

static status forward_chosen(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                             const struct tensor *ln2_x, const struct tensor *input, struct tensor *y,
                             struct error *error)
{
    struct tensor deciding;
    TRY(take_routed(pass, context, x, error));
    if (pass->decider == pass) {
        TRY(rows_that_decide(pass, context, x, ln2_x, &deciding, error));
        TRY(router_forward(pass, context, &deciding, error));
    }
    if (context->training)
        TRY(statistics_see(pass, context, input, error));
    return expert_layer_forward(&pass->routed, context, input, y, error);
}

static status forward_shared(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                             const struct tensor *input, struct tensor *y, struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    pass->shared = (struct expert_layer){.tower = tower, .numbers = expert_numbers(context) + ((uint64_t)1 << 39)};
    expert_layer_use(&pass->shared, tower->parameters, &tower->banks[pass->bank].shared);
    TRY(expert_dispatch_take(&pass->shared.dispatch, context, x->shape[0], 1, 1, error));
    TRY(expert_layer_take(&pass->shared, context, x->shape[1], error));
    TRY(router_send_all(&pass->shared, context, x, error));
    return expert_layer_forward(&pass->shared, context, input, y, error);
}

static status forward(void *state, const struct block_context *context, const struct tensor *x,
                      const struct tensor *ln2_x, struct tensor *y, struct error *error)
{
    struct expert_pass *pass = state;
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    const struct tensor *input = s->input == EXPERT_INPUT_POST_LN ? ln2_x : x;
    struct arena_mark start = arena_mark(context->arena);
    if (router_kind_of(s)->averages && !context->training)
        TRY(forward_mean(pass, context, x, input, y, error));
    else
        TRY(forward_chosen(pass, context, x, ln2_x, input, y, error));
    if (s->shared_expert)
        TRY(forward_shared(pass, context, x, input, y, error));
    if (!context->training)
        arena_release(context->arena, start);
    return OK;
}

/* The gates of a shared decision get the sum of the gradients of all its blocks; the first block's are added last. */
static status backward_gates(struct expert_pass *pass, const struct block_context *context, float *dgates,
                             const struct tensor *dx, struct error *error)
{
    const struct shared_decision *decision = &pass->decider->decision;
    if (pass->routed.constant)
        return OK;
    if (expert_decision_users(pass->tower) == 1)
        return router_backward(pass, context, dgates, dx, error);
    TRY(context->backend->ops->weighted_sum(
        context->backend,
        &(struct weighted_sum){.count = 2,
                               .n = decision->dispatch.samples * decision->dispatch.top_k,
                               .inputs = {decision->dgates, dgates},
                               .weights = {1, 1},
                               .out = decision->dgates},
        error));
    return pass->decider == pass ? router_backward(pass, context, decision->dgates, dx, error) : OK;
}

static status backward(void *state, const struct block_context *context, const struct tensor *x,
                       const struct tensor *ln2_x, const struct tensor *dy, struct tensor *dx, struct tensor *dln2,
                       struct error *error)
{
    struct expert_pass *pass = state;
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    bool post_ln = s->input == EXPERT_INPUT_POST_LN;
    const struct tensor *input = post_ln ? ln2_x : x;
    struct tensor dgates, ones, dhidden, dshared, *dinput = dx->data == NULL ? NULL : post_ln ? dln2 : dx;
    const size_t shape[] = {pass->routed.dispatch.samples, s->top_k};
    struct arena_mark mark = arena_mark(context->arena);
    TRY(tensor_take(&dgates, context->arena, TENSOR_F32, "gradient of the gates", 2, shape, error));
    TRY(expert_layer_backward(&pass->routed, context, input, dy, dgates.data, &dhidden, error));
    if (s->shared_expert) { /* its gates are constantly 1 */
        TRY(tensor_take(&ones, context->arena, TENSOR_F32, "gradient of the gates", 1, &pass->shared.dispatch.samples,
                        error));
        TRY(expert_layer_backward(&pass->shared, context, input, dy, ones.data, &dshared, error));
    }
    TRY(backward_gates(pass, context, dgates.data,
                       expert_kind_of(s)->place == REPLACES_MLP && dx->data != NULL ? dln2 : dx, error));
    if (dinput != NULL)
        TRY(expert_layer_backward_input(&pass->routed, context, &dhidden, dinput, error));
    if (dinput != NULL && s->shared_expert)
        TRY(expert_layer_backward_input(&pass->shared, context, &dshared, dinput, error));
    arena_release(context->arena, mark);
    return OK;
}

void mixture_hook(struct expert_pass *pass, struct block_hook *hook)
{
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    bool trained = pass->tower->parameters->gradients != NULL;
    *hook =
        (struct block_hook){.state = pass,
                            .place = expert_kind_of(s)->place,
                            .trained = trained,
                            .whole = s->gate_input == GATE_MEAN ||
                                     (s->routing == ROUTING_PER_TOKEN &&
                                      !(router_kind_of(s)->averages && expert_decision_users(pass->tower) == 1)),
                            .stream_alone = expert_kind_of(s)->place == BESIDE_MLP && s->input == EXPERT_INPUT_RESIDUAL,
                            .begin = pass->decider == pass && expert_decision_users(pass->tower) > 1 ? begin : NULL,
                            .forward = forward,
                            .backward = trained ? backward : NULL};
}

const struct block_hook *adapters_hooks(const struct adapters *adapters, enum tower tower)
{
    return adapters_in_tower(adapters, tower) ? adapters->towers[tower].hooks : NULL;
}
