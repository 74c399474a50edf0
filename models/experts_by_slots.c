/* The operations on stacked experts as a composition of others (models/dispatch.h). */
#include "models/backend.h"

/* Rows of all slots that there can be. */
static size_t rows_of(const struct expert_stack_operands *s)
{
    return s->dispatch->samples * s->dispatch->top_k * s->rows_per_sample;
}

static struct matrix operand_of(const struct backend *backend, const struct expert_stack_operands *s, const void *data,
                                size_t columns)
{
    return (struct matrix){(void *)data, backend_operand_type(backend), rows_of(s), columns, columns};
}

static status take(struct matrix *rows, const struct backend *backend, const struct expert_stack_operands *s,
                   size_t columns, const char *name, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, s->arena, backend_operand_type(backend), name, 2, (size_t[]){rows_of(s), columns}, error));
    *rows = matrix_of(&memory);
    return OK;
}

/* out = act(in · W[e]ᵀ + b[e]), or, without a bias, in · W[e] on the way back */
static status product(struct backend *backend, const struct expert_stack_operands *s, struct matrix in,
                      const float *weight, const float *bias, enum activation activation, struct matrix out,
                      struct error *error)
{
    size_t inputs = bias != NULL ? in.columns : out.columns, outputs = bias != NULL ? out.columns : in.columns;
    return backend->ops->grouped_gemm(
        backend,
        &(struct grouped_gemm){.kind = GROUPED_ROWS,
                               .groups = s->dispatch->experts,
                               .rows_per_slot = s->rows_per_sample,
                               .offsets = s->dispatch->offsets,
                               .a = in,
                               .b = matrix_rows((float *)weight, s->dispatch->experts * outputs, inputs),
                               .transpose_b = bias != NULL,
                               .rows_share_tiles = s->tokens,
                               .bias = bias,
                               .activation = activation,
                               .out = out},
        error);
}

/* Whether the values before the activation are kept; for ReLU the output shows the slope. */
static bool keeps_before(const struct expert_stack_operands *s)
{
    return s->activation != ACTIVATION_RELU;
}

static status gather(struct backend *backend, const struct expert_stack_operands *s, enum tensor_type type,
                     const void *x, struct matrix out, struct error *error)
{
    return backend->ops->dispatch_gather(backend,
                                         &(struct dispatch_gather){.dispatch = s->dispatch,
                                                                   .rows_per_sample = s->rows_per_sample,
                                                                   .width = s->width,
                                                                   .x_type = type,
                                                                   .out_type = out.type,
                                                                   .x = x,
                                                                   .out = out.data},
                                         error);
}

static status combine(struct backend *backend, const struct expert_stack_operands *s, struct matrix rows,
                      const float *weights, float scale, float *y, struct error *error)
{
    return backend->ops->dispatch_combine(backend,
                                          &(struct dispatch_combine){.dispatch = s->dispatch,
                                                                     .rows_per_sample = s->rows_per_sample,
                                                                     .width = s->width,
                                                                     .rows_type = rows.type,
                                                                     .rows = rows.data,
                                                                     .weights = weights,
                                                                     .scale = scale,
                                                                     .y = y},
                                          error);
}

static status drop(struct backend *backend, const struct expert_stack_operands *s, struct matrix units,
                   struct error *error)
{
    if (s->probability <= 0)
        return OK;
    return backend->ops->dispatch_dropout(backend,
                                          &(struct dispatch_dropout){.dispatch = s->dispatch,
                                                                     .rows_per_sample = s->rows_per_sample,
                                                                     .width = s->hidden,
                                                                     .probability = s->probability,
                                                                     .base = s->base,
                                                                     .state = s->state,
                                                                     .type = units.type,
                                                                     .hidden = units.data},
                                          error);
}

static status activate(struct backend *backend, const struct expert_stack_operands *s, struct matrix before,
                       struct matrix *active, struct error *error)
{
    TRY(take(active, backend, s, s->hidden, "activation", error));
    return backend->ops->activate(backend, &(struct activate){.activation = s->activation, .x = before, .out = *active},
                                  error);
}

status experts_by_slots(struct backend *backend, const struct experts *o, struct error *error)
{
    const struct expert_stack_operands *s = &o->stack;
    struct arena_mark mark = arena_mark(s->arena);
    struct matrix gathered, units = operand_of(backend, s, o->units, s->hidden), active = units;
    bool apart = o->training && keeps_before(s);
    TRY(take(&gathered, backend, s, s->width, "samples by expert", error)); /* then the experts' outputs */
    TRY(gather(backend, s, o->x_type, o->x, gathered, error));
    TRY(product(backend, s, gathered, s->first, s->first_bias, apart ? ACTIVATION_NONE : s->activation, units, error));
    if (apart)
        TRY(activate(backend, s, units, &active, error));
    TRY(drop(backend, s, active, error));
    TRY(product(backend, s, active, s->second, s->second_bias, ACTIVATION_NONE, gathered, error));
    TRY(combine(backend, s, gathered, o->weights != NULL ? o->weights : s->dispatch->gates, s->scale, o->y, error));
    arena_release(s->arena, mark);
    return OK;
}

