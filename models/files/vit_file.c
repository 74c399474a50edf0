/* A ViT's weights from and to safetensors files (models/vit.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "models/files/safetensors.h"
#include "models/files/vit_names.h"
#include "models/files/weights_file.h"

static const char heads_key[] = "image_heads", activation_key[] = "activation", pool_key[] = "pool",
                  groups_key[] = "share_groups", norms_key[] = "share_norms", pixels_key[] = "pixels",
                  epsilon_key[] = "epsilon";
static const char *const pool_names[] = {[POOL_CLASS_TOKEN] = "class_token", [POOL_MEAN_PATCHES] = "mean"};

/* ---- reading ---- */

static const char patches_name[] = "visual.conv1.weight";

struct source {
    struct safetensors *file;
    const char *path;
    enum vit_names names;
    bool experts;      /* as in struct vit_file */
    uint64_t replaced; /* likewise */
};

/* Hugging Face's ViTModel has the names of its ViTForImageClassification without "vit.". */
static const struct safetensor *find(const struct source *source, const char *name)
{
    const struct safetensor *found = safetensors_find(source->file, name);
    return found == NULL && strncmp(name, "vit.", 4) == 0 ? safetensors_find(source->file, name + 4) : found;
}

static bool find_names(struct source *source)
{
    for (source->names = VIT_TIMM; source->names <= VIT_HUGGINGFACE; source->names++) {
        struct vit_tensor patches = vit_tensor_named(source->names, patches_name);
        if (find(source, patches.names[0]) != NULL)
            return true;
    }
    return false;
}

static status open_source(struct source *source, const char *path, struct error *error)
{
    *source = (struct source){.path = path};
    TRY(weights_file_open(&source->file, path, error));
    if (find_names(source))
        return OK;
    size_t count = safetensors_count(source->file);
    status result = error_set(error, ERROR_FORMAT,
                              "%s: expected a vision transformer under the names of timm or Hugging Face's ViT, found "
                              "%zu tensors, the first '%s'",
                              path, count, count > 0 ? safetensors_at(source->file, 0)->name : "");
    safetensors_close(source->file);
    return result;
}

static status find_sized(const struct source *source, const char *own, int rank, const struct safetensor **tensor,
                         struct error *error)
{
    struct vit_tensor known = vit_tensor_named(source->names, own);
    *tensor = find(source, known.names[0]);
    if (*tensor == NULL)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s', from which sizes follow, is missing", source->path,
                         known.names[0]);
    if ((*tensor)->rank != rank || safetensor_elements(*tensor) == 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected %d sizes above zero, found %s", source->path,
                         (*tensor)->name, rank, shape_text((*tensor)->rank, (*tensor)->shape).text);
    return OK;
}

/* One more than the highest block's number. */
static size_t count_blocks(const struct source *source)
{
    const char *prefix = vit_block_prefix(source->names);
    size_t blocks = 0;
    for (size_t i = 0; i < safetensors_count(source->file); i++) {
        const char *name = safetensors_at(source->file, i)->name, *start = prefix;
        if (strncmp(prefix, "vit.", 4) == 0 && strncmp(name, "vit.", 4) != 0)
            start += 4;
        if (strncmp(name, start, strlen(start)) != 0)
            continue;
        size_t block = strtoul(name + strlen(start), NULL, 10);
        if (block < CLIP_BLOCKS_MOST && block >= blocks)
            blocks = block + 1;
    }
    return blocks;
}

/* The first layer of the first expert, whichever block it is in; NULL: the file holds none. Experts have OpenAI's names. */
static const char experts_prefix[] = "visual.transformer.resblocks.";
static const struct safetensor *find_expert(const struct source *source)
{
    for (size_t i = 0; i < safetensors_count(source->file); i++) {
        const struct safetensor *tensor = safetensors_at(source->file, i);
        if (strncmp(tensor->name, experts_prefix, strlen(experts_prefix)) == 0 &&
            strstr(tensor->name, ".adaptmlp_list.0.c_fc.weight") != NULL)
            return tensor;
    }
    return NULL;
}

