#include "models/block.h"

/* ---- linear layers and norms ---- */

static status take_rows(struct matrix *rows, struct arena *arena, size_t n, size_t columns, struct error *error)
{
    struct tensor tensor;
    TRY(tensor_take(&tensor, arena, TENSOR_F32, "low rank", 2, (size_t[]){n, columns}, error));
    *rows = matrix_of(&tensor);
    return OK;
}

/* p = x Aᵀ and q = gate(p), which is p itself without one. */
static status between(const struct delta *d, struct backend *backend, struct arena *arena, bool training,
                      struct matrix x, struct matrix *p, struct matrix *q, struct error *error)
{
    TRY(take_rows(p, arena, x.rows, d->rows, error));
    TRY(backend->ops->gemm(
        backend, &(struct gemm){.a = x, .b = matrix_rows(d->a, d->rows, x.columns), .transpose_b = true, .out = *p},
        error));
    *q = *p;
    if (d->gate == NULL)
        return OK;
    TRY(take_rows(q, arena, x.rows, d->rows, error));
    return d->gate->forward(d, backend, arena, training, *p, *q, error);
}

/* The term of the layer's product that is the delta's, of x [N, in], in memory of the arena. */
static status delta_forward(const struct delta *d, struct backend *backend, struct arena *arena, bool training,
                            struct matrix x, struct gemm_term *term, struct error *error)
{
    struct matrix p;
    *term = (struct gemm_term){.b = matrix_rows(d->b, d->rows, d->out), .first = d->first, .scale = d->scale};
    return between(d, backend, arena, training, x, &p, &term->a, error);
}

/* gradient [trained, columns of right] += scale · leftᵀ right over the trained rows */
static status add_gradient(const struct delta *d, struct backend *backend, struct matrix left, struct matrix right,
                           float scale, float *gradient, struct error *error)
{
    if (gradient == NULL)
        return OK;
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_columns(left, d->rows - d->trained, d->trained),
                                             .transpose_a = true,
                                             .b = right,
                                             .scale = scale,
                                             .accumulate = true,
                                             .out = matrix_rows(gradient, d->trained, right.columns)},
                              error);
}

/* Adds to the halves' gradients; the term is that of the product which is dx [N, in]. dy is that of all outputs. */
static status delta_backward(const struct delta *d, struct backend *backend, struct arena *arena, struct matrix x,
                             struct matrix dy, size_t in, struct gemm_term *term, struct error *error)
{
    struct matrix p = {0}, q = {0}, dq, dp, dout = matrix_columns(dy, d->first, d->out);
    if (d->trains)
        TRY(between(d, backend, arena, true, x, &p, &q, error));
    TRY(take_rows(&dq, arena, dy.rows, d->rows, error));
    TRY(backend->ops->gemm(
        backend,
        &(struct gemm){
            .a = dout, .b = matrix_rows(d->b, d->rows, d->out), .transpose_b = true, .scale = d->scale, .out = dq},
        error));
    TRY(add_gradient(d, backend, q, dout, d->scale, d->db, error));
    dp = dq;
    if (d->gate != NULL) {
        TRY(take_rows(&dp, arena, dy.rows, d->rows, error));
        TRY(d->gate->backward(d, backend, arena, p, dq, dp, error));
    }
    *term = (struct gemm_term){.a = dp, .b = matrix_rows(d->a, d->rows, in), .scale = 1};
    return add_gradient(d, backend, dp, x, 1, d->da, error);
}

status linear_forward(struct backend *backend, const struct linear *linear, const struct linear_forward *o,
                      struct error *error)
{
    struct gemm_term terms[LINEAR_DELTAS];
    size_t count = 0;
    if (linear->tap != NULL)
        TRY(linear->tap->see(linear->tap, backend, o->x, error));
    for (size_t i = 0; i < linear->delta_count; i++)
        if (linear->deltas[i].rows > 0)
            TRY(delta_forward(&linear->deltas[i], backend, o->arena, o->training, o->x, &terms[count++], error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = o->x,
                                             .b = matrix_rows(linear->weight.value, linear->out, linear->in),
                                             .transpose_b = true,
                                             .bias = linear->bias.value,
                                             .addend = o->addend,
                                             .activation = o->activation,
                                             .before = o->before,
                                             .exact = linear->exact,
                                             .frozen_b = linear->weight.frozen,
                                             .frozen_bias = linear->bias.frozen,
                                             .out = o->y,
                                             .terms = terms,
                                             .terms_count = count},
                              error);
}

