#include "models/vit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/text.h"

static status check_settings(const struct vit_settings *s, struct error *error)
{
    if (s->resolution == 0 || s->patch == 0 || s->resolution % s->patch != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected a resolution that is a multiple of the patch, found %zu and %zu", s->resolution,
                         s->patch);
    if (s->width == 0 || s->width % 8 != 0 || s->hidden == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected a width that is a multiple of 8 and hidden units, found %zu and %zu", s->width,
                         s->hidden);
    if (s->heads == 0 || s->width % s->heads != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected a number of heads that divides the width, found %zu for a width of %zu",
                         s->heads, s->width);
    if (s->blocks == 0 || s->blocks > CLIP_BLOCKS_MOST)
        return error_set(error, ERROR_ARGUMENT, "vit: expected 1 to %d blocks, found %zu", CLIP_BLOCKS_MOST, s->blocks);
    if (s->share_groups > 0 && s->blocks % s->share_groups != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: expected groups of equally many blocks that share weights, found %zu groups of %zu "
                         "blocks",
                         s->share_groups, s->blocks);
    if (s->share_norms && s->share_groups == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "vit: norms are shared by blocks that share their attention and MLP; "
                         "no groups of blocks were given");
    return OK;
}

status vit_create(struct clip **vit, struct backend *backend, struct arena *arena, const struct vit_settings *s,
                  enum parameters_mode mode, struct error *error)
{
    TRY(check_settings(s, error));
    const struct clip_plan plan = {.dimensions = {.resolution = s->resolution,
                                                  .patch = s->patch,
                                                  .image_width = s->width,
                                                  .image_hidden = s->hidden,
                                                  .image_heads = s->heads,
                                                  .image_blocks = s->blocks,
                                                  .patch_bias = !s->ln_pre},
                                   .activation = s->activation,
                                   .pool = s->pool,
                                   .pixels = s->pixels,
                                   .epsilon = s->epsilon,
                                   .run = s->share_groups > 0 ? s->blocks / s->share_groups : 1,
                                   .share_norms = s->share_norms};
    return clip_build(vit, backend, arena, &plan, mode, error);
}

struct vit_settings vit_settings_of(const struct clip *clip)
{
    const struct clip_dimensions *n = &clip->dimensions;
    return (struct vit_settings){.resolution = n->resolution,
                                 .patch = n->patch,
                                 .width = n->image_width,
                                 .hidden = n->image_hidden,
                                 .heads = n->image_heads,
                                 .blocks = n->image_blocks,
                                 .activation = clip->activation,
                                 .ln_pre = clip->ln_pre.gain.value != NULL,
                                 .pool = clip->pool,
                                 .pixels = clip->pixels,
                                 .epsilon = clip->epsilon,
                                 .share_groups = clip->run > 1 ? n->image_blocks / clip->run : 0,
                                 .share_norms = clip->share_norms};
}

static void draw(const struct clip *vit, const struct parameter *p, struct rng rng, float *values)
{
    size_t patch = vit->dimensions.patch;
    float bound = 1.0f / sqrtf((float)(3 * patch * patch)), deviation = VIT_START_DEVIATION;
    bool patches = strstr(p->name, ".conv1.") != NULL, norm = strstr(p->name, ".ln_") != NULL;
    if (text_ends_with(p->name, "class_embedding"))
        deviation = 1e-6f;
    for (size_t i = 0; i < p->size; i++) {
        if (patches)
            values[i] = bound * (2.0f * rng_uniform(&rng, i) - 1.0f);
        else if (norm || text_ends_with(p->name, "bias"))
            values[i] = norm && text_ends_with(p->name, "weight") ? 1.0f : 0.0f;
        else
            values[i] = deviation * rng_normal(&rng, i);
    }
}

bool clip_is_first(const char *name, size_t blocks)
{
    static const char block[] = "visual.transformer.resblocks.";
    if (strncmp(name, block, sizeof block - 1) == 0)
        return strtoul(name + sizeof block - 1, NULL, 10) < blocks;
    return blocks > 0 && strncmp(name, "visual.ln_post", 14) != 0;
}