/* dW[e] += aᵀ b over the expert's rows; bias, unless NULL, receives the sums of a's rows. */
static status weight_gradient(struct backend *backend, const struct experts_backward *o, struct matrix a,
                              struct matrix b, float *gradient, float *bias, struct error *error)
{
    const struct dispatch *d = o->stack.dispatch;
    return backend->ops->grouped_gemm(
        backend,
        &(struct grouped_gemm){.kind = GROUPED_WEIGHTS,
                               .groups = d->experts,
                               .rows_per_slot = o->stack.rows_per_sample,
                               .offsets = d->offsets,
                               .a = a,
                               .b = b,
                               .out = matrix_rows(gradient, d->experts * a.columns, b.columns),
                               .column_sums = bias,
                               .frozen = o->frozen},
        error);
}

/* Turns the gradient after activation and gate into the gradient before both, and computes the gates' gradient. */
static status gate_backward(struct backend *backend, const struct experts_backward *o, struct matrix active,
                            struct matrix dy, struct matrix dunits, struct error *error)
{
    const struct expert_stack_operands *s = &o->stack;
    return backend->ops->expert_gate_backward(
        backend,
        &(struct expert_gate_backward){.dispatch = s->dispatch,
                                       .rows_per_sample = s->rows_per_sample,
                                       .hidden = s->hidden,
                                       .width = s->width,
                                       .scale = s->scale,
                                       .keep = keeps_before(s) ? 1.0f : 1.0f - s->probability,
                                       .type = dunits.type,
                                       .activation = s->activation,
                                       .before = keeps_before(s) ? o->units : NULL,
                                       .h = active.data,
                                       .dh = dunits.data,
                                       .dy = dy.data,
                                       .up_bias = s->second_bias,
                                       .dgates = o->dgates,
                                       .dup_bias = o->dsecond_bias,
                                       .frozen = o->frozen},
        error);
}

/* Whether nothing but the activation lies between dy and the hidden units. */
static bool is_plain(const struct experts_backward *o)
{
    return o->constant && keeps_before(&o->stack) && o->stack.scale == 1;
}

status experts_backward_by_slots(struct backend *backend, const struct experts_backward *o, struct error *error)
{
    const struct expert_stack_operands *s = &o->stack;
    struct arena_mark mark = arena_mark(s->arena);
    struct matrix gathered, units = operand_of(backend, s, o->units, s->hidden), active = units,
                            dunits = operand_of(backend, s, o->dunits, s->hidden);
    TRY(take(&gathered, backend, s, s->width, "gradients by expert", error));
    TRY(gather(backend, s, o->dy_type, o->dy, gathered, error));
    TRY(product(backend, s, gathered, s->second, NULL, ACTIVATION_NONE, dunits, error));
    if (keeps_before(s)) {
        TRY(activate(backend, s, units, &active, error));
        TRY(drop(backend, s, active, error));
    }
    if (is_plain(o))
        TRY(backend->ops->activate_backward(
            backend, &(struct activate_backward){.activation = s->activation, .x = units, .dy = dunits, .dx = dunits},
            error));
    else
        TRY(gate_backward(backend, o, active, gathered, dunits, error));
    if (keeps_before(s))
        TRY(drop(backend, s, dunits, error));
    TRY(weight_gradient(backend, o, gathered, active, o->dsecond, is_plain(o) ? o->dsecond_bias : NULL, error));
    TRY(gather(backend, s, o->x_type, o->x, gathered, error));
    TRY(weight_gradient(backend, o, dunits, gathered, o->dfirst, o->dfirst_bias, error));
    arena_release(s->arena, mark);
    return OK;
}

status experts_backward_input_by_slots(struct backend *backend, const struct experts_backward_input *o,
                                       struct error *error)
{
    const struct expert_stack_operands *s = &o->stack;
    struct arena_mark mark = arena_mark(s->arena);
    struct matrix gathered;
    TRY(take(&gathered, backend, s, s->width, "gradients by expert", error));
    TRY(product(backend, s, operand_of(backend, s, o->dunits, s->hidden), s->first, NULL, ACTIVATION_NONE, gathered,
                error));
    TRY(combine(backend, s, gathered, NULL, 1.0f, o->dx, error));
    arena_release(s->arena, mark);
    return OK;
}