status linear_backward(struct backend *backend, const struct linear *linear, const struct linear_backward *o,
                       struct error *error)
{
    struct gemm_term terms[LINEAR_DELTAS];
    size_t count = 0;
    for (size_t i = 0; i < linear->delta_count; i++)
        if (linear->deltas[i].rows > 0)
            TRY(delta_backward(&linear->deltas[i], backend, o->arena, o->x, o->dy, linear->in, &terms[count++], error));
    if (o->dx.data == NULL)
        return OK;
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = o->dy,
                                             .b = matrix_rows(linear->weight.value, linear->out, linear->in),
                                             .activation = o->activation,
                                             .before = o->before,
                                             .backward = o->before.data != NULL,
                                             .exact = linear->exact,
                                             .frozen_b = linear->weight.frozen,
                                             .out = o->dx,
                                             .terms = terms,
                                             .terms_count = count},
                              error);
}

/* Whether a gradient is wanted that needs its input. */
static bool reads_input(const struct linear *linear)
{
    bool reads = linear->weight.gradient != NULL;
    for (size_t i = 0; i < linear->delta_count; i++)
        reads = reads || (linear->deltas[i].rows > 0 && linear->deltas[i].trains);
    return reads;
}

status linear_backward_weights(struct backend *backend, const struct linear *linear, struct matrix x, struct matrix dy,
                               struct error *error)
{
    if (linear->weight.gradient != NULL)
        TRY(backend->ops->gemm(backend,
                               &(struct gemm){.a = dy,
                                              .transpose_a = true,
                                              .b = x,
                                              .out = matrix_rows(linear->weight.gradient, linear->out, linear->in),
                                              .exact = linear->exact,
                                              .accumulate = true},
                               error));
    if (linear->bias.gradient != NULL)
        TRY(backend->ops->column_sum(backend, &(struct column_sum){.x = dy, .out = linear->bias.gradient}, error));
    return OK;
}

status layer_norm_forward(struct backend *backend, const struct layer_norm_weights *ln, struct matrix x,
                          float *statistics, struct matrix y, struct error *error)
{
    return backend->ops->layer_norm(backend,
                                    &(struct layer_norm){.x = x,
                                                         .y = y,
                                                         .gain = ln->gain.value,
                                                         .bias = ln->bias.value,
                                                         .statistics = statistics,
                                                         .epsilon = ln->epsilon},
                                    error);
}

status layer_norm_backward(struct backend *backend, const struct layer_norm_weights *ln,
                           struct layer_norm_backward operands, struct error *error)
{
    operands.gain = ln->gain.value;
    operands.dgain = ln->gain.gradient;
    operands.dbias = ln->bias.gradient;
    return backend->ops->layer_norm_backward(backend, &operands, error);
}

/* ---- the block ---- */

bool block_is_trained(const struct block *block)
{
    return reads_input(&block->in_proj) || reads_input(&block->out_proj) || reads_input(&block->c_fc) ||
           reads_input(&block->c_proj);
}

static status take(struct tensor *tensor, const struct block_context *context, const struct tensor *x, size_t positions,
                   size_t width, const char *name, struct error *error)
{
    return tensor_take(tensor, context->arena, TENSOR_F32, name, 3, (size_t[]){x->shape[0], positions, width}, error);
}

/* Takes a tensor that only products, and the operations between two of them, read. */
static status take_operand(struct tensor *tensor, const struct block_context *context, const struct tensor *x,
                           size_t positions, size_t width, const char *name, struct error *error)
{
    return tensor_take(tensor, context->arena, backend_operand_type(context->backend), name, 3,
                       (size_t[]){x->shape[0], positions, width}, error);
}

static status take_operand_like(struct tensor *tensor, const struct block_context *context, const struct tensor *x,
                                size_t width, const char *name, struct error *error)
{
    return take_operand(tensor, context, x, x->shape[1], width, name, error);
}

static status take_like(struct tensor *tensor, const struct block_context *context, const struct tensor *x,
                        size_t width, const char *name, struct error *error)
{
    return take(tensor, context, x, x->shape[1], width, name, error);
}

static status take_statistics(float **statistics, const struct block_context *context, const struct tensor *x,
                              size_t positions, struct error *error)
{
    struct tensor tensor;
    TRY(take(&tensor, context, x, positions, 2, "layer norm statistics", error));
    *statistics = tensor.data;
    return OK;
}

