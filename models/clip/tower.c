/* The two towers: embedding and blocks, forward and backward (models/README.md). */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "models/clip/pool.h"

/* ---- prompts ---- */

static status check_prompt(const struct clip *clip, const int32_t *row, size_t index, size_t *end, struct error *error)
{
    *end = 0;
    for (size_t l = 0; l < clip->dimensions.context; l++) {
        if (row[l] < 0 || (size_t)row[l] >= clip->dimensions.vocabulary)
            return error_set(
                error, ERROR_ARGUMENT,
                "prompt %zu: token %d at position %zu is not among the model's %zu; the vocabulary file and the "
                "weights do not belong together",
                index, row[l], l, clip->dimensions.vocabulary);
        if (row[l] > row[*end])
            *end = l;
    }
    if (clip->dimensions.pool_hidden > 0)
        *end = clip->dimensions.context - 1;
    return *end > 0 ? OK
                    : error_set(error, ERROR_ARGUMENT,
                                "prompt %zu: expected a start token and then an end token, the highest id; found "
                                "no token above the first",
                                index);
}

static status upload_numbers(const struct clip *clip, struct arena *arena, const char *name, const int32_t *host,
                             size_t count, int32_t **device, struct error *error)
{
    struct tensor tensor;
    TRY(tensor_take(&tensor, arena, TENSOR_I32, name, 1, &count, error));
    *device = tensor.data;
    return clip->backend->ops->upload(clip->backend, tensor.data, host, count * sizeof *host, error);
}

/* rows [C, 2], end_of_two and end_rows [C], from the prompts' lengths. */
static void list_rows(const struct texts *texts, const int32_t *lengths, int32_t *rows, int32_t *end_of_two,
                      int32_t *end_rows)
{
    for (size_t c = 0; c < texts->count; c++) {
        rows[2 * c] = (int32_t)(c * texts->positions);
        rows[2 * c + 1] = end_rows[c] = rows[2 * c] + lengths[c] - 1;
        end_of_two[c] = (int32_t)(2 * c + 1);
    }
}

/* Everything that follows from texts->positions and the prompts' lengths. */
static status upload_rows(struct texts *texts, const struct clip *clip, struct arena *arena, const int32_t *lengths,
                          struct error *error)
{
    size_t count = texts->count;
    OWNED int32_t *rows = xmalloc(array_size(count, 4 * sizeof *rows));
    int32_t *end_of_two = rows + 2 * count, *end_rows = rows + 3 * count;
    list_rows(texts, lengths, rows, end_of_two, end_rows);
    TRY(upload_numbers(clip, arena, "start and end rows", rows, 2 * count, &texts->last_rows, error));
    TRY(upload_numbers(clip, arena, "end rows", end_of_two, count, &texts->end_of_two, error));
    TRY(upload_numbers(clip, arena, "end rows of all", end_rows, count, &texts->end_rows, error));
    return upload_numbers(clip, arena, "prompt lengths", lengths, count, &texts->lengths, error);
}

status texts_create(struct texts *texts, const struct clip *clip, struct arena *arena, const int32_t *tokens,
                    size_t count, struct error *error)
{
    *texts = (struct texts){.count = count};
    OWNED int32_t *lengths = xmalloc(array_size(count, sizeof *lengths));
    for (size_t c = 0; c < count; c++) {
        size_t end;
        TRY(check_prompt(clip, tokens + c * clip->dimensions.context, c, &end, error));
        lengths[c] = (int32_t)end + 1;
        texts->positions = end + 1 > texts->positions ? end + 1 : texts->positions;
    }
    TRY(upload_numbers(clip, arena, "tokens", tokens, count * clip->dimensions.context, &texts->tokens, error));
    return upload_rows(texts, clip, arena, lengths, error);
}

/* ---- forward ---- */

static status take(struct tensor *tensor, const struct encoding *encoding, const char *name, size_t rows,
                   size_t columns, struct error *error)
{
    return tensor_take(tensor, encoding->arena, TENSOR_F32, name, 2, (size_t[]){rows, columns}, error);
}

