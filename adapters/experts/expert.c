/* Experts of any kind, ε(x) = scale · (W₂ dropout(act(W₁ x + b₁)) + b₂), and the hook that puts them into a block: y += Σ_k g_k
 * ε_k(x) over the experts that the router chose, and the shared one. */
#include "adapters/experts/expert.h"

#include <math.h>

#include "adapters/routers/router.h"
#include "adapters/statistics.h"

#define ENTRY(name) &expert_##name,
static const struct expert_kind *const kinds[] = {EXPERT_KINDS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(expert_kind, struct expert_kind, kinds, "suite", "kind of expert")

const struct expert_kind *expert_kind_of(const struct adapter_settings *settings)
{
    return settings->kind != NULL ? settings->kind : &expert_lora;
}

/* --- Operands of the backend's operations on stacked experts --- */

uint64_t expert_numbers(const struct block_context *context)
{
    return ((uint64_t)context->tower << 16 | context->block) << 40;
}

double expert_deviation(const float *values, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)values[i];
    for (size_t i = 0; i < n; i++)
        squares += pow((double)values[i] - sum / (double)n, 2);
    return sqrt(squares / (double)n);
}

void expert_add_noise(float *values, size_t n, double deviation, const struct rng *rng, uint64_t base)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (float)((double)values[i] + deviation * (double)rng_normal(rng, base + i));
}

static void layer_use(struct expert_layer *layer, const struct parameters *group, const size_t parts[EXPERT_PARTS])
{
    for (int i = 0; i < EXPERT_PARTS; i++)
        layer->parts[i] = parameters_weight(group, parts[i]);
}

static status take(struct tensor *tensor, const struct block_context *context, enum tensor_type type, const char *name,
                   size_t rows, size_t columns, struct error *error)
{
    return tensor_take(tensor, context->arena, type, name, 2, (size_t[]){rows, columns}, error);
}

static const struct adapter_settings *settings_of(const struct expert_layer *layer)
{
    return &layer->tower->adapters->settings;
}

static size_t rows_of(const struct expert_layer *layer)
{
    return layer->dispatch.samples * layer->dispatch.top_k * layer->length;
}

status expert_dispatch_take(struct dispatch *dispatch, const struct block_context *context, size_t samples,
                            size_t experts, size_t top_k, struct error *error)
{
    struct tensor ids, gates, offsets;
    TRY(take(&ids, context, TENSOR_I32, "dispatch", 4 * samples, top_k, error));
    TRY(take(&gates, context, TENSOR_F32, "gates", samples, top_k, error));
    TRY(take(&offsets, context, TENSOR_I32, "offsets", 1, experts + 1, error));
    int32_t *id = ids.data;
    size_t choices = samples * top_k;
    *dispatch = (struct dispatch){.samples = samples,
                                  .experts = experts,
                                  .top_k = top_k,
                                  .chosen = id,
                                  .gates = gates.data,
                                  .slot = id + choices,
                                  .sample = id + 2 * choices,
                                  .choice = id + 3 * choices,
                                  .offsets = offsets.data};
    return OK;
}

static status layer_take(struct expert_layer *layer, const struct block_context *context, size_t length,
                         struct error *error)
{
    layer->length = length;
    return take(&layer->hidden, context, backend_operand_type(context->backend), "expert hidden units", rows_of(layer),
                layer->tower->hidden, error);
}

/* Experts in place of an MLP have the tower's dropout; it has no part in the activation's slope unless that is ReLU's. */
static float dropout_of(const struct expert_layer *layer, const struct block_context *context)
{
    if (!context->training)
        return 0;
    return layer->tower->activation != ACTIVATION_RELU ? context->dropout : settings_of(layer)->dropout;
}

/* positions: of an image or prompt; the hidden units of samples before this share of a batch come first. */
static struct expert_stack_operands stack_of(const struct expert_layer *layer, const struct block_context *context,
                                             size_t positions)
{
    const struct weight *parts = layer->parts;
    size_t before = context->first * layer->dispatch.top_k * positions;
    return (struct expert_stack_operands){.dispatch = &layer->dispatch,
                                          .rows_per_sample = layer->length,
                                          .width = layer->tower->width,
                                          .hidden = layer->tower->hidden,
                                          .tokens = layer->tokens,
                                          .activation = layer->tower->activation,
                                          .scale = settings_of(layer)->scale,
                                          .first = parts[0].value,
                                          .first_bias = parts[1].value,
                                          .second = parts[2].value,
                                          .second_bias = parts[3].value,
                                          .probability = dropout_of(layer, context),
                                          .base = layer->numbers + (uint64_t)before * layer->tower->hidden,
                                          .state = context->state,
                                          .arena = context->arena};
}

static status layer_forward(struct expert_layer *layer, const struct block_context *context, const struct tensor *x,
                            struct tensor *y, struct error *error)
{
    return context->backend->ops->experts(context->backend,
                                          &(struct experts){.stack = stack_of(layer, context, x->shape[1]),
                                                            .training = context->training,
                                                            .x_type = x->type,
                                                            .x = x->data,
                                                            .weights = layer->weights,
                                                            .units = layer->hidden.data,
                                                            .y = y->data},
                                          error);
}

