/* ε(x) = scale · (W₂ dropout(act(W₁ x + b₁)) + b₂): the operands of the backend's operations on stacked experts. */
#include "adapters/experts/expert.h"

#include <math.h>

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

void expert_layer_use(struct expert_layer *layer, const struct parameters *group, const struct expert_stack *stack)
{
    const size_t parts[EXPERT_PARTS] = {stack->down_weight, stack->down_bias, stack->up_weight, stack->up_bias};
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

status expert_layer_take(struct expert_layer *layer, const struct block_context *context, size_t length,
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

status expert_layer_forward(struct expert_layer *layer, const struct block_context *context, const struct tensor *x,
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

status expert_layer_backward(struct expert_layer *layer, const struct block_context *context, const struct tensor *x,
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

status expert_layer_backward_input(const struct expert_layer *layer, const struct block_context *context,
                                   const struct tensor *dhidden, struct tensor *dx, struct error *error)
{
    return context->backend->ops->experts_backward_input(
        context->backend,
        &(struct experts_backward_input){
            .stack = stack_of(layer, context, dx->shape[1]), .dunits = dhidden->data, .dx = dx->data},
        error);
}
