#include "models/clip/attention_pool.h"

struct pooling {
    struct clip *clip;
    const struct encoding *encoding;
    const struct tower_pass *pass;
    size_t batch, positions, width;
    struct error *error;
};

static struct pooling pooling_of(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                                 struct error *error)
{
    return (struct pooling){clip, encoding, pass, pass->batch, pass->positions, clip->towers[TOWER_IMAGE].width, error};
}

static status take(const struct pooling *p, struct tensor *tensor, enum tensor_type type, const char *name,
                   size_t positions, size_t columns)
{
    return tensor_take(tensor, p->encoding->arena, type, name, 3, (size_t[]){p->batch, positions, columns}, p->error);
}

static struct block_context context_of(const struct pooling *p)
{
    return (struct block_context){.backend = p->clip->backend,
                                  .arena = p->encoding->arena,
                                  .tower = TOWER_IMAGE,
                                  .block = p->clip->towers[TOWER_IMAGE].count,
                                  .training = p->encoding->training,
                                  .positions = 1};
}

/* The query's or the keys' and values' share of the stacked projection. */
static struct linear part_of(const struct pooling *p, size_t first, size_t count)
{
    const struct linear *whole = &p->clip->attention_pool.in_proj;
    struct linear part = {.out = count * p->width, .in = p->width};
    size_t offset = first * p->width;
    part.weight.value = whole->weight.value + offset * p->width;
    part.bias.value = whole->bias.value + offset;
    if (whole->weight.gradient != NULL) {
        part.weight.gradient = whole->weight.gradient + offset * p->width;
        part.bias.gradient = whole->bias.gradient + offset;
    }
    return part;
}

/* The queries [B, d] within qkv or its gradient; keys and values [B · L, 2d]. */
static struct matrix queries_of(const struct pooling *p, const struct tensor *qkv)
{
    return (struct matrix){qkv->data, qkv->type, p->batch, p->width, p->positions * 3 * p->width};
}

static struct matrix rest_of(const struct pooling *p, const struct tensor *qkv)
{
    return matrix_columns(matrix_of(qkv), p->width, 2 * p->width);
}

static status numbers(const struct pooling *p, size_t step, const int32_t **rows)
{
    struct tensor tensor;
    TRY(tensor_take(&tensor, p->encoding->arena, TENSOR_I32, "rows", 1, &p->batch, p->error));
    *rows = tensor.data;
    return p->clip->backend->ops->arange(
        p->clip->backend, &(struct arange){.count = p->batch, .step = (int32_t)step, .out = tensor.data}, p->error);
}

static status project(const struct pooling *p, struct pool_saved *s)
{
    struct backend *backend = p->clip->backend;
    struct linear query = part_of(p, 0, 1), rest = part_of(p, 1, 2);
    const int32_t *zeros;
    TRY(numbers(p, 0, &zeros));
    TRY(backend->ops->gather_rows(backend,
                                  &(struct gather_rows){.x = matrix_rows(p->clip->probe.value, 1, p->width),
                                                        .out = matrix_of(&s->probes),
                                                        .rows = zeros},
                                  p->error));
    /* queries of other rows are never asked for, but must be numbers */
    TRY(backend->ops->zero(backend, s->qkv.data, tensor_bytes(&s->qkv), p->error));
    TRY(linear_forward(backend, &rest, &(struct linear_forward){.x = matrix_of(&s->normal), .y = rest_of(p, &s->qkv)},
                       p->error));
    return linear_forward(backend, &query,
                          &(struct linear_forward){.x = matrix_of(&s->probes), .y = queries_of(p, &s->qkv)}, p->error);
}

static status take_saved(const struct pooling *p, struct pool_saved *s)
{
    const struct block *block = &p->clip->attention_pool;
    enum tensor_type operand = backend_operand_type(p->clip->backend);
    struct tensor lse;
    TRY(take(p, &s->normal, operand, "patches after the final norm", p->positions, p->width));
    TRY(take(p, &s->qkv, operand, "query, key and value", p->positions, 3 * p->width));
    TRY(take(p, &s->probes, TENSOR_F32, "queries", 1, p->width));
    TRY(take(p, &s->attended, operand, "attention", 1, p->width));
    TRY(take(p, &s->a, TENSOR_F32, "pooled", 1, p->width));
    TRY(take(p, &s->hidden, operand, "hidden units", 1, block->hidden));
    TRY(take(p, &s->a_normal, operand, "pooled after the norm", 1, p->width));
    TRY(take(p, &s->a_statistics, TENSOR_F32, "layer norm statistics", 1, 2));
    TRY(take(p, &lse, TENSOR_F32, "sums of the softmax", 1, block->heads));
    s->lse = lse.data;
    return numbers(p, p->positions, &s->rows);
}