/* Finds the hidden units of the MLPs, or of the experts in their place. */
static status find_hidden(const struct source *source, size_t *hidden, struct error *error)
{
    static const char first[] = "visual.transformer.resblocks.0.mlp.c_fc.weight";
    const struct safetensor *tensor = find_expert(source);
    if (tensor == NULL || tensor->rank != 2)
        TRY(find_sized(source, first, 2, &tensor, error));
    *hidden = tensor->shape[0];
    return OK;
}

static status infer_sizes(const struct source *source, struct vit_settings *s, struct error *error)
{
    const struct safetensor *patches, *positions;
    size_t hidden;
    struct vit_tensor norm = vit_tensor_named(source->names, "visual.ln_pre.weight");
    TRY(find_sized(source, patches_name, 4, &patches, error));
    TRY(find_sized(source, "visual.positional_embedding", 3, &positions, error));
    TRY(find_hidden(source, &hidden, error));
    size_t grid = 0;
    while ((grid + 1) * (grid + 1) < positions->shape[1])
        grid++;
    if (grid == 0 || grid * grid + 1 != positions->shape[1])
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor '%s': expected a square number of patches and one class token, found %s",
                         source->path, positions->name, shape_text(positions->rank, positions->shape).text);
    *s = (struct vit_settings){.resolution = grid * patches->shape[2],
                               .patch = patches->shape[2],
                               .width = patches->shape[0],
                               .hidden = hidden,
                               .blocks = count_blocks(source),
                               .ln_pre = norm.parts > 0 && find(source, norm.names[0]) != NULL};
    return OK;
}

static status unknown_metadata(const struct source *source, const char *key, const char *value, struct error *error)
{
    return error_set(error, ERROR_FORMAT, "%s: metadata '%s': '%s' is not known", source->path, key, value);
}

static status read_number(const struct source *source, const char *key, size_t *number, struct error *error)
{
    const char *value = safetensors_metadata_value(source->file, key);
    int64_t parsed;
    if (value == NULL)
        return OK;
    if (!parse_integer(value, &parsed) || parsed < 0)
        return unknown_metadata(source, key, value, error);
    *number = (size_t)parsed;
    return OK;
}

static status read_metadata(const struct source *source, struct vit_settings *s, struct error *error)
{
    const char *activation = safetensors_metadata_value(source->file, activation_key),
               *pool = safetensors_metadata_value(source->file, pool_key),
               *norms = safetensors_metadata_value(source->file, norms_key),
               *pixels = safetensors_metadata_value(source->file, pixels_key),
               *epsilon = safetensors_metadata_value(source->file, epsilon_key);
    double read;
    TRY(read_number(source, heads_key, &s->heads, error));
    TRY(read_number(source, groups_key, &s->share_groups, error));
    if (activation != NULL && (s->activation = clip_activation_parse(activation)) == ACTIVATION_NONE)
        return unknown_metadata(source, activation_key, activation, error);
    if (norms != NULL && !parse_boolean(norms, &s->share_norms))
        return unknown_metadata(source, norms_key, norms, error);
    if (pixels != NULL && (s->pixels = pixels_parse(pixels)) == PIXELS_UNSTATED)
        return unknown_metadata(source, pixels_key, pixels, error);
    if (epsilon != NULL && (!parse_real(epsilon, &read) || !(read > 0 && read < 1)))
        return unknown_metadata(source, epsilon_key, epsilon, error);
    if (epsilon != NULL)
        s->epsilon = (float)read;
    if (pool == NULL)
        return OK;
    for (s->pool = POOL_CLASS_TOKEN; s->pool <= POOL_MEAN_PATCHES; s->pool++)
        if (strcmp(pool, pool_names[s->pool]) == 0)
            return OK;
    return unknown_metadata(source, pool_key, pool, error);
}