status clip_check_first(const struct clip *clip, size_t blocks, const char *key, struct error *error)
{
    if (blocks <= clip->dimensions.image_blocks && blocks % clip->run == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected at most the model's %zu blocks, in whole runs of %zu that share weights, found %zu",
                     key, clip->dimensions.image_blocks, clip->run, blocks);
}

status vit_initialize(struct clip *vit, uint64_t seed, struct error *error)
{
    struct parameters *group = vit->parameters;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        OWNED float *values = xmalloc(array_size(p->size, sizeof *values));
        draw(vit, p, rng_make(seed, RNG_INIT, 0, (uint32_t)i), values);
        TRY(parameters_upload(group, p, values, error));
    }
    return OK;
}

/* All settings but pooling and resolution as text, for messages. */
struct words {
    char text[256];
};
static struct words words_of(const struct vit_settings *s)
{
    struct words words;
    snprintf(
        words.text, sizeof words.text,
        "patches of %zu pixels, %zu blocks (%zu groups that share) of width %zu with %zu heads and %zu hidden units, "
        "%s, %s norm before them, ε %g, images normalised as %s",
        s->patch, s->blocks, s->share_groups, s->width, s->heads, s->hidden, clip_activation_name(s->activation),
        s->ln_pre ? "a" : "no", (double)s->epsilon, pixel_norms[s->pixels].name);
    return words;
}

