#include "models/clip.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "models/files/safetensors.h"

size_t clip_owner(const struct clip *clip, const struct clip_tensor *tensor)
{
    bool shares = tensor->block != SIZE_MAX && tensor->tower == TOWER_IMAGE && (!tensor->norm || clip->share_norms);
    return shares ? tensor->block - tensor->block % clip->run : tensor->block;
}

/* In the table's order, which offsets and start values follow. */
static status declare_tensors(struct clip *clip, struct error *error)
{
    for (size_t i = 0; i < clip_tensors(&clip->dimensions); i++) {
        struct clip_tensor t = clip_tensor_at(&clip->dimensions, CLIP_OPENAI, i);
        size_t index, flag = strncmp(t.openai, "logit_", 6) == 0 ? CLIP_FLAG_APART
                             : t.tower == TOWER_IMAGE            ? CLIP_FLAG_IMAGE
                                                                 : CLIP_FLAG_TEXT;
        if (clip_owner(clip, &t) == t.block)
            TRY(parameters_add(clip->parameters, t.openai, t.rank, t.shape, 1, flag, &index, error));
    }
    return OK;
}

static struct weight *weight_at(struct clip *clip, const struct clip_tensor *tensor, size_t block)
{
    void *owner = block == SIZE_MAX ? (void *)clip : &clip->towers[tensor->tower].blocks[block];
    return (void *)((char *)owner + tensor->place);
}

/* Once memory is there. */
static void fetch_weights(struct clip *clip)
{
    size_t next = 0;
    for (size_t i = 0; i < clip_tensors(&clip->dimensions); i++) {
        struct clip_tensor t = clip_tensor_at(&clip->dimensions, CLIP_OPENAI, i);
        size_t owner = clip_owner(clip, &t);
        *weight_at(clip, &t, t.block) =
            owner == t.block ? parameters_weight(clip->parameters, next++) : *weight_at(clip, &t, owner);
    }
}

static struct block block_without_weights(const struct clip *clip, enum tower tower, size_t hidden)
{
    const struct clip_dimensions *n = &clip->dimensions;
    const struct layer_norm_weights norm = {.epsilon = clip->epsilon};
    bool image = tower == TOWER_IMAGE;
    size_t width = image ? n->image_width : n->text_width;
    return (struct block){.width = width,
                          .hidden = hidden,
                          .heads = image ? n->image_heads : n->text_heads,
                          .causal = !image && n->pool_hidden == 0,
                          .activation = clip->activation,
                          .ln_1 = norm,
                          .ln_2 = norm,
                          .in_proj = {.out = 3 * width, .in = width},
                          .out_proj = {.out = width, .in = width},
                          .c_fc = {.out = hidden, .in = width},
                          .c_proj = {.out = width, .in = hidden}};
}

static status create_blocks(struct clip *clip, enum tower tower, size_t count, size_t hidden, struct error *error)
{
    const struct block like = block_without_weights(clip, tower, hidden);
    if (like.heads == 0 || like.width % like.heads != 0)
        return error_set(error, ERROR_FORMAT,
                         "model: expected a number of heads that divides the width, found %zu heads for a width of "
                         "%zu in the %s tower",
                         like.heads, like.width, tower == TOWER_IMAGE ? "image" : "text");
    struct block *blocks = xcalloc(count, sizeof *blocks);
    for (size_t i = 0; i < count; i++)
        blocks[i] = like;
    clip->towers[tower].blocks = blocks;
    clip->towers[tower].count = count;
    clip->towers[tower].width = like.width;
    clip->towers[tower].ln_final.epsilon = clip->epsilon;
    return OK;
}

static status build(struct clip *clip, struct arena *arena, enum parameters_mode mode, struct error *error)
{
    const struct clip_dimensions *n = &clip->dimensions;
    if (n->image_blocks > CLIP_BLOCKS_MOST || n->text_blocks > CLIP_BLOCKS_MOST)
        return error_set(error, ERROR_FORMAT,
                         "model: expected at most %d blocks a tower, found %zu (image) and %zu (text)",
                         CLIP_BLOCKS_MOST, n->image_blocks, n->text_blocks);
    TRY(create_blocks(clip, TOWER_IMAGE, n->image_blocks, n->image_hidden, error));
    if (n->text_blocks > 0)
        TRY(create_blocks(clip, TOWER_TEXT, n->text_blocks, n->text_hidden, error));
    if (n->pool_hidden > 0)
        clip->attention_pool = block_without_weights(clip, TOWER_IMAGE, n->pool_hidden);
    clip->ln_pre.epsilon = clip->epsilon;
    parameters_create(&clip->parameters, clip->backend);
    TRY(declare_tensors(clip, error));
    clip->parameters->flags_count = CLIP_FLAGS; /* also the flags of a missing tower */
    TRY(parameters_allocate(clip->parameters, arena, mode, error));
    fetch_weights(clip);
    return OK;
}