static status layer_backward(struct expert_layer *layer, const struct block_context *context, const struct tensor *x,
                             const struct tensor *dy, float *dgates, struct tensor *dhidden, struct error *error)
{
    const struct weight *parts = layer->parts;
    TRY(take(dhidden, context, layer->hidden.type, "gradient of the expert hidden units", rows_of(layer),
             layer->tower->hidden, error));
    return context->backend->ops->experts_backward(
        context->backend,
        &(struct experts_backward){.stack = stack_of(layer, context, x->shape[1]),
                                   .constant = layer->constant,
                                   .x_type = x->type,
                                   .dy_type = dy->type,
                                   .x = x->data,
                                   .dy = dy->data,
                                   .units = layer->hidden.data,
                                   .dunits = dhidden->data,
                                   .dgates = dgates,
                                   .dfirst = parts[0].gradient,
                                   .dfirst_bias = parts[1].gradient,
                                   .dsecond = parts[2].gradient,
                                   .dsecond_bias = parts[3].gradient,
                                   .frozen = layer->frozen},
        error);
}

static status layer_backward_input(const struct expert_layer *layer, const struct block_context *context,
                                   const struct tensor *dhidden, struct tensor *dx, struct error *error)
{
    return context->backend->ops->experts_backward_input(
        context->backend,
        &(struct experts_backward_input){
            .stack = stack_of(layer, context, dx->shape[1]), .dunits = dhidden->data, .dx = dx->data},
        error);
}

/* --- The mean of a bank's experts (Huang et al. 2023, arXiv 2308.06093, Equation 7), computed once after they changed --- */

/* out [n] = the mean of values [E, n], summed up in double precision for as many at a time as an operation takes. */
static status mean_of_stack(struct backend *backend, const float *values, size_t experts, size_t n, float *out,
                            struct error *error)
{
    for (size_t e = 0; e < experts;) {
        struct weighted_sum sum = {.n = n, .out = out};
        if (e > 0) {
            sum.inputs[0] = out;
            sum.weights[0] = 1;
            sum.count = 1;
        }
        for (; sum.count < WEIGHTED_SUM_INPUTS && e < experts; e++) {
            sum.inputs[sum.count] = values + e * n;
            sum.weights[sum.count++] = 1;
        }
        sum.divisor = e == experts ? (double)experts : 1;
        TRY(backend->ops->weighted_sum(backend, &sum, error));
    }
    return OK;
}

status adapters_mean(const struct adapters *adapters, enum tower which, size_t index, float *parts[EXPERT_PARTS],
                     struct error *error)
{
    const struct parameters *group = adapters->towers[which].parameters;
    struct expert_bank *bank = &adapters->towers[which].banks[index];
    size_t experts = adapters->settings.experts;
    for (int i = 0; i < EXPERT_PARTS; i++) {
        size_t n = group->list[bank->parts[i]].size / experts;
        parts[i] = bank->mean[i];
        if (bank->mean_of == group->version)
            continue;
        adapters->backend->renew(adapters->backend, bank->mean[i], n);
        TRY(mean_of_stack(adapters->backend, parameters_weight(group, bank->parts[i]).value, experts, n, bank->mean[i],
                          error));
    }
    bank->mean_of = group->version;
    return OK;
}

/* --- The hook --- */

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
    layer_use(&pass->routed, tower->parameters, bank->parts);
    TRY(take_dispatch(pass, context, x, error));
    return layer_take(&pass->routed, context, pass->routed.tokens ? 1 : x->shape[1], error);
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
    TRY(layer_take(&mean, context, x->shape[1], error));
    TRY(router_send_all(&mean, context, x, error));
    return layer_forward(&mean, context, input, y, error);
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
    return layer_forward(&pass->routed, context, input, y, error);
}

static status forward_shared(struct expert_pass *pass, const struct block_context *context, const struct tensor *x,
                             const struct tensor *input, struct tensor *y, struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    pass->shared = (struct expert_layer){.tower = tower, .numbers = expert_numbers(context) + ((uint64_t)1 << 39)};
    layer_use(&pass->shared, tower->parameters, tower->banks[pass->bank].shared);
    TRY(expert_dispatch_take(&pass->shared.dispatch, context, x->shape[0], 1, 1, error));
    TRY(layer_take(&pass->shared, context, x->shape[1], error));
    TRY(router_send_all(&pass->shared, context, x, error));
    return layer_forward(&pass->shared, context, input, y, error);
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
    TRY(layer_backward(&pass->routed, context, input, dy, dgates.data, &dhidden, error));
    if (s->shared_expert) { /* its gates are constantly 1 */
        TRY(tensor_take(&ones, context->arena, TENSOR_F32, "gradient of the gates", 1, &pass->shared.dispatch.samples,
                        error));
        TRY(layer_backward(&pass->shared, context, input, dy, ones.data, &dshared, error));
    }
    TRY(backward_gates(pass, context, dgates.data,
                       expert_kind_of(s)->place == REPLACES_MLP && dx->data != NULL ? dln2 : dx, error));
    if (dinput != NULL)
        TRY(layer_backward_input(&pass->routed, context, &dhidden, dinput, error));
    if (dinput != NULL && s->shared_expert)
        TRY(layer_backward_input(&pass->shared, context, &dshared, dinput, error));
    arena_release(context->arena, mark);
    return OK;
}

void expert_hook(struct expert_pass *pass, struct block_hook *hook)
{
    const struct adapter_settings *s = &pass->tower->adapters->settings;
    bool trained = pass->tower->parameters->gradients != NULL;
    *hook =
        (struct block_hook){.state = pass,
                            .place = expert_kind_of(s)->place,
                            .trained = trained,
                            .whole = router_reads_all(pass->tower),
                            .stream_alone = expert_kind_of(s)->place == BESIDE_MLP && s->input == EXPERT_INPUT_RESIDUAL,
                            .begin = pass->decider == pass && expert_decision_users(pass->tower) > 1 ? begin : NULL,
                            .forward = forward,
                            .backward = trained ? backward : NULL};
}

const struct block_hook *adapters_hooks(const struct adapters *adapters, enum tower tower)
{
    return adapters_in_tower(adapters, tower) ? adapters->towers[tower].hooks : NULL;
}