static status take_positions(struct tensor *tensor, const struct encoding *encoding, const struct tower_pass *pass,
                             size_t positions, size_t width, struct error *error)
{
    return tensor_take(tensor, encoding->arena, TENSOR_F32, "residual stream", 3,
                       (size_t[]){pass->batch, positions, width}, error);
}

static status take_stream(struct tensor *tensor, const struct encoding *encoding, const struct tower_pass *pass,
                          size_t width, struct error *error)
{
    return take_positions(tensor, encoding, pass, pass->positions, width, error);
}

static const struct block_hook *hook_at(const struct encoding *encoding, size_t block)
{
    bool has = encoding->hooks != NULL && encoding->router != NULL && encoding->hooks[block].forward != NULL;
    return has ? &encoding->hooks[block] : NULL;
}

static const struct attention_hook *attention_at(const struct encoding *encoding, size_t block)
{
    bool has = encoding->attention != NULL && encoding->router != NULL && encoding->attention[block].forward != NULL;
    return has ? &encoding->attention[block] : NULL;
}

static struct block_context context_of(const struct clip *clip, const struct encoding *encoding,
                                       const struct tower_pass *pass, size_t block)
{
    bool last = block + 1 == clip->towers[pass->tower].count;
    return (struct block_context){.backend = clip->backend,
                                  .arena = encoding->arena,
                                  .tower = pass->tower,
                                  .block = block,
                                  .training = encoding->training,
                                  .router = encoding->router,
                                  .state = encoding->state,
                                  .first = encoding->first,
                                  .dropout = encoding->dropout,
                                  .rows = last ? pass->last_rows : NULL,
                                  .rows_per_sample = pass->last_positions,
                                  .positions = pass->positions,
                                  .lengths = pass->lengths,
                                  .attention = attention_at(encoding, block)};
}

static status begin_hooks(const struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                          const struct tensor *x, struct error *error)
{
    for (size_t i = 0; i < clip->towers[pass->tower].count; i++) {
        const struct block_hook *hook = hook_at(encoding, i);
        struct block_context context = context_of(clip, encoding, pass, i);
        if (hook != NULL && hook->begin != NULL)
            TRY(hook->begin(hook->state, &context, x, error));
    }
    return OK;
}

/* Blocks, then the pooled rows through the final norm and the projection. x is the embedded input. */
static status run_blocks(struct clip *clip, const struct encoding *encoding, struct tower_pass *pass, struct tensor x,
                         struct error *error)
{
    size_t count = clip->towers[pass->tower].count, width = clip->towers[pass->tower].width;
    struct tensor spare = {0};
    if (!encoding->training)
        TRY(take_stream(&spare, encoding, pass, width, error));
    struct block_context embedded = context_of(clip, encoding, pass, 0);
    TRY(block_drop(&embedded, DROPOUT_EMBEDDING, &x, NULL, &x, error));
    TRY(begin_hooks(clip, encoding, pass, &x, error));
    for (size_t i = 0; i < count; i++) {
        struct block_context context = context_of(clip, encoding, pass, i);
        struct tensor y = spare;
        if (encoding->training || context.rows != NULL)
            TRY(take_positions(&y, encoding, pass, context.rows != NULL ? pass->last_positions : pass->positions, width,
                               error));
        TRY(block_forward(&context, &clip->towers[pass->tower].blocks[i], hook_at(encoding, i), &x, &y,
                          encoding->training ? &pass->blocks[i] : NULL, error));
        spare = x;
        x = y;
    }
    pass->last = x;
    return OK;
}

static bool last_is_whole(const struct clip *clip, const struct encoding *encoding, enum tower tower)
{
    const struct block_hook *hook = hook_at(encoding, clip->towers[tower].count - 1);
    return encoding->whole || pool_is_whole(clip, tower) || (hook != NULL && hook->whole);
}