/* The conventions of the program that a file is from, where it does not state them. */
static status fill_in_conventions(const struct source *source, struct vit_settings *s, struct error *error)
{
    bool clips = safetensors_metadata_value(source->file, pool_key) != NULL || s->ln_pre;
    if (s->epsilon <= 0)
        s->epsilon = clips ? 1e-5f : source->names == VIT_HUGGINGFACE ? 1e-12f : 1e-6f;
    if (s->pixels != PIXELS_UNSTATED)
        return OK;
    TRY(pixels_beside(&s->pixels, source->path, "config.json", error));
    TRY(pixels_beside(&s->pixels, source->path, "preprocessor_config.json", error));
    if (s->pixels == PIXELS_UNSTATED)
        s->pixels = clips ? PIXELS_CLIP : PIXELS_HALF;
    return OK;
}

static status apply_stated(const struct source *source, struct vit_settings *s, const struct vit_stated *stated,
                           struct error *error)
{
    const struct vit_stated none = {.by = ""}, *said = stated != NULL ? stated : &none;
    if (said->heads > 0 && s->heads > 0 && said->heads != s->heads)
        return error_set(error, ERROR_FORMAT, "%s: its metadata states %zu heads, but %s %zu", source->path, s->heads,
                         said->by, said->heads);
    if (said->activation != ACTIVATION_NONE && s->activation != ACTIVATION_NONE && said->activation != s->activation)
        return error_set(error, ERROR_FORMAT, "%s: its metadata states the activation %s, but %s %s", source->path,
                         clip_activation_name(s->activation), said->by, clip_activation_name(said->activation));
    s->heads = s->heads > 0 ? s->heads : said->heads;
    s->activation = s->activation != ACTIVATION_NONE ? s->activation : said->activation;
    if (s->heads == 0 || s->activation == ACTIVATION_NONE)
        return error_set(error, ERROR_FORMAT,
                         "%s: neither its metadata nor the caller states the number of heads and the activation "
                         "(quick_gelu or gelu), which the weights do not show: state them",
                         source->path);
    return OK;
}

/* The tensor's part as the file should have it. */
static status find_part(const struct source *source, const struct vit_tensor *tensor, size_t part,
                        const struct parameter *p, const struct safetensor **found, struct error *error)
{
    size_t shape[SAFETENSORS_RANK] = {0};
    int rank = tensor->ones + p->rank;
    for (int r = 0; r < rank; r++)
        shape[r] = r < tensor->ones ? 1 : p->shape[r - tensor->ones];
    shape[0] /= tensor->parts;
    *found = find(source, tensor->names[part]);
    if (*found == NULL)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is missing; expected %s", source->path,
                         tensor->names[part], shape_text(rank, shape).text);
    if ((*found)->rank != rank || memcmp((*found)->shape, shape, (size_t)rank * sizeof *shape) != 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected shape %s, found %s", source->path,
                         (*found)->name, shape_text(rank, shape).text,
                         shape_text((*found)->rank, (*found)->shape).text);
    return OK;
}

static status read_values(const struct source *source, const struct vit_tensor *tensor, const struct parameter *p,
                          bool *used, float *values, struct error *error)
{
    for (size_t part = 0; part < tensor->parts; part++) {
        const struct safetensor *found;
        size_t n = p->size / tensor->parts;
        TRY(find_part(source, tensor, part, p, &found, error));
        TRY(safetensor_to_floats(found, values + part * n, error));
        TRY(safetensors_expect_finite(source->file, found->name, values + part * n, n, error));
        used[found - safetensors_at(source->file, 0)] = true;
    }
    return OK;
}

