#include "models/clip/pool.h"

static status take(struct tensor *tensor, const struct encoding *encoding, const char *name, size_t rows,
                   size_t columns, struct error *error)
{
    return tensor_take(tensor, encoding->arena, TENSOR_F32, name, 2, (size_t[]){rows, columns}, error);
}

status pool_rows(struct backend *backend, struct arena *arena, size_t count, size_t step, const int32_t **rows,
                 struct error *error)
{
    struct tensor numbers;
    TRY(tensor_take(&numbers, arena, TENSOR_I32, "rows", 1, &count, error));
    *rows = numbers.data;
    return backend->ops->arange(backend, &(struct arange){.count = count, .step = (int32_t)step, .out = numbers.data},
                                error);
}

/* Through the norm of all patches. */
static status final_norm_backward(struct clip *clip, const struct tower_pass *pass, const struct tensor *dnormal,
                                  struct tensor *dx, struct error *error)
{
    return layer_norm_backward(clip->backend, &clip->towers[TOWER_IMAGE].ln_final,
                               (struct layer_norm_backward){.x = matrix_of(&pass->last),
                                                            .dy = matrix_of(dnormal),
                                                            .dx = matrix_of(dx),
                                                            .statistics = pass->final_statistics},
                               error);
}

bool pool_is_whole(const struct clip *clip, enum tower tower)
{
    return tower == TOWER_IMAGE && clip->pool != POOL_CLASS_TOKEN;
}

/* ---- attention ----
 * SigLIP's (Zhai et al. 2023; the head of big_vision's ViT, after Lee et al., "Set Transformer", 2019): with x the patches after the
 * final norm and p a learned query,
 *
 *     a = out_proj(attention(p W_q, x W_k, x W_v));   features = a + mlp(ln_2(a))
 */

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

