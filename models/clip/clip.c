#include "models/clip/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "models/files/safetensors.h"

/* Numbers of the tensors in their group, in order of declaration; resolved to weights once memory is there. */
struct declaration {
    struct clip *clip;
    const char *prefix;
    size_t next;
    bool allocated;
};

/* Called in the same walk over the model twice: first to declare tensors, then to fetch their weights. */
static status weight_at(struct declaration *d, struct weight *weight, const char *name, int rank, const size_t *shape,
                        struct error *error)
{
    if (d->allocated) {
        *weight = parameters_weight(d->clip->parameters, d->next++);
        return OK;
    }
    char full[160];
    size_t index;
    snprintf(full, sizeof full, "%s%s", d->prefix, name);
    size_t flag = strncmp(full, "logit_", 6) == 0    ? CLIP_FLAG_APART
                  : strncmp(full, "visual.", 7) == 0 ? CLIP_FLAG_IMAGE
                                                     : CLIP_FLAG_TEXT;
    return parameters_add(d->clip->parameters, full, rank, shape, 1, flag, &index, error);
}

static status linear_at(struct declaration *d, struct linear *linear, const char *weight, const char *bias, size_t out,
                        size_t in, struct error *error)
{
    linear->out = out;
    linear->in = in;
    TRY(weight_at(d, &linear->weight, weight, 2, (size_t[]){out, in}, error));
    return weight_at(d, &linear->bias, bias, 1, &out, error);
}

static status norm_at(struct declaration *d, struct layer_norm_weights *norm, const char *gain, const char *bias,
                      size_t width, struct error *error)
{
    norm->epsilon = d->clip->epsilon;
    TRY(weight_at(d, &norm->gain, gain, 1, &width, error));
    return weight_at(d, &norm->bias, bias, 1, &width, error);
}

/* For a block that shares weights, declares only its own; the others are the leader's. */
static status block_at(struct declaration *d, struct block *block, const struct block *leader, struct error *error)
{
    size_t width = block->width, hidden = block->hidden;
    bool modules = leader == block, norms = modules || !d->clip->share_norms;
    if (!modules)
        *block = *leader;
    if (norms)
        TRY(norm_at(d, &block->ln_1, "ln_1.weight", "ln_1.bias", width, error));
    if (modules) {
        TRY(linear_at(d, &block->in_proj, "attn.in_proj_weight", "attn.in_proj_bias", 3 * width, width, error));
        TRY(linear_at(d, &block->out_proj, "attn.out_proj.weight", "attn.out_proj.bias", width, width, error));
    }
    if (norms)
        TRY(norm_at(d, &block->ln_2, "ln_2.weight", "ln_2.bias", width, error));
    if (modules) {
        TRY(linear_at(d, &block->c_fc, "mlp.c_fc.weight", "mlp.c_fc.bias", hidden, width, error));
        TRY(linear_at(d, &block->c_proj, "mlp.c_proj.weight", "mlp.c_proj.bias", width, hidden, error));
    }
    return OK;
}

static status blocks_at(struct declaration *d, enum tower tower, struct error *error)
{
    const char *outer = d->prefix;
    struct block *blocks = d->clip->towers[tower].blocks;
    size_t run = tower == TOWER_IMAGE ? d->clip->run : 1;
    status result = OK;
    for (size_t i = 0; result == OK && i < d->clip->towers[tower].count; i++) {
        char prefix[96];
        snprintf(prefix, sizeof prefix, "%stransformer.resblocks.%zu.", outer, i);
        d->prefix = prefix;
        result = block_at(d, &blocks[i], &blocks[i - i % run], error);
        d->prefix = outer;
    }
    return result;
}

static status attention_pool_at(struct declaration *d, struct error *error)
{
    struct clip *clip = d->clip;
    struct block *block = &clip->attention_pool;
    size_t width = clip->dimensions.image_width, hidden = clip->dimensions.pool_hidden;
    *block = (struct block){
        .width = width, .hidden = hidden, .heads = clip->dimensions.image_heads, .activation = clip->activation};
    d->prefix = "visual.attn_pool.";
    TRY(weight_at(d, &clip->probe, "probe", 1, &width, error));
    TRY(linear_at(d, &block->in_proj, "attn.in_proj_weight", "attn.in_proj_bias", 3 * width, width, error));
    TRY(linear_at(d, &block->out_proj, "attn.out_proj.weight", "attn.out_proj.bias", width, width, error));
    TRY(norm_at(d, &block->ln_2, "ln_2.weight", "ln_2.bias", width, error));
    TRY(linear_at(d, &block->c_fc, "mlp.c_fc.weight", "mlp.c_fc.bias", hidden, width, error));
    return linear_at(d, &block->c_proj, "mlp.c_proj.weight", "mlp.c_proj.bias", width, hidden, error);
}