static bool drops(const struct block_context *context)
{
    return context->training && context->dropout > 0;
}

status block_drop(const struct block_context *context, enum dropout_place place, const struct tensor *x,
                  const struct tensor *addend, const struct tensor *out, struct error *error)
{
    enum { PLACES = 4, NUMBERS = 40 }; /* bits of a place's numbers */
    uint64_t number = ((uint64_t)context->tower << 16 | context->block) * PLACES + place;
    if (!drops(context))
        return OK;
    return context->backend->ops->dropout(
        context->backend,
        &(struct dropout){.x = matrix_of(x),
                          .addend = addend != NULL ? matrix_of(addend) : (struct matrix){0},
                          .out = matrix_of(out),
                          .probability = context->dropout,
                          .base = (number << NUMBERS) + context->first * (tensor_elements(x) / x->shape[0]),
                          .state = context->state},
        error);
}

/* The gradient of what dropout got: dy itself where there is none. */
static status drop_backward(const struct block_context *context, enum dropout_place place, const struct tensor *dy,
                            struct tensor *dx, struct error *error)
{
    *dx = *dy;
    if (drops(context))
        TRY(take_like(dx, context, dy, dy->shape[2], "gradient before dropout", error));
    return block_drop(context, place, dy, NULL, dx, error);
}

static status take_saved(const struct block_context *context, const struct block *block, bool mlp,
                         const struct tensor *x, struct block_saved *saved, struct error *error)
{
    size_t d = block->width, positions = context->rows != NULL ? context->rows_per_sample : x->shape[1];
    saved->x = *x;
    TRY(take(&saved->x_mid, context, x, positions, d, "residual stream", error));
    TRY(take_operand(&saved->attended, context, x, positions, d, "attention", error));
    if (mlp)
        TRY(take_operand(&saved->hidden, context, x, positions, block->hidden, "hidden units", error));
    TRY(take_operand_like(&saved->qkv, context, x, 3 * d, "query, key and value", error));
    TRY(take_statistics(&saved->ln_1, context, x, x->shape[1], error));
    TRY(take_statistics(&saved->ln_2, context, x, positions, error));
    struct tensor lse;
    TRY(take(&lse, context, x, positions, block->heads, "sums of the softmax", error));
    saved->lse = lse.data;
    return OK;
}

static status gather(const struct block_context *context, const struct tensor *from, const struct tensor *to,
                     struct error *error)
{
    return context->backend->ops->gather_rows(
        context->backend, &(struct gather_rows){.x = matrix_of(from), .out = matrix_of(to), .rows = context->rows},
        error);
}

static status scatter(const struct block_context *context, const struct tensor *from, const struct tensor *to,
                      struct error *error)
{
    TRY(context->backend->ops->zero(context->backend, to->data, tensor_bytes(to), error));
    return context->backend->ops->scatter_rows(
        context->backend, &(struct scatter_rows){.x = matrix_of(from), .out = matrix_of(to), .rows = context->rows},
        error);
}

/* What the output's projection reads: saved->attended, or a copy to which the block's attention hook has added. The backward
 * pass of the attention needs its own output alone. */
static status whole_attention(const struct block_context *context, const struct block *block,
                              const struct block_saved *saved, const struct tensor *normal, struct tensor *whole,
                              struct error *error)
{
    const struct attention_hook *hook = context->attention;
    *whole = saved->attended;
    if (hook == NULL)
        return OK;
    TRY(take_operand_like(whole, context, &saved->attended, block->width, "attention with prefixes", error));
    TRY(context->backend->ops->copy(context->backend, whole->data, saved->attended.data, tensor_bytes(whole), error));
    return hook->forward(hook->state, context, block, &(struct attention_values){*normal, saved->qkv, *whole}, error);
}

static struct attention_operands attention_of(const struct block_context *context, const struct block *block,
                                              const struct tensor *x, const struct tensor *qkv)
{
    return (struct attention_operands){.batch = x->shape[0],
                                       .positions = x->shape[1],
                                       .width = block->width,
                                       .heads = block->heads,
                                       .causal = block->causal,
                                       .type = qkv->type,
                                       .rows = context->rows,
                                       .rows_per_sample = context->rows_per_sample,
                                       .qkv = qkv->data};
}

