/* ε(x) = scale · (W_up dropout(ReLU(W_down x + b_down)) + b_up), all samples of an expert in one product. */
#include "adapters/experts/expert.h"

uint64_t expert_numbers(const struct block_site *site)
{
    return ((uint64_t)site->tower << 16 | site->block) << 40;
}

static status take(struct tensor *tensor, const struct block_site *site, enum tensor_type type, const char *name,
                   size_t rows, size_t columns, struct error *error)
{
    return tensor_take(tensor, site->arena, type, name, 2, (size_t[]){rows, columns}, error);
}

static const struct adapter_settings *settings_of(const struct expert_layer *layer)
{
    return &layer->tower->adapters->settings;
}

static size_t rows_of(const struct expert_layer *layer)
{
    return layer->dispatch.samples * layer->dispatch.top_k * layer->length;
}

status expert_layer_take(struct expert_layer *layer, const struct block_site *site, size_t samples, size_t length,
                         size_t experts, size_t top_k, struct error *error)
{
    struct tensor ids, gates, offsets;
    TRY(take(&ids, site, TENSOR_I32, "dispatch", 4 * samples, top_k, error));
    TRY(take(&gates, site, TENSOR_F32, "gates", samples, top_k, error));
    TRY(take(&offsets, site, TENSOR_I32, "offsets", 1, experts + 1, error));
    int32_t *id = ids.data;
    size_t choices = samples * top_k;
    layer->length = length;
    layer->dispatch = (struct dispatch){.samples = samples,
                                        .experts = experts,
                                        .top_k = top_k,
                                        .chosen = id,
                                        .gates = gates.data,
                                        .slot = id + choices,
                                        .sample = id + 2 * choices,
                                        .choice = id + 3 * choices,
                                        .offsets = offsets.data};
    return take(&layer->hidden, site, backend_operand_type(site->backend), "expert hidden units", rows_of(layer),
                settings_of(layer)->bottleneck, error);
}

/* rows [slots · length, out] = act(rows [slots · length, in] · W[e]ᵀ + b[e]), or · W[e] without a bias on the way back */
static status expert_product(const struct expert_layer *layer, const struct block_site *site, size_t weight,
                             const size_t *bias, bool transpose, const struct tensor *in, const struct tensor *out,
                             enum activation activation, struct error *error)
{
    const struct parameters *group = layer->tower->parameters;
    const size_t *shape = group->list[weight].shape;
    return site->backend->ops->grouped_gemm(
        site->backend,
        &(struct grouped_gemm){.kind = GROUPED_ROWS,
                               .groups = layer->dispatch.experts,
                               .rows_per_slot = layer->length,
                               .offsets = layer->dispatch.offsets,
                               .a = matrix_of(in),
                               .b = matrix_rows(parameters_weight(group, weight).value, shape[0] * shape[1], shape[2]),
                               .transpose_b = transpose,
                               .rows_share_tiles = layer->tokens,
                               .bias = bias != NULL ? parameters_weight(group, *bias).value : NULL,
                               .activation = activation,
                               .out = matrix_of(out)},
        error);
}

static status gather(const struct expert_layer *layer, const struct block_site *site, const struct tensor *x,
                     const struct tensor *out, struct error *error)
{
    return site->backend->ops->dispatch_gather(site->backend,
                                               &(struct dispatch_gather){.dispatch = &layer->dispatch,
                                                                         .rows_per_sample = layer->length,
                                                                         .width = layer->tower->width,
                                                                         .x_type = x->type,
                                                                         .out_type = out->type,
                                                                         .x = x->data,
                                                                         .out = out->data},
                                               error);
}

static status combine(const struct expert_layer *layer, const struct block_site *site, const struct tensor *rows,
                      const float *weights, float scale, const struct tensor *y, struct error *error)
{
    return site->backend->ops->dispatch_combine(site->backend,
                                                &(struct dispatch_combine){.dispatch = &layer->dispatch,
                                                                           .rows_per_sample = layer->length,
                                                                           .width = layer->tower->width,
                                                                           .rows_type = rows->type,
                                                                           .rows = rows->data,
                                                                           .weights = weights,
                                                                           .scale = scale,
                                                                           .y = y->data},
                                                error);
}