static status norm(const struct pooling *p, const struct layer_norm_weights *ln, const struct tensor *x,
                   const struct tensor *y, void *statistics)
{
    return p->clip->backend->ops->layer_norm(p->clip->backend,
                                             &(struct layer_norm){.x = matrix_of(x),
                                                                  .y = matrix_of(y),
                                                                  .gain = ln->gain.value,
                                                                  .bias = ln->bias.value,
                                                                  .statistics = statistics,
                                                                  .epsilon = ln->epsilon},
                                             p->error);
}

static status attend(const struct pooling *p, struct pool_saved *s)
{
    return p->clip->backend->ops->attention(p->clip->backend,
                                            &(struct attention){.batch = p->batch,
                                                                .positions = p->positions,
                                                                .width = p->width,
                                                                .heads = p->clip->attention_pool.heads,
                                                                .type = s->qkv.type,
                                                                .rows = s->rows,
                                                                .rows_per_sample = 1,
                                                                .qkv = s->qkv.data,
                                                                .out = s->attended.data,
                                                                .lse = p->encoding->training ? s->lse : NULL},
                                            p->error);
}

status attention_pool_forward(struct clip *clip, const struct encoding *encoding, struct tower_pass *pass,
                              struct tensor *features, struct error *error)
{
    struct pooling p = pooling_of(clip, encoding, pass, error);
    const struct block *block = &clip->attention_pool;
    struct block_context context = context_of(&p);
    struct pool_saved *s = &pass->attention;
    struct tensor y;
    TRY(tensor_take(features, encoding->arena, TENSOR_F32, "features", 2, (size_t[]){p.batch, p.width}, error));
    struct arena_mark mark = arena_mark(encoding->arena);
    TRY(take_saved(&p, s));
    TRY(norm(&p, &clip->towers[TOWER_IMAGE].ln_final, &pass->last, &s->normal, pass->final_statistics));
    TRY(project(&p, s));
    TRY(attend(&p, s));
    TRY(linear_forward(clip->backend, &block->out_proj,
                       &(struct linear_forward){.x = matrix_of(&s->attended), .y = matrix_of(&s->a)}, error));
    TRY(norm(&p, &block->ln_2, &s->a, &s->a_normal, s->a_statistics.data));
    y = *features;
    y.rank = 3;
    y.shape[1] = 1;
    y.shape[2] = p.width;
    TRY(block_mlp(&context, block, &s->a_normal, matrix_of(&s->hidden), &s->a, &y, error));
    if (!encoding->training)
        arena_release(encoding->arena, mark);
    return OK;
}

/* ---- backward ---- */

static status norm_backward(const struct pooling *p, const struct layer_norm_weights *ln,
                            struct layer_norm_backward operands)
{
    operands.gain = ln->gain.value;
    operands.dgain = ln->gain.gradient;
    operands.dbias = ln->bias.gradient;
    return p->clip->backend->ops->layer_norm_backward(p->clip->backend, &operands, p->error);
}

/* da = dy + the gradient through ln_2 and the MLP */
static status mlp_backward(const struct pooling *p, const struct pool_saved *s, struct matrix dy,
                           const struct tensor *da)
{
    const struct block *block = &p->clip->attention_pool;
    struct backend *backend = p->clip->backend;
    struct tensor dhidden, active, dnormal;
    TRY(take(p, &dhidden, s->hidden.type, "gradient of the hidden units", 1, block->hidden));
    TRY(take(p, &active, s->hidden.type, "hidden units again", 1, block->hidden));
    TRY(take(p, &dnormal, TENSOR_F32, "gradient of the norm", 1, p->width));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = dy,
                                          .b = matrix_rows(block->c_proj.weight.value, p->width, block->hidden),
                                          .out = matrix_of(&dhidden),
                                          .activation = block->activation,
                                          .before = matrix_of(&s->hidden),
                                          .frozen_b = block->c_proj.weight.frozen,
                                          .backward = true},
                           p->error));
    TRY(backend->ops->activate(
        backend,
        &(struct activate){.activation = block->activation, .x = matrix_of(&s->hidden), .out = matrix_of(&active)},
        p->error));
    TRY(linear_backward_weights(backend, &block->c_proj, matrix_of(&active), dy, p->error));
    TRY(linear_backward_weights(backend, &block->c_fc, matrix_of(&s->a_normal), matrix_of(&dhidden), p->error));
    TRY(linear_backward(backend, &block->c_fc,
                        &(struct linear_backward){.dy = matrix_of(&dhidden), .dx = matrix_of(&dnormal)}, p->error));
    return norm_backward(p, &block->ln_2,
                         (struct layer_norm_backward){.x = matrix_of(&s->a),
                                                      .dy = matrix_of(&dnormal),
                                                      .dx = matrix_of(da),
                                                      .addend = dy,
                                                      .statistics = s->a_statistics.data});
}