/* x_mid = x + dropout(attention(ln_1(x)), at the rows that are wanted */
static status attention_half(const struct block_context *context, const struct block *block, const struct tensor *x,
                             struct block_saved *saved, struct error *error)
{
    struct backend *backend = context->backend;
    struct arena_mark mark = arena_mark(context->arena);
    struct tensor normal, whole, stream = *x;
    TRY(take_operand_like(&normal, context, x, block->width, "layer norm", error));
    TRY(layer_norm_forward(backend, &block->ln_1, matrix_of(x), saved->ln_1, matrix_of(&normal), error));
    TRY(linear_forward(backend, &block->in_proj,
                       &(struct linear_forward){.x = matrix_of(&normal),
                                                .y = matrix_of(&saved->qkv),
                                                .arena = context->arena,
                                                .training = context->training},
                       error));
    TRY(backend->ops->attention(backend,
                                &(struct attention){.operands = attention_of(context, block, x, &saved->qkv),
                                                    .out = saved->attended.data,
                                                    .lse = context->training ? saved->lse : NULL},
                                error));
    if (context->rows != NULL) {
        TRY(take_like(&stream, context, &saved->x_mid, block->width, "residual stream", error));
        TRY(gather(context, x, &stream, error));
    }
    TRY(whole_attention(context, block, saved, &normal, &whole, error));
    TRY(linear_forward(backend, &block->out_proj,
                       &(struct linear_forward){.x = matrix_of(&whole),
                                                .y = matrix_of(&saved->x_mid),
                                                .addend = drops(context) ? (struct matrix){0} : matrix_of(&stream),
                                                .arena = context->arena,
                                                .training = context->training},
                       error));
    TRY(block_drop(context, DROPOUT_ATTENTION, &saved->x_mid, &stream, &saved->x_mid, error));
    arena_release(context->arena, mark);
    return OK;
}

status block_mlp(const struct block_context *context, const struct block *block, const struct tensor *normal,
                 struct matrix before, const struct tensor *addend, struct tensor *y, struct error *error)
{
    struct arena_mark mark = arena_mark(context->arena);
    struct tensor active;
    TRY(take_operand_like(&active, context, normal, block->hidden, "activation", error));
    TRY(linear_forward(context->backend, &block->c_fc,
                       &(struct linear_forward){.x = matrix_of(normal),
                                                .y = matrix_of(&active),
                                                .activation = block->activation,
                                                .before = before,
                                                .arena = context->arena,
                                                .training = context->training},
                       error));
    TRY(block_drop(context, DROPOUT_HIDDEN, &active, NULL, &active, error));
    TRY(linear_forward(context->backend, &block->c_proj,
                       &(struct linear_forward){.x = matrix_of(&active),
                                                .y = matrix_of(y),
                                                .addend = addend != NULL ? matrix_of(addend) : (struct matrix){0},
                                                .arena = context->arena,
                                                .training = context->training},
                       error));
    arena_release(context->arena, mark);
    return OK;
}

status block_forward(const struct block_context *context, const struct block *block, const struct block_hook *hook,
                     const struct tensor *x, struct tensor *y, struct block_saved *saved, struct error *error)
{
    struct block_saved unused;
    struct arena_mark mark = arena_mark(context->arena);
    bool beside = hook == NULL || hook->place == BESIDE_MLP;
    if (saved == NULL)
        saved = &unused;
    TRY(take_saved(context, block, beside, x, saved, error));
    struct arena_mark kept = arena_mark(context->arena);
    struct tensor normal;
    TRY(attention_half(context, block, x, saved, error));
    TRY(take_operand_like(&normal, context, &saved->x_mid, block->width, "layer norm", error));
    TRY(layer_norm_forward(context->backend, &block->ln_2, matrix_of(&saved->x_mid), saved->ln_2, matrix_of(&normal),
                           error));
    if (beside)
        TRY(block_mlp(context, block, &normal, context->training ? matrix_of(&saved->hidden) : (struct matrix){0},
                      drops(context) ? NULL : &saved->x_mid, y, error));
    else if (drops(context))
        TRY(context->backend->ops->zero(context->backend, y->data, tensor_bytes(y), error));
    else
        TRY(context->backend->ops->copy(context->backend, y->data, saved->x_mid.data, tensor_bytes(y), error));
    if (hook != NULL)
        TRY(hook->forward(hook->state, context, &saved->x_mid, &normal, y, error));
    TRY(block_drop(context, DROPOUT_MLP, y, &saved->x_mid, y, error));
    if (!context->training)
        arena_release(context->arena, mark);
    else if (hook == NULL)
        arena_release(context->arena, kept);
    return OK;
}