static status image_at(struct declaration *d, bool ln_pre, struct error *error)
{
    struct clip *clip = d->clip;
    const struct clip_dimensions *n = &clip->dimensions;
    size_t width = n->image_width;
    bool siglip = n->pool_hidden > 0;
    d->prefix = "visual.";
    if (!siglip)
        TRY(weight_at(d, &clip->class_embedding, "class_embedding", 1, &width, error));
    TRY(weight_at(d, &clip->image_position, "positional_embedding", 2, (size_t[]){clip_image_positions(n), width},
                  error));
    if (n->embed > 0 && !siglip)
        TRY(weight_at(d, &clip->towers[TOWER_IMAGE].projection, "proj", 2, (size_t[]){width, n->embed}, error));
    TRY(weight_at(d, &clip->conv1, "conv1.weight", 4, (size_t[]){width, 3, n->patch, n->patch}, error));
    if (ln_pre)
        TRY(norm_at(d, &clip->ln_pre, "ln_pre.weight", "ln_pre.bias", width, error));
    else
        TRY(weight_at(d, &clip->patch_bias, "conv1.bias", 1, &width, error));
    TRY(blocks_at(d, TOWER_IMAGE, error));
    TRY(norm_at(d, &clip->towers[TOWER_IMAGE].ln_final, "ln_post.weight", "ln_post.bias", width, error));
    return siglip ? attention_pool_at(d, error) : OK;
}

static status text_at(struct declaration *d, struct error *error)
{
    struct clip *clip = d->clip;
    const struct clip_dimensions *n = &clip->dimensions;
    if (n->text_blocks == 0)
        return OK;
    d->prefix = "";
    TRY(weight_at(d, &clip->text_position, "positional_embedding", 2, (size_t[]){n->context, n->text_width}, error));
    TRY(weight_at(d, &clip->towers[TOWER_TEXT].projection, "text_projection", 2, (size_t[]){n->text_width, n->embed},
                  error));
    TRY(weight_at(d, &clip->logit_scale, "logit_scale", 0, NULL, error));
    if (n->pool_hidden > 0) {
        TRY(weight_at(d, &clip->text_bias, "text_projection_bias", 1, &n->embed, error));
        TRY(weight_at(d, &clip->logit_bias, "logit_bias", 0, NULL, error));
    }
    TRY(blocks_at(d, TOWER_TEXT, error));
    TRY(weight_at(d, &clip->token_embedding, "token_embedding.weight", 2, (size_t[]){n->vocabulary, n->text_width},
                  error));
    return norm_at(d, &clip->towers[TOWER_TEXT].ln_final, "ln_final.weight", "ln_final.bias", n->text_width, error);
}

static status create_blocks(struct clip *clip, enum tower tower, const struct block *like, size_t count,
                            struct error *error)
{
    if (like->heads == 0 || like->width % like->heads != 0)
        return error_set(error, ERROR_FORMAT,
                         "model: expected a number of heads that divides the width, found %zu heads for a width of "
                         "%zu in the %s tower",
                         like->heads, like->width, tower == TOWER_IMAGE ? "image" : "text");
    struct block *blocks = xcalloc(count, sizeof *blocks);
    for (size_t i = 0; i < count; i++)
        blocks[i] = *like;
    clip->towers[tower].blocks = blocks;
    clip->towers[tower].count = count;
    clip->towers[tower].width = like->width;
    return OK;
}