/* dqkv from the gradient of out_proj's output. */
static status attend_backward(const struct pooling *p, const struct pool_saved *s, const struct tensor *da,
                              const struct tensor *dqkv)
{
    const struct block *block = &p->clip->attention_pool;
    struct backend *backend = p->clip->backend;
    struct tensor dattended;
    TRY(take(p, &dattended, s->attended.type, "gradient of the attention", 1, p->width));
    TRY(linear_backward_weights(backend, &block->out_proj, matrix_of(&s->attended), matrix_of(da), p->error));
    TRY(linear_backward(backend, &block->out_proj,
                        &(struct linear_backward){.dy = matrix_of(da), .dx = matrix_of(&dattended)}, p->error));
    return backend->ops->attention_backward(backend,
                                            &(struct attention_backward){.batch = p->batch,
                                                                         .positions = p->positions,
                                                                         .width = p->width,
                                                                         .heads = block->heads,
                                                                         .type = s->qkv.type,
                                                                         .rows = s->rows,
                                                                         .rows_per_sample = 1,
                                                                         .qkv = s->qkv.data,
                                                                         .out = s->attended.data,
                                                                         .dout = dattended.data,
                                                                         .lse = s->lse,
                                                                         .dqkv = dqkv->data},
                                            p->error);
}

/* The gradients of the projections and the query; dnormal [B, L, d] through keys and values. */
static status project_backward(const struct pooling *p, const struct pool_saved *s, const struct tensor *dqkv,
                               const struct tensor *dnormal)
{
    struct backend *backend = p->clip->backend;
    struct linear query = part_of(p, 0, 1), rest = part_of(p, 1, 2);
    struct tensor dprobes;
    TRY(linear_backward_weights(backend, &query, matrix_of(&s->probes), queries_of(p, dqkv), p->error));
    TRY(linear_backward_weights(backend, &rest, matrix_of(&s->normal), rest_of(p, dqkv), p->error));
    if (p->clip->probe.gradient != NULL) {
        TRY(take(p, &dprobes, TENSOR_F32, "gradient of the queries", 1, p->width));
        TRY(linear_backward(backend, &query,
                            &(struct linear_backward){.dy = queries_of(p, dqkv), .dx = matrix_of(&dprobes)}, p->error));
        TRY(backend->ops->column_sum(
            backend, &(struct column_sum){.x = matrix_of(&dprobes), .out = p->clip->probe.gradient}, p->error));
    }
    return linear_backward(backend, &rest, &(struct linear_backward){.dy = rest_of(p, dqkv), .dx = matrix_of(dnormal)},
                           p->error);
}

status attention_pool_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                               const struct tensor *dfeatures, struct tensor *dx, struct error *error)
{
    struct pooling p = pooling_of(clip, encoding, pass, error);
    const struct pool_saved *s = &pass->attention;
    struct tensor da, dqkv, dnormal;
    TRY(take(&p, &da, TENSOR_F32, "gradient before the MLP", 1, p.width));
    TRY(take(&p, &dqkv, s->qkv.type, "gradient of query, key and value", p.positions, 3 * p.width));
    TRY(take(&p, &dnormal, TENSOR_F32, "gradient of the patches after the norm", p.positions, p.width));
    TRY(mlp_backward(&p, s, matrix_of(dfeatures), &da));
    TRY(attend_backward(&p, s, &da, &dqkv));
    TRY(project_backward(&p, s, &dqkv, &dnormal));
    return norm_backward(&p, &clip->towers[TOWER_IMAGE].ln_final,
                         (struct layer_norm_backward){.x = matrix_of(&pass->last),
                                                      .dy = matrix_of(&dnormal),
                                                      .dx = matrix_of(dx),
                                                      .statistics = pass->final_statistics});
}