/* Back through c_proj, the activation and c_fc: dln2 = the gradient of ln_2's output. */
static status mlp_backward(const struct block_context *context, const struct block *block,
                           const struct block_saved *saved, struct matrix dy, struct matrix dln2, struct error *error)
{
    struct backend *backend = context->backend;
    struct tensor dhidden, other;
    TRY(take_operand_like(&dhidden, context, &saved->x_mid, block->hidden, "gradient of the hidden units", error));
    struct matrix hidden = matrix_of(&saved->hidden), dh = matrix_of(&dhidden), x = {0};
    if (reads_input(&block->c_proj)) {
        TRY(take_operand_like(&other, context, &saved->x_mid, block->hidden, "hidden units again", error));
        x = matrix_of(&other);
        TRY(backend->ops->activate(backend, &(struct activate){.activation = block->activation, .x = hidden, .out = x},
                                   error));
        TRY(block_drop(context, DROPOUT_HIDDEN, &other, NULL, &other, error));
        TRY(linear_backward_weights(backend, &block->c_proj, x, dy, error));
    }
    TRY(linear_backward(
        backend, &block->c_proj,
        &(struct linear_backward){
            .x = x, .dy = dy, .dx = dh, .before = hidden, .activation = block->activation, .arena = context->arena},
        error));
    TRY(block_drop(context, DROPOUT_HIDDEN, &dhidden, NULL, &dhidden, error));
    if (reads_input(&block->c_fc)) {
        TRY(take_operand_like(&other, context, &saved->x_mid, block->width, "layer norm again", error));
        x = matrix_of(&other);
        TRY(layer_norm_forward(backend, &block->ln_2, matrix_of(&saved->x_mid), NULL, x, error));
        TRY(linear_backward_weights(backend, &block->c_fc, x, dh, error));
    }
    return linear_backward(backend, &block->c_fc,
                           &(struct linear_backward){.x = x, .dy = dh, .dx = dln2, .arena = context->arena}, error);
}

/* dmid, the gradient between the halves, as an operand of products: itself in f32. */
static status take_operand_of(struct tensor *operand, const struct block_context *context, const struct tensor *dmid,
                              struct error *error)
{
    *operand = *dmid;
    if (backend_operand_type(context->backend) == TENSOR_F32 || drops(context))
        return OK;
    return take_operand_like(operand, context, dmid, dmid->shape[2], "gradient between the halves", error);
}

/* dx = the attention's gradient through ln_1 + dmid, from dmid at the rows that were wanted; see below in block_backward */
static status attention_half_backward(const struct block_context *context, const struct block *block,
                                      const struct block_saved *saved, const struct tensor *dmid,
                                      const struct tensor *operand, struct tensor *dx, bool below, struct error *error)
{
    struct backend *backend = context->backend;
    const struct attention_hook *hook = context->attention;
    struct tensor dattended, dqkv, dnormal, normal = {0}, dout, whole = saved->attended;
    bool reads = hook != NULL && hook->reads_normal, wanted = below || block->ln_1.gain.gradient != NULL;
    TRY(take_operand_like(&dattended, context, &saved->x_mid, block->width, "gradient of the attention", error));
    TRY(take_operand_like(&dqkv, context, &saved->x, 3 * block->width, "gradient of query, key and value", error));
    TRY(drop_backward(context, DROPOUT_ATTENTION, dmid, &dout, error));
    if (reads || reads_input(&block->in_proj)) {
        TRY(take_operand_like(&normal, context, &saved->x, block->width, "layer norm again", error));
        TRY(layer_norm_forward(backend, &block->ln_1, matrix_of(&saved->x), NULL, matrix_of(&normal), error));
    }
    if (reads_input(&block->out_proj))
        TRY(whole_attention(context, block, saved, &normal, &whole, error));
    TRY(linear_backward_weights(backend, &block->out_proj, matrix_of(&whole), matrix_of(&dout), error));
    TRY(linear_backward(backend, &block->out_proj,
                        &(struct linear_backward){.x = matrix_of(&whole),
                                                  .dy = matrix_of(drops(context) ? &dout : operand),
                                                  .dx = matrix_of(&dattended),
                                                  .arena = context->arena},
                        error));
    dnormal = dattended;
    if (reads || context->rows != NULL)
        TRY(take_operand_like(&dnormal, context, &saved->x, block->width, "gradient of ln_1", error));
    if (context->rows != NULL)
        TRY(scatter(context, dmid, dx, error));
    TRY(backend->ops->attention_backward(
        backend,
        &(struct attention_backward){.operands = attention_of(context, block, &saved->x, &saved->qkv),
                                     .out = saved->attended.data,
                                     .dout = dattended.data,
                                     .lse = saved->lse,
                                     .dqkv = dqkv.data},
        error));
    const struct attention_values values = {normal, saved->qkv, saved->attended},
                                  gradients = {wanted ? dnormal : (struct tensor){0}, dqkv, dattended};
    if (hook != NULL && !reads)
        TRY(hook->backward(hook->state, context, block, &values, &gradients, error));
    struct matrix x = normal.data != NULL ? matrix_of(&normal) : (struct matrix){0};
    if (reads_input(&block->in_proj))
        TRY(linear_backward_weights(backend, &block->in_proj, x, matrix_of(&dqkv), error));
    TRY(linear_backward(backend, &block->in_proj,
                        &(struct linear_backward){.x = x,
                                                  .dy = matrix_of(&dqkv),
                                                  .dx = wanted ? matrix_of(&dnormal) : (struct matrix){0},
                                                  .arena = context->arena},
                        error));
    if (hook != NULL && reads) /* after dnormal was set */
        TRY(hook->backward(hook->state, context, block, &values, &gradients, error));
    if (!wanted)
        return OK;
    return layer_norm_backward(backend, &block->ln_1,
                               (struct layer_norm_backward){.x = matrix_of(&saved->x),
                                                            .dy = matrix_of(&dnormal),
                                                            .dx = matrix_of(dx),
                                                            .addend = matrix_of(context->rows != NULL ? dx : dmid),
                                                            .statistics = saved->ln_1},
                               error);
}