static status take_positions(const struct pooling *p, struct tensor *tensor, enum tensor_type type, const char *name,
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

static status project(const struct pooling *p, struct pool_saved *s)
{
    struct backend *backend = p->clip->backend;
    struct linear query = part_of(p, 0, 1), rest = part_of(p, 1, 2);
    const int32_t *zeros;
    TRY(pool_rows(backend, p->encoding->arena, p->batch, 0, &zeros, p->error));
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
    TRY(take_positions(p, &s->normal, operand, "patches after the final norm", p->positions, p->width));
    TRY(take_positions(p, &s->qkv, operand, "query, key and value", p->positions, 3 * p->width));
    TRY(take_positions(p, &s->probes, TENSOR_F32, "queries", 1, p->width));
    TRY(take_positions(p, &s->attended, operand, "attention", 1, p->width));
    TRY(take_positions(p, &s->a, TENSOR_F32, "pooled", 1, p->width));
    TRY(take_positions(p, &s->hidden, operand, "hidden units", 1, block->hidden));
    TRY(take_positions(p, &s->a_normal, operand, "pooled after the norm", 1, p->width));
    TRY(take_positions(p, &s->a_statistics, TENSOR_F32, "layer norm statistics", 1, 2));
    TRY(take_positions(p, &lse, TENSOR_F32, "sums of the softmax", 1, block->heads));
    s->lse = lse.data;
    return pool_rows(p->clip->backend, p->encoding->arena, p->batch, p->positions, &s->rows, p->error);
}

static struct attention_operands attention_of(const struct pooling *p, const struct pool_saved *s)
{
    return (struct attention_operands){.batch = p->batch,
                                       .positions = p->positions,
                                       .width = p->width,
                                       .heads = p->clip->attention_pool.heads,
                                       .type = s->qkv.type,
                                       .rows = s->rows,
                                       .rows_per_sample = 1,
                                       .qkv = s->qkv.data};
}

static status attend(const struct pooling *p, struct pool_saved *s)
{
    return p->clip->backend->ops->attention(p->clip->backend,
                                            &(struct attention){.operands = attention_of(p, s),
                                                                .out = s->attended.data,
                                                                .lse = p->encoding->training ? s->lse : NULL},
                                            p->error);
}

static status attend_to_patches(struct clip *clip, const struct encoding *encoding, struct tower_pass *pass,
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
    TRY(layer_norm_forward(clip->backend, &clip->towers[TOWER_IMAGE].ln_final, matrix_of(&pass->last),
                           pass->final_statistics, matrix_of(&s->normal), error));
    TRY(project(&p, s));
    TRY(attend(&p, s));
    TRY(linear_forward(clip->backend, &block->out_proj,
                       &(struct linear_forward){.x = matrix_of(&s->attended), .y = matrix_of(&s->a)}, error));
    TRY(layer_norm_forward(clip->backend, &block->ln_2, matrix_of(&s->a), s->a_statistics.data, matrix_of(&s->a_normal),
                           error));
    y = *features;
    y.rank = 3;
    y.shape[1] = 1;
    y.shape[2] = p.width;
    TRY(block_mlp(&context, block, &s->a_normal, matrix_of(&s->hidden), &s->a, &y, error));
    if (!encoding->training)
        arena_release(encoding->arena, mark);
    return OK;
}

/* da = dy + the gradient through ln_2 and the MLP */
static status mlp_backward(const struct pooling *p, const struct pool_saved *s, struct matrix dy,
                           const struct tensor *da)
{
    const struct block *block = &p->clip->attention_pool;
    struct backend *backend = p->clip->backend;
    struct tensor dhidden, active, dnormal;
    TRY(take_positions(p, &dhidden, s->hidden.type, "gradient of the hidden units", 1, block->hidden));
    TRY(take_positions(p, &active, s->hidden.type, "hidden units again", 1, block->hidden));
    TRY(take_positions(p, &dnormal, TENSOR_F32, "gradient of the norm", 1, p->width));
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
    return layer_norm_backward(backend, &block->ln_2,
                               (struct layer_norm_backward){.x = matrix_of(&s->a),
                                                            .dy = matrix_of(&dnormal),
                                                            .dx = matrix_of(da),
                                                            .addend = dy,
                                                            .statistics = s->a_statistics.data},
                               p->error);
}

/* dqkv from the gradient of out_proj's output. */
static status attend_backward(const struct pooling *p, const struct pool_saved *s, const struct tensor *da,
                              const struct tensor *dqkv)
{
    const struct block *block = &p->clip->attention_pool;
    struct backend *backend = p->clip->backend;
    struct tensor dattended;
    TRY(take_positions(p, &dattended, s->attended.type, "gradient of the attention", 1, p->width));
    TRY(linear_backward_weights(backend, &block->out_proj, matrix_of(&s->attended), matrix_of(da), p->error));
    TRY(linear_backward(backend, &block->out_proj,
                        &(struct linear_backward){.dy = matrix_of(da), .dx = matrix_of(&dattended)}, p->error));
    return backend->ops->attention_backward(backend,
                                            &(struct attention_backward){.operands = attention_of(p, s),
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
        TRY(take_positions(p, &dprobes, TENSOR_F32, "gradient of the queries", 1, p->width));
        TRY(linear_backward(backend, &query,
                            &(struct linear_backward){.dy = queries_of(p, dqkv), .dx = matrix_of(&dprobes)}, p->error));
        TRY(backend->ops->column_sum(
            backend, &(struct column_sum){.x = matrix_of(&dprobes), .out = p->clip->probe.gradient}, p->error));
    }
    return linear_backward(backend, &rest, &(struct linear_backward){.dy = rest_of(p, dqkv), .dx = matrix_of(dnormal)},
                           p->error);
}

static status attend_to_patches_backward(struct clip *clip, const struct encoding *encoding,
                                         const struct tower_pass *pass, const struct tensor *dfeatures,
                                         struct tensor *dx, struct error *error)
{
    struct pooling p = pooling_of(clip, encoding, pass, error);
    const struct pool_saved *s = &pass->attention;
    struct tensor da, dqkv, dnormal;
    TRY(take_positions(&p, &da, TENSOR_F32, "gradient before the MLP", 1, p.width));
    TRY(take_positions(&p, &dqkv, s->qkv.type, "gradient of query, key and value", p.positions, 3 * p.width));
    TRY(take_positions(&p, &dnormal, TENSOR_F32, "gradient of the patches after the norm", p.positions, p.width));
    TRY(mlp_backward(&p, s, matrix_of(dfeatures), &da));
    TRY(attend_backward(&p, s, &da, &dqkv));
    TRY(project_backward(&p, s, &dqkv, &dnormal));
    return final_norm_backward(clip, pass, &dnormal, dx, error);
}

/* ---- a row, or the mean of the patches; the projection ---- */

/* means [B, width] are taken from the arena; statistics [B · L, 2] of the norm, NULL: not wanted. */
static status mean_patches(struct clip *clip, struct arena *arena, const struct tower_pass *pass, float *statistics,
                           struct tensor *means, struct error *error)
{
    struct backend *backend = clip->backend;
    size_t width = clip->towers[TOWER_IMAGE].width;
    TRY(tensor_take(means, arena, TENSOR_F32, "mean of the patches", 2, (size_t[]){pass->batch, width}, error));
    struct arena_mark mark = arena_mark(arena);
    struct tensor normal;
    TRY(tensor_take(&normal, arena, TENSOR_F32, "patches after the final norm", 3, pass->last.shape, error));
    TRY(layer_norm_forward(backend, &clip->towers[TOWER_IMAGE].ln_final, matrix_of(&pass->last), statistics,
                           matrix_of(&normal), error));
    TRY(backend->ops->mean_positions(backend,
                                     &(struct mean_positions){.batch = pass->batch,
                                                              .positions = pass->positions,
                                                              .first = pass->positions - pass->patch_count,
                                                              .width = width,
                                                              .x = normal.data,
                                                              .out = means->data},
                                     error));
    arena_release(arena, mark);
    return OK;
}

status clip_mean_patches(struct clip *clip, struct arena *arena, const struct tower_pass *pass, struct tensor *means,
                         struct error *error)
{
    return mean_patches(clip, arena, pass, NULL, means, error);
}

static status one_row(struct clip *clip, const struct encoding *encoding, struct tower_pass *pass, struct error *error)
{
    struct backend *backend = clip->backend;
    size_t width = clip->towers[pass->tower].width;
    TRY(take(&pass->pooled, encoding, "pooled rows", pass->batch, width, error));
    TRY(take(&pass->normal, encoding, "pooled rows after the norm", pass->batch, width, error));
    TRY(backend->ops->gather_rows(
        backend,
        &(struct gather_rows){.x = matrix_of(&pass->last), .out = matrix_of(&pass->pooled), .rows = pass->pool_rows},
        error));
    return layer_norm_forward(backend, &clip->towers[pass->tower].ln_final, matrix_of(&pass->pooled),
                              pass->final_statistics, matrix_of(&pass->normal), error);
}

status pool_forward(struct clip *clip, const struct encoding *encoding, struct tower_pass *pass,
                    struct tensor *features, struct error *error)
{
    bool whole = pool_is_whole(clip, pass->tower);
    struct weight projection = clip->towers[pass->tower].projection;
    size_t width = clip->towers[pass->tower].width, embed = clip->dimensions.embed;
    struct tensor statistics;
    TRY(take(&statistics, encoding, "layer norm statistics", pass->batch * (whole ? pass->positions : 1), 2, error));
    pass->final_statistics = statistics.data;
    if (whole && clip->pool == POOL_ATTENTION)
        return attend_to_patches(clip, encoding, pass, features, error);
    if (whole)
        TRY(mean_patches(clip, encoding->arena, pass, pass->final_statistics, &pass->normal, error));
    else
        TRY(one_row(clip, encoding, pass, error));
    *features = pass->normal;
    if (projection.value == NULL)
        return OK;
    TRY(take(features, encoding, "features", pass->batch, embed, error));
    return clip->backend->ops->gemm(clip->backend,
                                    &(struct gemm){.a = matrix_of(&pass->normal),
                                                   .out = matrix_of(features),
                                                   .frozen_b = projection.frozen,
                                                   .bias = pass->tower == TOWER_TEXT ? clip->text_bias.value : NULL,
                                                   .frozen_bias = clip->text_bias.frozen,
                                                   .b = matrix_rows(projection.value, width, embed)},
                                    error);
}

/* The gradient dx of the last block's output, from the gradient of its pooled rows after the norm. */
static status one_row_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                               const struct tensor *dnormal, struct tensor *dx, struct error *error)
{
    struct backend *backend = clip->backend;
    struct tensor dpooled;
    TRY(take(&dpooled, encoding, "gradient of the pooled rows", pass->batch, clip->towers[pass->tower].width, error));
    TRY(layer_norm_backward(backend, &clip->towers[pass->tower].ln_final,
                            (struct layer_norm_backward){.x = matrix_of(&pass->pooled),
                                                         .dy = matrix_of(dnormal),
                                                         .dx = matrix_of(&dpooled),
                                                         .statistics = pass->final_statistics},
                            error));
    TRY(backend->ops->zero(backend, dx->data, tensor_bytes(dx), error));
    return backend->ops->scatter_rows(
        backend, &(struct scatter_rows){.x = matrix_of(&dpooled), .out = matrix_of(dx), .rows = pass->pool_rows},
        error);
}

/* The backward pass from the gradient of the patches' mean. */
static status mean_patches_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                                    const struct tensor *dmeans, struct tensor *dx, struct error *error)
{
    struct backend *backend = clip->backend;
    size_t width = clip->towers[TOWER_IMAGE].width;
    struct tensor dnormal;
    TRY(take(&dnormal, encoding, "gradient of the patches after the norm", pass->batch * pass->positions, width,
             error));
    TRY(backend->ops->zero(backend, dnormal.data, tensor_bytes(&dnormal), error));
    TRY(backend->ops->mean_positions_backward(
        backend,
        &(struct mean_positions_backward){.batch = pass->batch,
                                          .positions = pass->positions,
                                          .first = pass->positions - pass->patch_count,
                                          .width = width,
                                          .dout = dmeans->data,
                                          .dx = dnormal.data},
        error));
    return final_norm_backward(clip, pass, &dnormal, dx, error);
}

