/* Pooling (class token, end token or mean of the patches; attention_pool.c has the attention), the final norm and the projection. */
#include "models/clip/pool.h"

#include "models/clip/attention_pool.h"

static status take(struct tensor *tensor, const struct encoding *encoding, const char *name, size_t rows,
                   size_t columns, struct error *error)
{
    return tensor_take(tensor, encoding->arena, TENSOR_F32, name, 2, (size_t[]){rows, columns}, error);
}

bool pool_is_whole(const struct clip *clip, enum tower tower)
{
    return tower == TOWER_IMAGE && clip->pool != POOL_CLASS_TOKEN;
}

/* means [B, width] are taken from the arena; statistics [B · L, 2] of the norm, NULL: not wanted. */
static status mean_patches(struct clip *clip, struct arena *arena, const struct tower_pass *pass, float *statistics,
                           struct tensor *means, struct error *error)
{
    struct backend *backend = clip->backend;
    struct layer_norm_weights *ln = &clip->towers[TOWER_IMAGE].ln_final;
    size_t width = clip->towers[TOWER_IMAGE].width;
    TRY(tensor_take(means, arena, TENSOR_F32, "mean of the patches", 2, (size_t[]){pass->batch, width}, error));
    struct arena_mark mark = arena_mark(arena);
    struct tensor normal;
    TRY(tensor_take(&normal, arena, TENSOR_F32, "patches after the final norm", 3, pass->last.shape, error));
    TRY(backend->ops->layer_norm(backend,
                                 &(struct layer_norm){.x = matrix_of(&pass->last),
                                                      .y = matrix_of(&normal),
                                                      .gain = ln->gain.value,
                                                      .bias = ln->bias.value,
                                                      .statistics = statistics,
                                                      .epsilon = ln->epsilon},
                                 error));
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
    struct layer_norm_weights *ln = &clip->towers[pass->tower].ln_final;
    TRY(take(&pass->pooled, encoding, "pooled rows", pass->batch, width, error));
    TRY(take(&pass->normal, encoding, "pooled rows after the norm", pass->batch, width, error));
    TRY(backend->ops->gather_rows(
        backend,
        &(struct gather_rows){.x = matrix_of(&pass->last), .out = matrix_of(&pass->pooled), .rows = pass->pool_rows},
        error));
    return backend->ops->layer_norm(backend,
                                    &(struct layer_norm){.x = matrix_of(&pass->pooled),
                                                         .y = matrix_of(&pass->normal),
                                                         .gain = ln->gain.value,
                                                         .bias = ln->bias.value,
                                                         .statistics = pass->final_statistics,
                                                         .epsilon = ln->epsilon},
                                    error);
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
        return attention_pool_forward(clip, encoding, pass, features, error);
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
    struct layer_norm_weights *ln = &clip->towers[pass->tower].ln_final;
    struct tensor dpooled;
    TRY(take(&dpooled, encoding, "gradient of the pooled rows", pass->batch, clip->towers[pass->tower].width, error));
    TRY(backend->ops->layer_norm_backward(backend,
                                          &(struct layer_norm_backward){.x = matrix_of(&pass->pooled),
                                                                        .dy = matrix_of(dnormal),
                                                                        .dx = matrix_of(&dpooled),
                                                                        .gain = ln->gain.value,
                                                                        .statistics = pass->final_statistics,
                                                                        .dgain = ln->gain.gradient,
                                                                        .dbias = ln->bias.gradient},
                                          error));
    TRY(backend->ops->zero(backend, dx->data, tensor_bytes(dx), error));
    return backend->ops->scatter_rows(
        backend, &(struct scatter_rows){.x = matrix_of(&dpooled), .out = matrix_of(dx), .rows = pass->pool_rows},
        error);
}

/* The same from the gradient of the patches' mean. */
static status mean_patches_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                                    const struct tensor *dmeans, struct tensor *dx, struct error *error)
{
    struct backend *backend = clip->backend;
    struct layer_norm_weights *ln = &clip->towers[TOWER_IMAGE].ln_final;
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
    return backend->ops->layer_norm_backward(backend,
                                             &(struct layer_norm_backward){.x = matrix_of(&pass->last),
                                                                           .dy = matrix_of(&dnormal),
                                                                           .dx = matrix_of(dx),
                                                                           .gain = ln->gain.value,
                                                                           .statistics = pass->final_statistics,
                                                                           .dgain = ln->gain.gradient,
                                                                           .dbias = ln->bias.gradient},
                                             error);
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
        return attention_pool_backward(clip, encoding, pass, dfeatures, dx, error);
    if (clip->towers[pass->tower].projection.value != NULL)
        TRY(projection_backward(clip, encoding, pass, dfeatures, &dnormal, error));
    return pool_is_whole(clip, pass->tower) ? mean_patches_backward(clip, encoding, pass, &dnormal, dx, error)
                                            : one_row_backward(clip, encoding, pass, &dnormal, dx, error);
}