/* The hook's share: adds to dmid, and to dln2 where it reads the norm. Without data neither is wanted. */
static status hook_backward(const struct block_context *context, const struct block *block,
                            const struct block_hook *hook, const struct block_saved *saved, const struct tensor *dout,
                            struct tensor *dmid, struct tensor *dln2, struct error *error)
{
    struct tensor normal = {0}, none = {0};
    if (!hook->stream_alone) {
        TRY(take_operand_like(&normal, context, dout, block->width, "layer norm again", error));
        TRY(layer_norm_forward(context->backend, &block->ln_2, matrix_of(&saved->x_mid), NULL, matrix_of(&normal),
                               error));
    }
    return hook->backward(hook->state, context, &saved->x_mid, &normal, dout, dmid, hook->stream_alone ? &none : dln2,
                          error);
}

status block_backward(const struct block_context *context, const struct block *block, const struct block_hook *hook,
                      const struct block_saved *saved, struct tensor *dy, struct tensor *dx, bool below,
                      struct error *error)
{
    struct backend *backend = context->backend;
    struct arena_mark mark = arena_mark(context->arena);
    struct tensor dln2 = {0}, none = {0}, operand, dout, *dmid = dy; /* in the same memory */
    bool attention = below || block_is_trained(block) || (context->attention != NULL && context->attention->trained),
         hooked = hook != NULL && hook->backward != NULL;
    TRY(drop_backward(context, DROPOUT_MLP, dy, &dout, error));
    if (attention) {
        TRY((hooked && !hook->stream_alone ? take_like : take_operand_like)(&dln2, context, dy, block->width,
                                                                            "gradient of ln_2", error));
        if (hook == NULL || hook->place == BESIDE_MLP)
            TRY(mlp_backward(context, block, saved, matrix_of(&dout), matrix_of(&dln2), error));
        else
            TRY(backend->ops->zero(backend, dln2.data, tensor_bytes(&dln2), error));
    }
    if (hooked)
        TRY(hook_backward(context, block, hook, saved, &dout, attention ? dmid : &none, &dln2, error));
    if (attention) {
        TRY(take_operand_of(&operand, context, dmid, error));
        TRY(layer_norm_backward(backend, &block->ln_2,
                                (struct layer_norm_backward){.x = matrix_of(&saved->x_mid),
                                                             .dy = matrix_of(&dln2),
                                                             .dx = matrix_of(dmid),
                                                             .addend = matrix_of(dmid),
                                                             .rounded = operand.data != dmid->data ? matrix_of(&operand)
                                                                                                   : (struct matrix){0},
                                                             .statistics = saved->ln_2},
                                error));
        TRY(attention_half_backward(context, block, saved, dmid, &operand, dx, below, error));
    }
    arena_release(context->arena, mark);
    return OK;
}
