/* ε(x) = scale · (W₂ dropout(act(W₁ x + b₁)) + b₂), all samples of an expert in one product. */
#include "adapters/experts/expert.h"

#include <math.h>

uint64_t expert_numbers(const struct block_site *site)
{
    return ((uint64_t)site->tower << 16 | site->block) << 40;
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

status expert_dispatch_take(struct dispatch *dispatch, const struct block_site *site, size_t samples, size_t experts,
                            size_t top_k, struct error *error)
{
    struct tensor ids, gates, offsets;
    TRY(take(&ids, site, TENSOR_I32, "dispatch", 4 * samples, top_k, error));
    TRY(take(&gates, site, TENSOR_F32, "gates", samples, top_k, error));
    TRY(take(&offsets, site, TENSOR_I32, "offsets", 1, experts + 1, error));
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

status expert_layer_take(struct expert_layer *layer, const struct block_site *site, size_t length, struct error *error)
{
    layer->length = length;
    return take(&layer->hidden, site, backend_operand_type(site->backend), "expert hidden units", rows_of(layer),
                layer->tower->hidden, error);
}

enum expert_part_number { FIRST_WEIGHT, FIRST_BIAS, SECOND_WEIGHT, SECOND_BIAS };

/* The stacked weights of a layer, or their gradients. */
static struct matrix stack_of(const struct expert_layer *layer, enum expert_part_number weight, float *values)
{
    size_t d = layer->tower->width, m = layer->tower->hidden, experts = layer->dispatch.experts;
    return weight == FIRST_WEIGHT ? matrix_rows(values, experts * m, d) : matrix_rows(values, experts * d, m);
}

/* rows [slots · length, out] = act(rows [slots · length, in] · W[e]ᵀ + b[e]), or, on the way back, · W[e] */
static status expert_product(const struct expert_layer *layer, const struct block_site *site,
                             enum expert_part_number weight, bool back, const struct tensor *in,
                             const struct tensor *out, enum activation activation, struct error *error)
{
    return site->backend->ops->grouped_gemm(
        site->backend,
        &(struct grouped_gemm){.kind = GROUPED_ROWS,
                               .groups = layer->dispatch.experts,
                               .rows_per_slot = layer->length,
                               .offsets = layer->dispatch.offsets,
                               .a = matrix_of(in),
                               .b = stack_of(layer, weight, layer->parts[weight].value),
                               .transpose_b = !back,
                               .rows_share_tiles = layer->tokens,
                               .bias = back ? NULL : layer->parts[weight + 1].value,
                               .activation = activation,
                               .out = matrix_of(out)},
        error);
}

/* Whether the values before the activation are kept; for ReLU the output shows the slope. */
static bool keeps_before(const struct expert_layer *layer)
{
    return layer->tower->activation != ACTIVATION_RELU;
}

static status activate(const struct expert_layer *layer, const struct block_site *site, struct tensor *active,
                       struct error *error)
{
    TRY(take(active, site, layer->hidden.type, "activation", rows_of(layer), layer->tower->hidden, error));
    return site->backend->ops->activate(site->backend,
                                        &(struct activate){.activation = layer->tower->activation,
                                                           .x = matrix_of(&layer->hidden),
                                                           .out = matrix_of(active)},
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

/* Experts in place of an MLP have the tower's dropout; it has no part in the activation's slope unless that is ReLU's. */
static float dropout_of(const struct expert_layer *layer, const struct block_site *site)
{
    return keeps_before(layer) ? site->dropout : settings_of(layer)->dropout;
}

/* images_rows: of an image; the hidden units of samples before this share of a batch come first. */
static status drop(const struct expert_layer *layer, const struct block_site *site, size_t images_rows,
                   const struct tensor *hidden, struct error *error)
{
    float probability = dropout_of(layer, site);
    if (!site->training || probability <= 0)
        return OK;
    return site->backend->ops->dispatch_dropout(
        site->backend,
        &(struct dispatch_dropout){.dispatch = &layer->dispatch,
                                   .rows_per_sample = layer->length,
                                   .width = layer->tower->hidden,
                                   .probability = probability,
                                   .base = layer->numbers + (uint64_t)site->first * layer->dispatch.top_k *
                                                                images_rows * layer->tower->hidden,
                                   .state = site->state,
                                   .type = hidden->type,
                                   .hidden = hidden->data},
        error);
}

status expert_layer_forward(struct expert_layer *layer, const struct block_site *site, const struct tensor *x,
                            struct tensor *y, struct error *error)
{
    const struct adapter_settings *s = settings_of(layer);
    struct arena_mark mark = arena_mark(site->arena);
    struct tensor gathered, active; /* gathered: the samples by slot, then the experts' outputs */
    bool apart = site->training && keeps_before(layer);
    TRY(take(&gathered, site, layer->hidden.type, "samples by expert", rows_of(layer), layer->tower->width, error));
    TRY(gather(layer, site, x, &gathered, error));
    TRY(expert_product(layer, site, FIRST_WEIGHT, false, &gathered, &layer->hidden,
                       apart ? ACTIVATION_NONE : layer->tower->activation, error));
    active = layer->hidden;
    if (apart)
        TRY(activate(layer, site, &active, error));
    TRY(drop(layer, site, x->shape[1], &active, error));
    TRY(expert_product(layer, site, SECOND_WEIGHT, false, &active, &gathered, ACTIVATION_NONE, error));
    TRY(combine(layer, site, &gathered, layer->weights != NULL ? layer->weights : layer->dispatch.gates, s->scale, y,
                error));
    arena_release(site->arena, mark);
    return OK;
}

/* dW[e] += aᵀ b over the expert's rows; bias, unless NULL, receives the sums of a's rows. */
static status weight_gradient(const struct expert_layer *layer, const struct block_site *site,
                              enum expert_part_number weight, const struct tensor *a, const struct tensor *b,
                              float *bias, struct error *error)
{
    return site->backend->ops->grouped_gemm(
        site->backend,
        &(struct grouped_gemm){.kind = GROUPED_WEIGHTS,
                               .groups = layer->dispatch.experts,
                               .rows_per_slot = layer->length,
                               .offsets = layer->dispatch.offsets,
                               .a = matrix_of(a),
                               .b = matrix_of(b),
                               .out = stack_of(layer, weight, layer->parts[weight].gradient),
                               .column_sums = bias,
                               .frozen = layer->frozen},
        error);
}

/* Turns the gradient after activation and gate into the gradient before both, and computes the gates' gradient. */
static status gate_backward(struct expert_layer *layer, const struct block_site *site, const struct tensor *active,
                            const struct tensor *dy, float *dgates, struct tensor *dhidden, struct error *error)
{
    const struct adapter_settings *s = settings_of(layer);
    struct weight bias = layer->parts[SECOND_BIAS];
    return site->backend->ops->expert_gate_backward(
        site->backend,
        &(struct expert_gate_backward){.dispatch = &layer->dispatch,
                                       .rows_per_sample = layer->length,
                                       .hidden = layer->tower->hidden,
                                       .width = layer->tower->width,
                                       .scale = s->scale,
                                       .keep = 1.0f - s->dropout,
                                       .type = dhidden->type,
                                       .activation = layer->tower->activation,
                                       .before = keeps_before(layer) ? layer->hidden.data : NULL,
                                       .h = active->data,
                                       .dh = dhidden->data,
                                       .dy = dy->data,
                                       .up_bias = bias.value,
                                       .dgates = dgates,
                                       .dup_bias = bias.gradient,
                                       .frozen = layer->frozen},
        error);
}

/* Whether nothing but the activation lies between dy and the hidden units. */
static bool is_plain(const struct expert_layer *layer)
{
    const struct adapter_settings *s = settings_of(layer);
    return layer->constant && keeps_before(layer) && s->scale == 1 && s->dropout == 0;
}

status expert_layer_backward(struct expert_layer *layer, const struct block_site *site, const struct tensor *x,
                             const struct tensor *dy, float *dgates, struct tensor *dhidden, struct error *error)
{
    struct tensor gathered, active = layer->hidden;
    enum tensor_type type = layer->hidden.type;
    bool plain = is_plain(layer);
    TRY(take(dhidden, site, type, "gradient of the expert hidden units", rows_of(layer), layer->tower->hidden, error));
    struct arena_mark mark = arena_mark(site->arena);
    TRY(take(&gathered, site, type, "gradients by expert", rows_of(layer), layer->tower->width, error));
    TRY(gather(layer, site, dy, &gathered, error));
    TRY(expert_product(layer, site, SECOND_WEIGHT, true, &gathered, dhidden, ACTIVATION_NONE, error));
    if (keeps_before(layer)) {
        TRY(activate(layer, site, &active, error));
        TRY(drop(layer, site, x->shape[1], &active, error));
    }
    if (plain)
        TRY(site->backend->ops->activate_backward(site->backend,
                                                  &(struct activate_backward){.activation = layer->tower->activation,
                                                                              .x = matrix_of(&layer->hidden),
                                                                              .dy = matrix_of(dhidden),
                                                                              .dx = matrix_of(dhidden)},
                                                  error));
    else
        TRY(gate_backward(layer, site, &active, &gathered, dgates, dhidden, error));
    if (keeps_before(layer))
        TRY(drop(layer, site, x->shape[1], dhidden, error));
    TRY(weight_gradient(layer, site, SECOND_WEIGHT, &gathered, &active,
                        plain ? layer->parts[SECOND_BIAS].gradient : NULL, error));
    TRY(gather(layer, site, x, &gathered, error));
    TRY(weight_gradient(layer, site, FIRST_WEIGHT, dhidden, &gathered, layer->parts[FIRST_BIAS].gradient, error));
    arena_release(site->arena, mark);
    return OK;
}

status expert_layer_backward_input(const struct expert_layer *layer, const struct block_site *site,
                                   const struct tensor *dhidden, struct tensor *dx, struct error *error)
{
    struct arena_mark mark = arena_mark(site->arena);
    struct tensor gathered;
    TRY(take(&gathered, site, dhidden->type, "gradients by expert", rows_of(layer), layer->tower->width, error));
    TRY(expert_product(layer, site, FIRST_WEIGHT, true, dhidden, &gathered, ACTIVATION_NONE, error));
    TRY(combine(layer, site, &gathered, NULL, 1.0f, dx, error));
    arena_release(site->arena, mark);
    return OK;
}