status expert_layer_forward(struct expert_layer *layer, const struct block_site *site, const struct tensor *x,
                            struct tensor *y, struct error *error)
{
    const struct adapter_settings *s = settings_of(layer);
    struct backend *backend = site->backend;
    struct arena_mark mark = arena_mark(site->arena);
    struct tensor gathered; /* the samples by slot, then the experts' outputs */
    TRY(take(&gathered, site, layer->hidden.type, "samples by expert", rows_of(layer), layer->tower->width, error));
    TRY(gather(layer, site, x, &gathered, error));
    TRY(expert_product(layer, site, layer->stack.down_weight, &layer->stack.down_bias, true, &gathered, &layer->hidden,
                       ACTIVATION_RELU, error));
    size_t images_rows = x->shape[1]; /* the hidden units of samples before this share of a batch come first */
    if (site->training && s->dropout > 0)
        TRY(backend->ops->dispatch_dropout(
            backend,
            &(struct dispatch_dropout){.dispatch = &layer->dispatch,
                                       .rows_per_sample = layer->length,
                                       .width = s->bottleneck,
                                       .probability = s->dropout,
                                       .base = layer->numbers + (uint64_t)site->first * layer->dispatch.top_k *
                                                                    images_rows * s->bottleneck,
                                       .state = site->state,
                                       .type = layer->hidden.type,
                                       .hidden = layer->hidden.data},
            error));
    TRY(expert_product(layer, site, layer->stack.up_weight, &layer->stack.up_bias, true, &layer->hidden, &gathered,
                       ACTIVATION_NONE, error));
    TRY(combine(layer, site, &gathered, layer->dispatch.gates, s->scale, y, error));
    arena_release(site->arena, mark);
    return OK;
}

/* dW[e] += aᵀ b over the expert's rows; the bias's gradient too where it is the sum of a's rows. */
static status weight_gradient(const struct expert_layer *layer, const struct block_site *site, size_t weight,
                              const size_t *bias, const struct tensor *a, const struct tensor *b, struct error *error)
{
    const struct parameters *group = layer->tower->parameters;
    const size_t *shape = group->list[weight].shape;
    return site->backend->ops->grouped_gemm(
        site->backend,
        &(struct grouped_gemm){
            .kind = GROUPED_WEIGHTS,
            .groups = layer->dispatch.experts,
            .rows_per_slot = layer->length,
            .offsets = layer->dispatch.offsets,
            .a = matrix_of(a),
            .b = matrix_of(b),
            .out = matrix_rows(parameters_weight(group, weight).gradient, shape[0] * shape[1], shape[2]),
            .column_sums = bias != NULL ? parameters_weight(group, *bias).gradient : NULL,
            .frozen = layer->frozen},
        error);
}

status expert_layer_backward(struct expert_layer *layer, const struct block_site *site, const struct tensor *x,
                             const struct tensor *dy, float *dgates, struct tensor *dhidden, struct error *error)
{
    const struct adapter_settings *s = settings_of(layer);
    const struct expert_stack *stack = &layer->stack;
    struct weight up_bias = parameters_weight(layer->tower->parameters, stack->up_bias);
    struct tensor gathered;
    enum tensor_type type = layer->hidden.type;
    TRY(take(dhidden, site, type, "gradient of the expert hidden units", rows_of(layer), s->bottleneck, error));
    struct arena_mark mark = arena_mark(site->arena);
    TRY(take(&gathered, site, type, "gradients by expert", rows_of(layer), layer->tower->width, error));
    TRY(gather(layer, site, dy, &gathered, error));
    TRY(expert_product(layer, site, stack->up_weight, NULL, false, &gathered, dhidden, ACTIVATION_NONE, error));
    TRY(site->backend->ops->expert_gate_backward(site->backend,
                                                 &(struct expert_gate_backward){.dispatch = &layer->dispatch,
                                                                                .rows_per_sample = layer->length,
                                                                                .hidden = s->bottleneck,
                                                                                .width = layer->tower->width,
                                                                                .scale = s->scale,
                                                                                .keep = 1.0f - s->dropout,
                                                                                .type = type,
                                                                                .activation = ACTIVATION_RELU,
                                                                                .h = layer->hidden.data,
                                                                                .dh = dhidden->data,
                                                                                .dy = gathered.data,
                                                                                .up_bias = up_bias.value,
                                                                                .dgates = dgates,
                                                                                .dup_bias = up_bias.gradient,
                                                                                .frozen = layer->frozen},
                                                 error));
    TRY(weight_gradient(layer, site, stack->up_weight, NULL, &gathered, &layer->hidden, error));
    TRY(gather(layer, site, x, &gathered, error));
    TRY(weight_gradient(layer, site, stack->down_weight, &stack->down_bias, dhidden, &gathered, error));
    arena_release(site->arena, mark);
    return OK;
}

status expert_layer_backward_input(const struct expert_layer *layer, const struct block_site *site,
                                   const struct tensor *dhidden, struct tensor *dx, struct error *error)
{
    struct arena_mark mark = arena_mark(site->arena);
    struct tensor gathered;
    TRY(take(&gathered, site, dhidden->type, "gradients by expert", rows_of(layer), layer->tower->width, error));
    TRY(expert_product(layer, site, layer->stack.down_weight, NULL, false, dhidden, &gathered, ACTIVATION_NONE, error));
    TRY(combine(layer, site, &gathered, NULL, 1.0f, dx, error));
    arena_release(site->arena, mark);
    return OK;
}