/* The class token alone goes through the second half of the last block, unless the whole of it is wanted. */
static status choose_class_rows(const struct clip *clip, const struct encoding *encoding, struct tower_pass *pass,
                                struct error *error)
{
    bool whole = last_is_whole(clip, encoding, TOWER_IMAGE);
    pass->last_positions = whole ? pass->positions : 1;
    if (!whole)
        TRY(pool_rows(clip->backend, encoding->arena, pass->batch, pass->positions, &pass->last_rows, error));
    return pool_rows(clip->backend, encoding->arena, pass->batch, pass->last_positions, &pass->pool_rows, error);
}

/* x = patches + positions, and the class embedding in front where there is one. */
static status add_positions(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                            const struct tensor *tokens, const struct tensor *x, struct error *error)
{
    struct backend *backend = clip->backend;
    const int32_t *numbers;
    if (clip->class_embedding.value != NULL)
        return backend->ops->assemble_tokens(backend,
                                             &(struct assemble_tokens){.batch = pass->batch,
                                                                       .per_image = pass->patch_count,
                                                                       .width = clip->dimensions.image_width,
                                                                       .patches = tokens->data,
                                                                       .class_embedding = clip->class_embedding.value,
                                                                       .position = clip->image_position.value,
                                                                       .x = x->data},
                                             error);
    TRY(pool_rows(clip->backend, encoding->arena, pass->batch * pass->patch_count, 1, &numbers, error));
    return backend->ops->embed_tokens(backend,
                                      &(struct embed_tokens){.batch = pass->batch,
                                                             .positions = pass->patch_count,
                                                             .context = pass->patch_count,
                                                             .width = clip->dimensions.image_width,
                                                             .tokens = numbers,
                                                             .table = tokens->data,
                                                             .position = clip->image_position.value,
                                                             .x = x->data},
                                      error);
}

static status embed_image(struct clip *clip, const struct encoding *encoding, const struct tensor *images,
                          struct tower_pass *pass, struct tensor *x, struct error *error)
{
    struct backend *backend = clip->backend;
    const struct clip_dimensions *n = &clip->dimensions;
    size_t patch_values = 3 * n->patch * n->patch, rows = pass->batch * pass->patch_count;
    struct tensor tokens, statistics;
    TRY(take(&pass->patches, encoding, "patches", rows, patch_values, error));
    TRY(take_stream(&pass->embedded, encoding, pass, n->image_width, error));
    TRY(take(&tokens, encoding, "patch embeddings", rows, n->image_width, error));
    struct patchify patchify = {
        .images = images, .patch = n->patch, .per_image = pass->patch_count, .out = pass->patches.data};
    memcpy(patchify.mean, pixel_norms[clip->pixels].mean, sizeof patchify.mean);
    memcpy(patchify.std, pixel_norms[clip->pixels].deviation, sizeof patchify.std);
    TRY(backend->ops->patchify(backend, &patchify, error));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = matrix_of(&pass->patches),
                                          .transpose_b = true,
                                          .out = matrix_of(&tokens),
                                          .b = matrix_rows(clip->conv1.value, n->image_width, patch_values),
                                          .frozen_b = clip->conv1.frozen,
                                          .frozen_bias = clip->patch_bias.frozen,
                                          .bias = clip->patch_bias.value},
                           error));
    TRY(add_positions(clip, encoding, pass, &tokens, &pass->embedded, error));
    *x = pass->embedded;
    if (clip->ln_pre.gain.value == NULL)
        return OK;
    TRY(take_stream(x, encoding, pass, n->image_width, error));
    TRY(take(&statistics, encoding, "layer norm statistics", pass->batch * pass->positions, 2, error));
    pass->pre_statistics = statistics.data;
    return layer_norm_forward(backend, &clip->ln_pre, matrix_of(&pass->embedded), pass->pre_statistics, matrix_of(x),
                              error);
}

static status check_images(const struct clip *clip, const struct tensor *images, struct error *error)
{
    size_t r = clip->dimensions.resolution;
    const size_t *s = images->shape;
    bool good = images->rank == 4 &&
                (images->type == TENSOR_U8 ? s[1] == r && s[2] == r && s[3] == 3 : s[1] == 3 && s[2] == r && s[3] == r);
    if (good)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "images: expected %zu × %zu pixels of 3 colours as the model was trained with, found shape "
                     "[%zu, %zu, %zu, %zu]",
                     r, r, s[0], s[1], s[2], s[3]);
}