/* The gradient of the pooled rows after the norm, taken from the arena, from the gradient of the features. */
static status projection_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                                  const struct tensor *dfeatures, struct tensor *dnormal, struct error *error)
{
    struct backend *backend = clip->backend;
    size_t width = clip->towers[pass->tower].width, embed = clip->dimensions.embed;
    struct weight projection = clip->towers[pass->tower].projection;
    TRY(take(dnormal, encoding, "gradient of the pooled rows", pass->batch, width, error));
    if (projection.gradient != NULL)
        TRY(backend->ops->gemm(backend,
                               &(struct gemm){.a = matrix_of(&pass->normal),
                                              .transpose_a = true,
                                              .b = matrix_of(dfeatures),
                                              .out = matrix_rows(projection.gradient, width, embed),
                                              .accumulate = true},
                               error));
    if (pass->tower == TOWER_TEXT && clip->text_bias.gradient != NULL)
        TRY(backend->ops->column_sum(
            backend, &(struct column_sum){.x = matrix_of(dfeatures), .out = clip->text_bias.gradient}, error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_of(dfeatures),
                                             .b = matrix_rows(projection.value, width, embed),
                                             .frozen_b = projection.frozen,
                                             .transpose_b = true,
                                             .out = matrix_of(dnormal)},
                              error);
}

status pool_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                     const struct tensor *dfeatures, struct tensor *dx, struct error *error)
{
    struct tensor dnormal = *dfeatures;
    if (pass->tower == TOWER_IMAGE && clip->pool == POOL_ATTENTION)
        return attend_to_patches_backward(clip, encoding, pass, dfeatures, dx, error);
    if (clip->towers[pass->tower].projection.value != NULL)
        TRY(projection_backward(clip, encoding, pass, dfeatures, &dnormal, error));
    return pool_is_whole(clip, pass->tower) ? mean_patches_backward(clip, encoding, pass, &dnormal, dx, error)
                                            : one_row_backward(clip, encoding, pass, &dnormal, dx, error);
}