static status build(struct clip *clip, struct arena *arena, bool ln_pre, enum parameters_mode mode, struct error *error)
{
    const struct clip_dimensions *n = &clip->dimensions;
    const struct block image = {.width = n->image_width,
                                .hidden = n->image_hidden,
                                .heads = n->image_heads,
                                .activation = clip->activation},
                       text = {.width = n->text_width,
                               .hidden = n->text_hidden,
                               .heads = n->text_heads,
                               .causal = n->pool_hidden == 0,
                               .activation = clip->activation};
    if (n->image_blocks > CLIP_BLOCKS_MOST || n->text_blocks > CLIP_BLOCKS_MOST)
        return error_set(error, ERROR_FORMAT,
                         "model: expected at most %d blocks a tower, found %zu (image) and %zu (text)",
                         CLIP_BLOCKS_MOST, n->image_blocks, n->text_blocks);
    TRY(create_blocks(clip, TOWER_IMAGE, &image, n->image_blocks, error));
    if (n->text_blocks > 0)
        TRY(create_blocks(clip, TOWER_TEXT, &text, n->text_blocks, error));
    parameters_create(&clip->parameters, clip->backend);
    struct declaration declared = {.clip = clip}, fetched = {.clip = clip, .allocated = true};
    TRY(image_at(&declared, ln_pre, error));
    TRY(text_at(&declared, error));
    clip->parameters->flags_count = CLIP_FLAGS; /* also the flags of a missing tower */
    TRY(parameters_allocate(clip->parameters, arena, mode, error));
    TRY(image_at(&fetched, ln_pre, error));
    return text_at(&fetched, error);
}

status clip_build(struct clip **result, struct backend *backend, struct arena *arena, const struct clip_plan *plan,
                  enum parameters_mode mode, struct error *error)
{
    struct clip *clip = xcalloc(1, sizeof *clip);
    clip->backend = backend;
    clip->dimensions = plan->dimensions;
    clip->activation = plan->activation;
    clip->pixels = plan->pixels != PIXELS_UNSTATED ? plan->pixels : PIXELS_CLIP;
    clip->epsilon = plan->epsilon > 0 ? plan->epsilon : 1e-5f;
    clip->pool = plan->pool;
    clip->run = plan->run;
    clip->share_norms = plan->share_norms;
    status built = build(clip, arena, plan->ln_pre, mode, error);
    if (built != OK) {
        clip_destroy(clip);
        return built;
    }
    *result = clip;
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
                                   .ln_pre = !siglip,
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
        float *values = xmalloc(array_size(p->size, sizeof *values));
        status result = clip_file_read(file, p->name, p->rank, p->shape, values, error);
        if (result == OK)
            result = parameters_upload(group, p, values, error);
        free(values);
        TRY(result);
    }
    return OK;
}

status clip_load(struct clip **clip, struct backend *backend, struct arena *arena, const char *path,
                 enum parameters_mode mode, const struct clip_stated *stated, struct error *error)
{
    struct clip_file *file;
    struct clip_config config;
    TRY(clip_file_open(&file, path, error));
    status result = clip_config_find(&config, file, stated, error);
    if (result == OK) {
        struct clip_dimensions dimensions = *clip_file_dimensions(file);
        dimensions.image_heads = config.image_heads;
        dimensions.text_heads = config.text_heads;
        result = clip_create(clip, backend, arena, &dimensions, mode, config.activation, error);
        if (result == OK)
            (*clip)->pixels = config.pixels;
    }
    if (result == OK) {
        result = load_tensors(*clip, file, error);
        if (result != OK) {
            clip_destroy(*clip);
            *clip = NULL;
        }
    }
    clip_file_close(file);
    return result;
}

/* Checks that the file has the same dimensions and states no other number of heads or activation. */
static status check_same(const struct clip *clip, const struct clip_file *file, struct error *error)
{
    const struct clip_stated stated = {
        .config = {clip->dimensions.image_heads, clip->dimensions.text_heads, clip->activation, clip->pixels},
        .heads_by = "the model in use",
        .activation_by = "the model in use"};
    struct clip_config config;
    struct clip_dimensions dimensions = *clip_file_dimensions(file);
    TRY(clip_config_find(&config, file, &stated, error));
    dimensions.image_heads = config.image_heads;
    dimensions.text_heads = config.text_heads;
    if (memcmp(&dimensions, &clip->dimensions, sizeof dimensions) == 0)
        return OK;
    struct clip_words expected = clip_dimensions_words(&clip->dimensions), found = clip_dimensions_words(&dimensions);
    return error_set(error, ERROR_FORMAT, "%s: expected a model of the same size as the one in use, %s; found %s",
                     clip_file_path(file), expected.text, found.text);
}