status clip_encode_images(struct clip *clip, const struct encoding *encoding, const struct tensor *images,
                          struct tower_pass *pass, struct tensor *features, struct error *error)
{
    size_t grid = clip->dimensions.resolution / clip->dimensions.patch;
    struct tensor x;
    TRY(check_images(clip, images, error));
    *pass = (struct tower_pass){.tower = TOWER_IMAGE, .batch = images->shape[0], .patch_count = grid * grid};
    pass->positions = clip_image_positions(&clip->dimensions);
    TRY(choose_class_rows(clip, encoding, pass, error));
    TRY(embed_image(clip, encoding, images, pass, &x, error));
    TRY(run_blocks(clip, encoding, pass, x, error));
    return pool_forward(clip, encoding, pass, features, error);
}

/* Words, with the positions where they stand. */
static status embed_text(struct clip *clip, const struct encoding *encoding, const struct texts *texts,
                         const struct tower_pass *pass, struct tensor *x, struct error *error)
{
    TRY(take_stream(x, encoding, pass, clip->dimensions.text_width, error));
    return clip->backend->ops->embed_tokens(clip->backend,
                                            &(struct embed_tokens){.batch = texts->count,
                                                                   .positions = texts->positions,
                                                                   .context = clip->dimensions.context,
                                                                   .width = clip->dimensions.text_width,
                                                                   .tokens = texts->tokens,
                                                                   .table = clip->token_embedding.value,
                                                                   .position = clip->text_position.value,
                                                                   .x = x->data},
                                            error);
}

status clip_encode_texts(struct clip *clip, const struct encoding *encoding, const struct texts *texts,
                         struct tower_pass *pass, struct tensor *features, struct error *error)
{
    struct tensor x;
    bool whole = last_is_whole(clip, encoding, TOWER_TEXT);
    *pass = (struct tower_pass){.tower = TOWER_TEXT,
                                .batch = texts->count,
                                .positions = texts->positions,
                                .last_rows = whole ? NULL : texts->last_rows,
                                .last_positions = whole ? texts->positions : 2,
                                .pool_rows = whole ? texts->end_rows : texts->end_of_two,
                                .lengths = texts->lengths,
                                .texts = texts};
    TRY(embed_text(clip, encoding, texts, pass, &x, error));
    TRY(run_blocks(clip, encoding, pass, x, error));
    return pool_forward(clip, encoding, pass, features, error);
}

/* ---- backward ---- */

static status positions_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                                 const struct tensor *dx, const struct tensor *dtokens, struct error *error)
{
    struct backend *backend = clip->backend;
    const int32_t *numbers;
    if (clip->class_embedding.value != NULL)
        return backend->ops->assemble_tokens_backward(
            backend,
            &(struct assemble_tokens_backward){.batch = pass->batch,
                                               .per_image = pass->patch_count,
                                               .width = clip->dimensions.image_width,
                                               .dx = dx->data,
                                               .dpatches = dtokens->data,
                                               .dclass = clip->class_embedding.gradient,
                                               .dposition = clip->image_position.gradient},
            error);
    TRY(pool_rows(clip->backend, encoding->arena, pass->batch * pass->patch_count, 1, &numbers, error));
    TRY(backend->ops->zero(backend, dtokens->data, tensor_bytes(dtokens), error));
    return backend->ops->embed_tokens_backward(
        backend,
        &(struct embed_tokens_backward){.batch = pass->batch,
                                        .positions = pass->patch_count,
                                        .context = pass->patch_count,
                                        .width = clip->dimensions.image_width,
                                        .tokens = numbers,
                                        .dx = dx->data,
                                        .dtable = dtokens->data,
                                        .dposition = clip->image_position.gradient},
        error);
}