/* Cubic convolution with a = −0.75, as PyTorch's bicubic interpolation without aligned corners. */
static double cubic(double distance)
{
    double t = fabs(distance), a = -0.75;
    return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

void vit_resize_grid(const float *from, size_t old, float *to, size_t side, size_t width)
{
    for (size_t at = 0; at < side * side; at++) {
        size_t line = at / side, place = at % side;
        double y = ((double)line + 0.5) * (double)old / (double)side - 0.5,
               x = ((double)place + 0.5) * (double)old / (double)side - 0.5;
        for (size_t c = 0; c < width; c++) {
            double sum = 0;
            for (double row = floor(y) - 1; row < floor(y) + 3; row++)
                for (double column = floor(x) - 1; column < floor(x) + 3; column++) {
                    size_t v = (size_t)fmin(fmax(row, 0), (double)old - 1),
                           u = (size_t)fmin(fmax(column, 0), (double)old - 1);
                    sum += cubic(y - row) * cubic(x - column) * (double)from[(v * old + u) * width + c];
                }
            to[at * width + c] = (float)sum;
        }
    }
}

/* Positions of another number of patches are interpolated; the class token's stays. */
static status copy_tensor(struct clip *vit, const struct clip *clip, const struct parameter *to, struct error *error)
{
    const struct parameter *from = parameters_find(clip->parameters, to->name);
    OWNED float *values = xmalloc(array_size(from->size + to->size, sizeof *values));
    float *copied = values;
    TRY(parameters_download(clip->parameters, from, values, error));
    if (from->size != to->size) {
        size_t width = to->shape[1];
        copied = values + from->size;
        memcpy(copied, values, width * sizeof *values);
        vit_resize_grid(values + width, clip->dimensions.resolution / clip->dimensions.patch, copied + width,
                        vit->dimensions.resolution / vit->dimensions.patch, width);
    }
    return parameters_upload(vit->parameters, to, copied, error);
}

status vit_copy_image_tower(struct clip *vit, const struct clip *clip, struct error *error)
{
    if (clip->dimensions.pool_hidden > 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "vit: the image tower of a SigLIP pools by attention and has no class token; a ViT with a linear head "
            "needs the weights of a CLIP or a ViT");
    struct vit_settings expected = vit_settings_of(clip), found = vit_settings_of(vit);
    struct words expected_words = words_of(&expected), found_words = words_of(&found);
    if (strcmp(expected_words.text, found_words.text) != 0)
        return error_set(error, ERROR_ARGUMENT, "vit: expected the form of CLIP's image tower, %s; found %s",
                         expected_words.text, found_words.text);
    for (size_t i = 0; i < vit->parameters->count; i++)
        TRY(copy_tensor(vit, clip, &vit->parameters->list[i], error));
    return OK;
}

/* ---- files: reading ---- */

static const char heads_key[] = "image_heads", activation_key[] = "activation", pool_key[] = "pool",
                  groups_key[] = "share_groups", norms_key[] = "share_norms", pixels_key[] = "pixels",
                  epsilon_key[] = "epsilon";
static const char *const pool_names[] = {[POOL_CLASS_TOKEN] = "class_token", [POOL_MEAN_PATCHES] = "mean"};

static status unknown_metadata(const struct clip_file *file, const char *key, const char *value, struct error *error)
{
    return error_set(error, ERROR_FORMAT, "%s: metadata '%s': '%s' is not known", clip_file_path(file), key, value);
}

static status read_number(const struct clip_file *file, const char *key, size_t *number, struct error *error)
{
    const char *value = clip_file_metadata(file, key);
    int64_t parsed;
    if (value == NULL)
        return OK;
    if (!parse_integer(value, &parsed) || parsed < 0)
        return unknown_metadata(file, key, value, error);
    *number = (size_t)parsed;
    return OK;
}

static status read_metadata(const struct clip_file *file, struct vit_settings *s, struct error *error)
{
    const char *activation = clip_file_metadata(file, activation_key), *pool = clip_file_metadata(file, pool_key),
               *norms = clip_file_metadata(file, norms_key), *pixels = clip_file_metadata(file, pixels_key),
               *epsilon = clip_file_metadata(file, epsilon_key);
    double read;
    TRY(read_number(file, heads_key, &s->heads, error));
    TRY(read_number(file, groups_key, &s->share_groups, error));
    if (activation != NULL && (s->activation = clip_activation_parse(activation)) == ACTIVATION_NONE)
        return unknown_metadata(file, activation_key, activation, error);
    if (norms != NULL && !parse_boolean(norms, &s->share_norms))
        return unknown_metadata(file, norms_key, norms, error);
    if (pixels != NULL && (s->pixels = pixels_parse(pixels)) == PIXELS_UNSTATED)
        return unknown_metadata(file, pixels_key, pixels, error);
    if (epsilon != NULL && (!parse_real(epsilon, &read) || !(read > 0 && read < 1)))
        return unknown_metadata(file, epsilon_key, epsilon, error);
    if (epsilon != NULL)
        s->epsilon = (float)read;
    if (pool == NULL)
        return OK;
    for (s->pool = POOL_CLASS_TOKEN; s->pool <= POOL_MEAN_PATCHES; s->pool++)
        if (strcmp(pool, pool_names[s->pool]) == 0)
            return OK;
    return unknown_metadata(file, pool_key, pool, error);
}

/* The conventions of the program that a file is from, where it does not state them. */
static status fill_in_conventions(const struct clip_file *file, struct vit_settings *s, struct error *error)
{
    bool clips = clip_file_metadata(file, pool_key) != NULL || s->ln_pre;
    const char *path = clip_file_path(file);
    double epsilon = clips ? 1e-5 : clip_file_naming(file) == VIT_HUGGINGFACE ? 1e-12 : 1e-6, resample = 0;
    enum pixels pixels = PIXELS_UNSTATED;
    if (s->epsilon > 0 && s->pixels != PIXELS_UNSTATED)
        return OK;
    TRY(pixels_beside(&pixels, path, "config.json", "layer_norm_eps", &epsilon, error));
    TRY(pixels_beside(&pixels, path, "preprocessor_config.json", "resample", &resample, error));
    if (!(epsilon > 0 && epsilon < 1))
        return error_set(error, ERROR_FORMAT,
                         "%s: config.json: layer_norm_eps: expected a number from 0 to 1, found %g", path, epsilon);
    if (s->epsilon <= 0)
        s->epsilon = (float)epsilon;
    if (s->pixels == PIXELS_UNSTATED)
        s->pixels = pixels;
    if (s->pixels == PIXELS_UNSTATED)
        s->pixels = clips ? PIXELS_CLIP : PIXELS_HALF;
    return OK;
}

static status apply_stated(const struct clip_file *file, struct vit_settings *s, const struct vit_stated *stated,
                           struct error *error)
{
    const struct vit_stated none = {.by = ""}, *said = stated != NULL ? stated : &none;
    if (said->heads > 0 && s->heads > 0 && said->heads != s->heads)
        return error_set(error, ERROR_FORMAT, "%s: its metadata states %zu heads, but %s %zu", clip_file_path(file),
                         s->heads, said->by, said->heads);
    if (said->activation != ACTIVATION_NONE && s->activation != ACTIVATION_NONE && said->activation != s->activation)
        return error_set(error, ERROR_FORMAT, "%s: its metadata states the activation %s, but %s %s",
                         clip_file_path(file), clip_activation_name(s->activation), said->by,
                         clip_activation_name(said->activation));
    s->heads = s->heads > 0 ? s->heads : said->heads;
    s->activation = s->activation != ACTIVATION_NONE ? s->activation : said->activation;
    if (s->heads == 0 || s->activation == ACTIVATION_NONE)
        return error_set(error, ERROR_FORMAT,
                         "%s: neither its metadata nor the caller states the number of heads and the activation "
                         "(quick_gelu or gelu), which the weights do not show: state them",
                         clip_file_path(file));
    return OK;
}

static status read_copy(const struct clip_file *file, const struct clip_tensor *tensor, struct parameters *group,
                        const struct parameter *p, const float *values, struct error *error)
{
    OWNED float *shared = malloc(array_size(p->size, sizeof *shared));
    if (shared == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to compare '%s'", clip_file_path(file), tensor->names[0]);
    TRY(parameters_download(group, p, shared, error));
    if (memcmp(shared, values, p->size * sizeof *shared) != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor '%s': expected the values of the block that it shares them with, found others",
                         clip_file_path(file), tensor->names[0]);
    return OK;
}

/* p: the tensor itself, or that of the block with which its block shares it. */
static status read_tensor(const struct clip_file *file, size_t index, bool copy, struct parameters *group,
                          const struct parameter *p, struct error *error)
{
    struct clip_tensor tensor = clip_tensor_at(clip_file_dimensions(file), clip_file_naming(file), index);
    OWNED float *values = malloc(array_size(p->size, sizeof *values));
    if (values == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to read '%s'", clip_file_path(file), tensor.names[0]);
    TRY(clip_file_read(file, index, values, error));
    return copy ? read_copy(file, &tensor, group, p, values, error) : parameters_upload(group, p, values, error);
}

/* The parameter of a tensor of the ViT, which may be another block's; NULL: it is not in this group. */
static const struct parameter *parameter_of(const struct clip *vit, const struct parameters *group,
                                            const struct clip_dimensions *dimensions, size_t index, bool *copy)
{
    struct clip_tensor tensor = clip_tensor_at(dimensions, CLIP_OPENAI, index);
    size_t owner = clip_owner(vit, &tensor);
    *copy = owner != tensor.block;
    if (*copy)
        tensor = clip_tensor_at(dimensions, CLIP_OPENAI, index - CLIP_BLOCK_TENSORS * (tensor.block - owner));
    return parameters_find(group, tensor.openai);
}

static status read_vit(const struct clip_file *file, struct clip *vit, struct error *error)
{
    const struct clip_dimensions *d = clip_file_dimensions(file);
    for (size_t i = 0; i < clip_tensors(d); i++) {
        struct clip_tensor tensor = clip_tensor_at(d, clip_file_naming(file), i);
        bool copy;
        const struct parameter *p = parameter_of(vit, vit->parameters, d, i, &copy);
        if (p != NULL && !clip_file_lacks(file, &tensor))
            TRY(read_tensor(file, i, copy, vit->parameters, p, error));
    }
    return OK;
}

static status read_settings(const struct clip_file *file, struct vit_settings *settings,
                            const struct vit_stated *stated, struct error *error)
{
    const struct clip_dimensions *d = clip_file_dimensions(file);
    *settings = (struct vit_settings){.resolution = d->resolution,
                                      .patch = d->patch,
                                      .width = d->image_width,
                                      .hidden = d->image_hidden,
                                      .blocks = d->image_blocks,
                                      .ln_pre = d->patch_bias == 0};
    TRY(read_metadata(file, settings, error));
    TRY(fill_in_conventions(file, settings, error));
    return apply_stated(file, settings, stated, error);
}

status vit_file_look(struct vit_file *found, bool *is_vit, const char *path, const struct vit_stated *stated,
                     struct error *error)
{
    SCOPED(clip_file_close_at) struct clip_file *file = NULL;
    *found = (struct vit_file){0};
    TRY(clip_file_open_vit(&file, path, WEIGHTS_HEADER, error));
    *is_vit = file != NULL;
    if (!*is_vit)
        return OK;
    TRY(read_settings(file, &found->settings, stated, error));
    found->states_pool = clip_file_metadata(file, pool_key) != NULL;
    found->experts = clip_file_experts(file) != NULL;
    found->replaced = clip_file_replaced(file);
    found->classes = clip_file_dimensions(file)->classes;
    return OK;
}

static status check_experts(const struct clip_file *file, const struct vit_stated *stated, struct error *error)
{
    const char *experts = clip_file_experts(file);
    if (experts == NULL || (stated != NULL && stated->experts))
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: has experts in place of MLPs (tensor '%s'); expected a model without them",
                     clip_file_path(file), experts);
}

status vit_load(struct clip **vit, struct backend *backend, struct arena *arena, const char *path,
                enum parameters_mode mode, const struct vit_stated *stated, struct error *error)
{
    SCOPED(clip_file_close_at) struct clip_file *file = NULL;
    SCOPED(clip_destroy_at) struct clip *made = NULL;
    struct vit_settings settings;
    *vit = NULL;
    TRY(clip_file_open_vit(&file, path, WEIGHTS_WHOLE, error));
    TRY(read_settings(file, &settings, stated, error));
    TRY(check_experts(file, stated, error));
    if (vit_create(&made, backend, arena, &settings, mode, error) != OK)
        return error_context(error, "%s", path);
    TRY(read_vit(file, made, error));
    *vit = TAKE(made);
    return OK;
}

static status read_head(const struct clip_file *file, struct linear_head **head, struct backend *backend,
                        struct arena *arena, enum parameters_mode mode, struct error *error)
{
    const struct clip_dimensions *d = clip_file_dimensions(file);
    const char *name = clip_tensor_named(clip_file_naming(file), false, "head.weight").names[0];
    if (d->classes == 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is missing; expected a linear head for a width of %zu",
                         clip_file_path(file), name, d->image_width);
    TRY(linear_head_create(head, backend, arena, d->image_width, d->classes, mode, error));
    for (size_t i = 0; i < (*head)->parameters->count; i++) {
        const struct parameter *p = &(*head)->parameters->list[i];
        size_t index = clip_tensors(d) - (*head)->parameters->count + i;
        TRY(read_tensor(file, index, false, (*head)->parameters, p, error));
    }
    return OK;
}

status vit_load_head(struct linear_head **head, struct backend *backend, struct arena *arena, const char *path,
                     enum parameters_mode mode, struct error *error)
{
    SCOPED(clip_file_close_at) struct clip_file *file = NULL;
    SCOPED(linear_head_destroy_at) struct linear_head *made = NULL;
    *head = NULL;
    TRY(clip_file_open_vit(&file, path, WEIGHTS_WHOLE, error));
    TRY(read_head(file, &made, backend, arena, mode, error));
    *head = TAKE(made);
    return OK;
}

/* ---- files: writing ---- */

static status add_tensor(struct vit_content *content, const struct clip_tensor *tensor, const struct parameter *p,
                         const float *values, const char *path, struct error *error)
{
    if (tensor->parts == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: Hugging Face's ViT has no norm before its blocks, which this model has; timm's has",
                         path);
    for (size_t part = 0; part < tensor->parts; part++) {
        struct safetensor *out = &content->tensors[content->tensor_count++];
        *out = (struct safetensor){.name = tensor->names[part],
                                   .type = SAFETENSOR_F32,
                                   .rank = tensor->ones + p->rank,
                                   .data = values + p->offset + part * (p->size / tensor->parts)};
        for (int r = 0; r < out->rank; r++)
            out->shape[r] = r < tensor->ones ? 1 : p->shape[r - tensor->ones];
        out->shape[0] /= tensor->parts;
    }
    return OK;
}

static status add_group(struct vit_content *content, const struct clip *vit, const struct parameters *group,
                        const struct clip_dimensions *dimensions, float *values, const char *path, struct error *error)
{
    TRY(parameters_download_all(group, values, path, error));
    for (size_t i = 0; i < clip_tensors(dimensions); i++) {
        bool copy;
        const struct parameter *p = parameter_of(vit, group, dimensions, i, &copy);
        if (p != NULL && group->host_flag[p->first_segment] != CLIP_FLAG_APART)
            TRY(add_tensor(content, &content->names[i], p, values, path, error));
    }
    return OK;
}

/* Hugging Face's loaders require the key "format". */
static void describe(struct vit_content *content, const struct vit_settings *s)
{
    snprintf(content->heads, sizeof content->heads, "%zu", s->heads);
    snprintf(content->groups, sizeof content->groups, "%zu", s->share_groups);
    snprintf(content->epsilon, sizeof content->epsilon, "%.9g", (double)s->epsilon);
    const struct safetensors_metadata metadata[VIT_METADATA] = {
        {"format", "pt"},
        {heads_key, content->heads},
        {activation_key, clip_activation_name(s->activation)},
        {pool_key, pool_names[s->pool]},
        {groups_key, content->groups},
        {norms_key, s->share_norms ? "true" : "false"},
        {pixels_key, pixel_norms[s->pixels].name},
        {epsilon_key, content->epsilon},
    };
    memcpy(content->metadata, metadata, sizeof metadata);
}

status vit_content_take(struct vit_content *content, const struct clip *vit, const struct linear_head *head,
                        enum clip_naming naming, const char *path, struct error *error)
{
    struct vit_settings settings = vit_settings_of(vit);
    struct clip_dimensions dimensions = vit->dimensions;
    dimensions.classes = head != NULL ? head->linear.out : 0;
    size_t count = clip_tensors(&dimensions),
           sizes[2] = {vit->parameters->values_count, head != NULL ? head->parameters->values_count : 1};
    *content = (struct vit_content){
        .names = calloc(count, sizeof *content->names),
        .tensors = calloc(CLIP_SOURCES * count, sizeof *content->tensors),
        .values = {malloc(array_size(sizes[0], sizeof(float))), malloc(array_size(sizes[1], sizeof(float)))}};
    if (content->names == NULL || content->tensors == NULL || content->values[0] == NULL || content->values[1] == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu MiB of weights", path, sizes[0] >> 18);
    for (size_t i = 0; i < count; i++)
        content->names[i] = clip_tensor_at(&dimensions, naming, i);
    describe(content, &settings);
    TRY(add_group(content, vit, vit->parameters, &dimensions, content->values[0], path, error));
    return head != NULL ? add_group(content, vit, head->parameters, &dimensions, content->values[1], path, error) : OK;
}

void vit_content_free(struct vit_content *content)
{
    free(content->names);
    free(content->tensors);
    for (size_t i = 0; i < 2; i++)
        free(content->values[i]);
}