status clip_build(struct clip **result, struct backend *backend, struct arena *arena, const struct clip_plan *plan,
                  enum parameters_mode mode, struct error *error)
{
    SCOPED(clip_destroy_at) struct clip *clip = xcalloc(1, sizeof *clip);
    clip->backend = backend;
    clip->dimensions = plan->dimensions;
    clip->activation = plan->activation;
    clip->pixels = plan->pixels != PIXELS_UNSTATED ? plan->pixels : PIXELS_CLIP;
    clip->epsilon = plan->epsilon > 0 ? plan->epsilon : 1e-5f;
    clip->pool = plan->pool;
    clip->run = plan->run;
    clip->share_norms = plan->share_norms;
    TRY(build(clip, arena, mode, error));
    *result = TAKE(clip);
    return OK;
}

status clip_create(struct clip **clip, struct backend *backend, struct arena *arena,
                   const struct clip_dimensions *dimensions, enum parameters_mode mode, enum activation activation,
                   struct error *error)
{
    bool siglip = dimensions->pool_hidden > 0;
    const struct clip_plan plan = {.dimensions = *dimensions,
                                   .activation = activation,
                                   .pixels = siglip ? PIXELS_HALF : PIXELS_CLIP,
                                   .epsilon = siglip ? 1e-6f : 1e-5f,
                                   .pool = siglip ? POOL_ATTENTION : POOL_CLASS_TOKEN,
                                   .run = 1};
    return clip_build(clip, backend, arena, &plan, mode, error);
}

void clip_destroy(struct clip *clip)
{
    if (clip == NULL)
        return;
    for (int t = 0; t < TOWERS; t++)
        free(clip->towers[t].blocks);
    parameters_destroy(clip->parameters);
    free(clip);
}

/* Whether the block's MLP uses that tensor. */
static bool has_tensor(const struct block *block, const float *values)
{
    const struct weight *const tensors[] = {&block->c_fc.weight, &block->c_fc.bias, &block->c_proj.weight,
                                            &block->c_proj.bias};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (tensors[i]->value == values)
            return true;
    return false;
}

status clip_replace_mlps(struct clip *clip, enum tower tower, const struct block_hook *hooks, struct error *error)
{
    struct parameters *group = clip->parameters;
    for (size_t k = 0; hooks != NULL && k < group->count; k++) {
        size_t replaced = 0, kept = 0;
        for (size_t b = 0; b < clip->towers[tower].count; b++)
            if (has_tensor(&clip->towers[tower].blocks[b], group->values + group->list[k].offset))
                ++*(hooks[b].forward != NULL && hooks[b].place == REPLACES_MLP ? &replaced : &kept);
        if (replaced > 0 && kept == 0)
            TRY(parameters_govern(group, &group->list[k], CLIP_FLAG_APART, error));
    }
    return OK;
}

static status load_tensors(struct clip *clip, const struct clip_file *file, struct error *error)
{
    struct parameters *group = clip->parameters;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        OWNED float *values = xmalloc(array_size(p->size, sizeof *values));
        TRY(clip_file_read(file, i, values, error));
        TRY(parameters_upload(group, p, values, error));
    }
    return OK;
}

static struct clip_dimensions dimensions_of(const struct clip_file *file, const struct clip_config *config)
{
    struct clip_dimensions dimensions = *clip_file_dimensions(file);
    dimensions.image_heads = config->image_heads;
    dimensions.text_heads = config->text_heads;
    if (config->resolution > 0)
        dimensions.resolution = config->resolution;
    return dimensions;
}

status clip_load(struct clip **clip, struct backend *backend, struct arena *arena, const char *path,
                 enum parameters_mode mode, const struct clip_stated *stated, struct error *error)
{
    SCOPED(clip_file_close_at) struct clip_file *file = NULL;
    SCOPED(clip_destroy_at) struct clip *made = NULL;
    struct clip_config config;
    *clip = NULL;
    TRY(clip_file_open(&file, path, WEIGHTS_WHOLE, error));
    TRY(clip_config_find(&config, file, stated, error));
    const struct clip_dimensions dimensions = dimensions_of(file, &config);
    TRY(clip_create(&made, backend, arena, &dimensions, mode, config.activation, error));
    made->pixels = config.pixels;
    TRY(load_tensors(made, file, error));
    *clip = TAKE(made);
    return OK;
}