static status read_copy(const struct source *source, const struct vit_tensor *tensor, struct parameters *group,
                        const struct parameter *p, const float *values, struct error *error)
{
    float *shared = malloc(array_size(p->size, sizeof *shared));
    if (shared == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to compare '%s'", source->path, tensor->names[0]);
    status result = parameters_download(group, p, shared, error);
    if (result == OK && memcmp(shared, values, p->size * sizeof *shared) != 0)
        result = error_set(error, ERROR_FORMAT,
                           "%s: tensor '%s': expected the values of the block that it shares them with, found others",
                           source->path, tensor->names[0]);
    free(shared);
    return result;
}

/* The blocks without an MLP. */
static uint64_t replaced_blocks(const struct source *source, const struct vit_settings *s)
{
    uint64_t replaced = 0;
    size_t block = 0;
    for (size_t i = 0; i < vit_tensors(s->blocks); i++) {
        struct vit_tensor tensor = vit_tensor_at(s, source->names, i);
        if (strstr(tensor.own, ".mlp.c_fc.weight") == NULL)
            continue;
        replaced |= (uint64_t)(find(source, tensor.names[0]) == NULL) << block++;
    }
    return replaced;
}

static bool is_replaced(const struct source *source, const struct vit_tensor *tensor)
{
    return strstr(tensor->own, ".mlp.") != NULL &&
           source->replaced >> strtoul(tensor->names[0] + strlen(vit_block_prefix(source->names)), NULL, 10) & 1;
}

static status read_tensor(const struct source *source, const struct vit_tensor *tensor, struct parameters *group,
                          bool *used, struct error *error)
{
    const struct parameter *p = parameters_find(group, tensor->own);
    if (p == NULL || is_replaced(source, tensor))
        return OK;
    float *values = malloc(array_size(p->size, sizeof *values));
    if (values == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to read '%s'", source->path, tensor->names[0]);
    status result = read_values(source, tensor, p, used, values, error);
    if (result == OK)
        result = tensor->copy ? read_copy(source, tensor, group, p, values, error)
                              : parameters_upload(group, p, values, error);
    free(values);
    return result;
}

/* Whether another reader uses the tensor (the head, experts) or none: the pooler of Hugging Face's ViTModel. */
static bool is_of_others(const struct source *source, const char *name)
{
    static const char *const starts[] = {"head.", "classifier.", "pooler.", "vit.pooler."};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return source->experts && strncmp(name, experts_prefix, strlen(experts_prefix)) == 0;
}

static status read_group(const struct source *source, const struct vit_settings *s, struct parameters *group,
                         bool *used, struct error *error)
{
    for (size_t i = 0; i < vit_tensors(s->blocks); i++) {
        struct vit_tensor tensor = vit_tensor_at(s, source->names, i);
        TRY(read_tensor(source, &tensor, group, used, error));
    }
    return OK;
}

static status read_vit(const struct source *source, struct clip *vit, struct error *error)
{
    struct vit_settings settings = vit_settings_of(vit);
    bool *used = xcalloc(safetensors_count(source->file), sizeof *used);
    status result = read_group(source, &settings, vit->parameters, used, error);
    for (size_t i = 0; result == OK && i < safetensors_count(source->file); i++) {
        const struct safetensor *tensor = safetensors_at(source->file, i);
        if (!used[i] && !is_of_others(source, tensor->name))
            result = error_set(error, ERROR_FORMAT,
                               "%s: tensor '%s' of shape %s belongs to no vision transformer of %zu blocks with%s a "
                               "norm before them",
                               source->path, tensor->name, shape_text(tensor->rank, tensor->shape).text,
                               settings.blocks, settings.ln_pre ? "" : "out");
    }
    free(used);
    return result;
}

static status read_settings(struct source *source, struct vit_settings *settings, const struct vit_stated *stated,
                            struct error *error)
{
    TRY(infer_sizes(source, settings, error));
    TRY(read_metadata(source, settings, error));
    TRY(fill_in_conventions(source, settings, error));
    source->experts = find_expert(source) != NULL;
    source->replaced = source->experts ? replaced_blocks(source, settings) : 0;
    return apply_stated(source, settings, stated, error);
}

static status look(struct vit_file *found, struct source *source, const struct vit_stated *stated, struct error *error)
{
    struct vit_tensor head = vit_tensor_named(source->names, "head.weight");
    TRY(read_settings(source, &found->settings, stated, error));
    found->states_pool = safetensors_metadata_value(source->file, pool_key) != NULL;
    found->experts = source->experts;
    found->replaced = source->replaced;
    if (find(source, head.names[0]) != NULL) {
        const struct safetensor *weight;
        TRY(find_sized(source, "head.weight", 2, &weight, error));
        found->classes = weight->shape[0];
    }
    return OK;
}

status vit_file_look(struct vit_file *found, bool *is_vit, const char *path, const struct vit_stated *stated,
                     struct error *error)
{
    struct source source = {.path = path};
    *found = (struct vit_file){0};
    TRY(weights_file_open_header(&source.file, path, error));
    *is_vit = find_names(&source);
    status result = *is_vit ? look(found, &source, stated, error) : OK;
    safetensors_close(source.file);
    return result;
}

static status check_experts(const struct source *source, const struct vit_stated *stated, struct error *error)
{
    if (!source->experts || (stated != NULL && stated->experts))
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: has experts in place of MLPs (tensor '%s'); expected a model without them", source->path,
                     find_expert(source)->name);
}

status vit_load(struct clip **vit, struct backend *backend, struct arena *arena, const char *path,
                enum parameters_mode mode, const struct vit_stated *stated, struct error *error)
{
    struct source source;
    struct vit_settings settings;
    *vit = NULL;
    TRY(open_source(&source, path, error));
    status result = read_settings(&source, &settings, stated, error);
    NEXT(result, check_experts(&source, stated, error));
    if (result == OK && (result = vit_create(vit, backend, arena, &settings, mode, error)) != OK)
        error_context(error, "%s", path);
    NEXT(result, read_vit(&source, *vit, error));
    if (result != OK) {
        clip_destroy(*vit);
        *vit = NULL;
    }
    safetensors_close(source.file);
    return result;
}

static status read_head(const struct source *source, struct linear_head **head, struct backend *backend,
                        struct arena *arena, enum parameters_mode mode, struct error *error)
{
    const struct safetensor *weight;
    TRY(find_sized(source, "head.weight", 2, &weight, error));
    TRY(linear_head_create(head, backend, arena, weight->shape[1], weight->shape[0], mode, error));
    bool *used = xcalloc(safetensors_count(source->file), sizeof *used);
    status result = read_group(source, &(struct vit_settings){0}, (*head)->parameters, used, error);
    free(used);
    return result;
}

status vit_load_head(struct linear_head **head, struct backend *backend, struct arena *arena, const char *path,
                     enum parameters_mode mode, struct error *error)
{
    struct source source;
    *head = NULL;
    TRY(open_source(&source, path, error));
    status result = read_head(&source, head, backend, arena, mode, error);
    if (result != OK) {
        linear_head_destroy(*head);
        *head = NULL;
    }
    safetensors_close(source.file);
    return result;
}

/* ---- writing ---- */

static status download_group(const struct parameters *group, float *values, const char *path, struct error *error)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        TRY(parameters_download(group, p, values + p->offset, error));
        if (not_finite_at(values + p->offset, p->size) < p->size)
            return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is not finite; nothing is written", path, p->name);
    }
    return OK;
}