status clip_reload(struct clip *clip, const char *path, struct error *error)
{
    struct clip_file *file;
    TRY(clip_file_open(&file, path, error));
    status result = check_same(clip, file, error);
    if (result == OK)
        result = load_tensors(clip, file, error);
    clip_file_close(file);
    return result;
}

/* Standard deviation of a tensor at the start; 0: constant 0, negative: constant −deviation. */
static float initial_deviation(const struct clip *clip, const struct parameter *p)
{
    const struct clip_dimensions *n = &clip->dimensions;
    bool image = strncmp(p->name, "visual.", 7) == 0;
    float width = (float)(image ? n->image_width : n->text_width);
    float blocks = (float)(image ? n->image_blocks : n->text_blocks);
    if (strcmp(p->name, "logit_scale") == 0)
        return -logf(1.0f / 0.07f);
    if (strstr(p->name, "ln_") != NULL)
        return strstr(p->name, ".weight") != NULL ? -1.0f : 0.0f;
    if (strstr(p->name, "bias") != NULL)
        return 0.0f;
    if (strcmp(p->name, "token_embedding.weight") == 0)
        return 0.02f;
    if (strcmp(p->name, "positional_embedding") == 0)
        return 0.01f;
    if (strstr(p->name, "in_proj_weight") != NULL || strstr(p->name, "proj") == p->name + 7 ||
        strstr(p->name, "text_projection") != NULL || strstr(p->name, "embedding") != NULL)
        return 1.0f / sqrtf(width);
    if (strstr(p->name, "out_proj") != NULL || strstr(p->name, "c_proj") != NULL)
        return 1.0f / sqrtf(width * 2.0f * blocks);
    if (strstr(p->name, "c_fc") != NULL)
        return 1.0f / sqrtf(2.0f * width);
    return 1.0f / sqrtf((float)(3 * n->patch * n->patch)); /* conv1 */
}

status clip_initialize(struct clip *clip, uint64_t seed, struct error *error)
{
    struct parameters *group = clip->parameters;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        float deviation = initial_deviation(clip, p), *values = xmalloc(array_size(p->size, sizeof *values));
        struct rng rng = rng_make(seed, RNG_INIT, 0, (uint32_t)i);
        for (size_t k = 0; k < p->size; k++)
            values[k] = deviation > 0 ? deviation * rng_normal(&rng, k) : -deviation;
        status result = parameters_upload(group, p, values, error);
        free(values);
        TRY(result);
    }
    return OK;
}

static status download_all(const struct clip *clip, const char *path, struct safetensor *tensors, float *values,
                           struct error *error)
{
    const struct parameters *group = clip->parameters;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        TRY(parameters_download(group, p, values + p->offset, error));
        if (not_finite_at(values + p->offset, p->size) < p->size)
            return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is not finite; nothing is written", path, p->name);
        tensors[i] =
            (struct safetensor){.name = p->name, .type = SAFETENSOR_F32, .rank = p->rank, .data = values + p->offset};
        for (int r = 0; r < p->rank; r++)
            tensors[i].shape[r] = p->shape[r];
    }
    return OK;
}

status clip_save(const struct clip *clip, const char *path, struct error *error)
{
    const struct parameters *group = clip->parameters;
    struct safetensor *tensors = calloc(group->count, sizeof *tensors);
    float *values = malloc(array_size(group->values_count, sizeof *values));
    status result = OK;
    if (tensors == NULL || values == NULL)
        result =
            error_set(error, ERROR_MEMORY, "%s: no memory for %zu MiB of weights", path, group->values_count >> 18);
    if (result == OK)
        result = download_all(clip, path, tensors, values, error);
    if (result == OK) {
        struct clip_metadata metadata;
        clip_metadata_fill(&metadata, &(struct clip_config){clip->dimensions.image_heads, clip->dimensions.text_heads,
                                                            clip->activation, clip->pixels});
        result = safetensors_write(path, tensors, group->count, metadata.entries, CLIP_METADATA, error);
    }
    free(values);
    free(tensors);
    return result;
}

status clip_logit_scale(const struct clip *clip, float *exponential, struct error *error)
{
    float logarithm;
    TRY(clip->backend->ops->download(clip->backend, &logarithm, clip->logit_scale.value, sizeof logarithm, error));
    *exponential = expf(logarithm);
    return OK;
}