struct clip_config clip_config_used(const struct clip *clip)
{
    const struct clip_dimensions *d = &clip->dimensions;
    return (struct clip_config){d->image_heads, d->text_heads, clip->activation, clip->pixels,
                                d->resolution % d->patch > 0 ? d->resolution : 0};
}

/* Checks that the file has the same dimensions and states no other number of heads or activation. */
static status check_same(const struct clip *clip, const struct clip_file *file, struct error *error)
{
    const struct clip_stated stated = {
        .config = clip_config_used(clip), .heads_by = "the model in use", .activation_by = "the model in use"};
    struct clip_config config;
    TRY(clip_config_find(&config, file, &stated, error));
    const struct clip_dimensions dimensions = dimensions_of(file, &config);
    if (memcmp(&dimensions, &clip->dimensions, sizeof dimensions) == 0)
        return OK;
    struct clip_words expected = clip_dimensions_words(&clip->dimensions), found = clip_dimensions_words(&dimensions);
    return error_set(error, ERROR_FORMAT, "%s: expected a model of the same size as the one in use, %s; found %s",
                     clip_file_path(file), expected.text, found.text);
}

status clip_reload(struct clip *clip, const char *path, struct error *error)
{
    SCOPED(clip_file_close_at) struct clip_file *file = NULL;
    TRY(clip_file_open(&file, path, WEIGHTS_WHOLE, error));
    TRY(check_same(clip, file, error));
    return load_tensors(clip, file, error);
}

status clip_save(const struct clip *clip, const char *path, struct error *error)
{
    const struct parameters *group = clip->parameters;
    OWNED struct safetensor *tensors = calloc(group->count, sizeof *tensors);
    OWNED float *values = malloc(array_size(group->values_count, sizeof *values));
    if (tensors == NULL || values == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu MiB of weights", path, group->values_count >> 18);
    TRY(parameters_download_all(group, values, path, error));
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        tensors[i] =
            (struct safetensor){.name = p->name, .type = SAFETENSOR_F32, .rank = p->rank, .data = values + p->offset};
        memcpy(tensors[i].shape, p->shape, (size_t)p->rank * sizeof *p->shape);
    }
    struct clip_metadata metadata;
    struct clip_config config = clip_config_used(clip);
    clip_metadata_fill(&metadata, &config);
    return safetensors_write(path, tensors, group->count, metadata.entries, metadata.count, error);
}

status clip_logit_scale(const struct clip *clip, float *exponential, struct error *error)
{
    float logarithm;
    TRY(clip->backend->ops->download(clip->backend, &logarithm, clip->logit_scale.value, sizeof logarithm, error));
    *exponential = expf(logarithm);
    return OK;
}

/* ---- identity ---- */

enum { DIGEST_PART = 1 << 20 }; /* values read at a time */

static status add_values(const struct clip *clip, const struct parameter *p, float *values, uint64_t *digest,
                         struct error *error)
{
    struct backend *backend = clip->backend;
    for (size_t first = 0; first < p->size; first += DIGEST_PART) {
        size_t count = p->size - first < DIGEST_PART ? p->size - first : DIGEST_PART;
        TRY(backend->ops->download(backend, values, clip->parameters->values + p->offset + first,
                                   count * sizeof *values, error));
        *digest = digest_quick(values, count * sizeof *values, *digest);
    }
    return OK;
}

status clip_digest(const struct clip *clip, char digest[CLIP_DIGEST_SIZE], struct error *error)
{
    const struct clip_dimensions *d = &clip->dimensions;
    /* not shown by any tensor's shape */
    const uint64_t untold[] = {(uint64_t)clip->activation, d->image_heads, d->text_heads,
                               (uint64_t)clip->pixels | (uint64_t)clip_config_used(clip).resolution << 8};
    uint64_t sum = digest_quick(untold, sizeof untold, 0);
    OWNED float *values = xmalloc(DIGEST_PART * sizeof *values);
    for (size_t i = 0; i < clip->parameters->count; i++) {
        const struct parameter *p = &clip->parameters->list[i];
        sum = digest_quick(p->name, strlen(p->name), sum);
        TRY(add_values(clip, p, values, &sum, error));
    }
    snprintf(digest, CLIP_DIGEST_SIZE, "%016" PRIx64, sum);
    return OK;
}