static status add_tensor(struct vit_content *content, const struct vit_tensor *tensor, const struct parameter *p,
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

static status add_group(struct vit_content *content, const struct parameters *group, float *values, size_t count,
                        const char *path, struct error *error)
{
    TRY(download_group(group, values, path, error));
    for (size_t i = 0; i < count; i++) {
        const struct parameter *p = parameters_find(group, content->names[i].own);
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
                        enum vit_names names, const char *path, struct error *error)
{
    struct vit_settings settings = vit_settings_of(vit);
    size_t count = vit_tensors(settings.blocks),
           sizes[2] = {vit->parameters->values_count, head != NULL ? head->parameters->values_count : 1};
    *content = (struct vit_content){
        .names = calloc(count, sizeof *content->names),
        .tensors = calloc(VIT_PARTS * count, sizeof *content->tensors),
        .values = {malloc(array_size(sizes[0], sizeof(float))), malloc(array_size(sizes[1], sizeof(float)))}};
    if (content->names == NULL || content->tensors == NULL || content->values[0] == NULL || content->values[1] == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu MiB of weights", path, sizes[0] >> 18);
    for (size_t i = 0; i < count; i++)
        content->names[i] = vit_tensor_at(&settings, names, i);
    describe(content, &settings);
    TRY(add_group(content, vit->parameters, content->values[0], count, path, error));
    return head != NULL ? add_group(content, head->parameters, content->values[1], count, path, error) : OK;
}

void vit_content_free(struct vit_content *content)
{
    free(content->names);
    free(content->tensors);
    for (size_t i = 0; i < 2; i++)
        free(content->values[i]);
}