static status image_embedding_backward(struct clip *clip, const struct encoding *encoding,
                                       const struct tower_pass *pass, const struct tensor *dx, struct error *error)
{
    struct backend *backend = clip->backend;
    size_t width = clip->dimensions.image_width;
    struct tensor dembedded = *dx, dtokens;
    if (clip->ln_pre.gain.value != NULL) {
        TRY(take_stream(&dembedded, encoding, pass, width, error));
        TRY(layer_norm_backward(backend, &clip->ln_pre,
                                (struct layer_norm_backward){.x = matrix_of(&pass->embedded),
                                                             .dy = matrix_of(dx),
                                                             .dx = matrix_of(&dembedded),
                                                             .statistics = pass->pre_statistics},
                                error));
    }
    TRY(take(&dtokens, encoding, "gradient of the patches", pass->batch * pass->patch_count, width, error));
    TRY(positions_backward(clip, encoding, pass, &dembedded, &dtokens, error));
    if (clip->patch_bias.gradient != NULL)
        TRY(backend->ops->column_sum(
            backend, &(struct column_sum){.x = matrix_of(&dtokens), .out = clip->patch_bias.gradient}, error));
    size_t patch_values = pass->patches.shape[1];
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_of(&dtokens),
                                             .transpose_a = true,
                                             .b = matrix_of(&pass->patches),
                                             .out = matrix_rows(clip->conv1.gradient, width, patch_values),
                                             .accumulate = true},
                              error);
}

static status text_embedding_backward(struct clip *clip, const struct tower_pass *pass, const struct tensor *dx,
                                      struct error *error)
{
    return clip->backend->ops->embed_tokens_backward(
        clip->backend,
        &(struct embed_tokens_backward){.batch = pass->batch,
                                        .positions = pass->positions,
                                        .context = clip->dimensions.context,
                                        .width = clip->dimensions.text_width,
                                        .tokens = pass->texts->tokens,
                                        .dx = dx->data,
                                        .dtable = clip->token_embedding.gradient,
                                        .dposition = clip->text_position.gradient},
        error);
}

/* The lowest block with an adapter or deltas that are trained; SIZE_MAX: none. */
static size_t lowest_trained(const struct encoding *encoding, const struct block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct block_hook *hook = hook_at(encoding, i);
        const struct attention_hook *attention = attention_at(encoding, i);
        if (block_is_trained(&blocks[i]) || (hook != NULL && hook->trained) ||
            (attention != NULL && attention->trained))
            return i;
    }
    return SIZE_MAX;
}

status clip_encode_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                            const struct tensor *dfeatures, struct error *error)
{
    struct arena_mark mark = arena_mark(encoding->arena);
    const struct block *blocks = clip->towers[pass->tower].blocks;
    bool bottom = clip->conv1.gradient != NULL; /* the embeddings need a gradient */
    struct tensor dy, dx;
    size_t width = clip->towers[pass->tower].width, count = clip->towers[pass->tower].count,
           lowest = bottom ? 0 : lowest_trained(encoding, blocks, count);
    TRY(take_positions(&dy, encoding, pass, pass->last_positions, width, error));
    TRY(take_stream(&dx, encoding, pass, width, error));
    TRY(pool_backward(clip, encoding, pass, dfeatures, &dy, error));
    for (size_t i = count; i-- > 0 && i >= lowest;) {
        struct block_context context = context_of(clip, encoding, pass, i);
        bool below = bottom || i > lowest;
        TRY(block_backward(&context, &blocks[i], hook_at(encoding, i), &pass->blocks[i], &dy, &dx, below, error));
        dy = dx;
    }
    struct block_context embedded = context_of(clip, encoding, pass, 0);
    TRY(block_drop(&embedded, DROPOUT_EMBEDDING, &dy, NULL, &dy, error));
    if (bottom)
        TRY(pass->tower == TOWER_IMAGE ? image_embedding_backward(clip, encoding, pass, &dy, error)
                                       : text_embedding_backward(clip, pass, &dy, error));
    arena_release(encoding->arena, mark);
    return OK;
}
