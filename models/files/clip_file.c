#include "models/files/clip_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "core/text.h"
#include "models/files/safetensors.h"
#include "models/files/weights_file.h"

enum { MOST_BLOCKS = 1000 };

/* A tensor of the model and where the file keeps it. */
struct source {
    struct clip_tensor tensor;
    const struct safetensor *parts[CLIP_SOURCES];
};

struct clip_file {
    struct safetensors *file;
    const char *prefix; /* prefix that a wrapper added to every name */
    enum clip_naming naming;
    struct clip_dimensions dimensions;
    size_t count;
    struct source *sources;
};

static const struct safetensor *find(const struct clip_file *file, const char *name)
{
    char whole[CLIP_NAME + 32];
    snprintf(whole, sizeof whole, "%s%s", file->prefix, name);
    return safetensors_find(file->file, whole);
}

static const char *path_of(const struct clip_file *file)
{
    return safetensors_path(file->file);
}

/* ---- naming ---- */

static status refuse_others(const struct clip_file *file, struct error *error)
{
    for (size_t rank = 0; rank < CLIP_OTHER_RANKS; rank++)
        for (size_t i = 0; i < safetensors_count(file->file); i++) {
            const char *name = safetensors_at(file->file, i)->name, *model = clip_other_model(name, rank);
            if (model != NULL)
                return error_set(error, ERROR_FORMAT,
                                 "%s: tensor '%s' shows %s; expected a CLIP of two transformers, such as OpenAI's "
                                 "ViT-B/32",
                                 path_of(file), name, model);
        }
    return OK;
}

/* The name of the file's tensor, or of its first part; of a CLIP or, with pool_hidden, a SigLIP. */
static struct clip_tensor named(const struct clip_file *file, const char *openai)
{
    const struct clip_dimensions kind = {.patch = 1,
                                         .pool_hidden = file->dimensions.pool_hidden}; /* names need no more */
    return clip_tensor_named(&kind, file->naming, openai);
}

static const struct safetensor *find_own(const struct clip_file *file, const char *openai)
{
    struct clip_tensor tensor = named(file, openai);
    return find(file, tensor.names[0]);
}

/* Finds the prefix, the naming and whether it is a SigLIP, which alone has a query that pools. */
static bool detect_naming(struct clip_file *file)
{
    static const char *const prefixes[] = {"", "module.", "model.", "module.model."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (file->naming = CLIP_OPENAI; file->naming < CLIP_NAMINGS; file->naming++) {
            file->prefix = prefixes[i];
            file->dimensions.pool_hidden = 1; /* until its size is read */
            if (find_own(file, "visual.conv1.weight") == NULL)
                continue;
            if (find_own(file, "visual.attn_pool.probe") == NULL)
                file->dimensions.pool_hidden = 0;
            return file->naming != CLIP_OPEN_CLIP || file->dimensions.pool_hidden > 0;
        }
    return false;
}

static status expect_naming(struct clip_file *file, struct error *error)
{
    size_t count = safetensors_count(file->file);
    bool found = detect_naming(file);
    if (!found || file->dimensions.pool_hidden == 0)
        TRY(refuse_others(file, error));
    if (found)
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: expected the weights of a CLIP with a vision transformer, but there is neither "
                     "'visual.conv1.weight' (OpenAI's name) nor 'vision_model.embeddings.patch_embedding.weight' "
                     "(Hugging Face's); found %zu tensors, the first '%s'",
                     path_of(file), count, count > 0 ? safetensors_at(file->file, 0)->name : "");
}

/* One more than the highest block's number, so that a block left out is a missing tensor, not an unknown one. */
static size_t count_blocks(const struct clip_file *file, enum clip_tower tower)
{
    size_t blocks = 0, tensors = safetensors_count(file->file), skip = strlen(file->prefix);
    for (size_t i = 0; i < tensors; i++) {
        const char *name = safetensors_at(file->file, i)->name;
        size_t block;
        if (strncmp(name, file->prefix, skip) == 0 && clip_block_of(name + skip, file->naming, tower, &block) &&
            block < MOST_BLOCKS && block >= blocks)
            blocks = block + 1;
    }
    return blocks;
}

/* ---- what is missing ---- */

static bool is_name_of_clip(const struct clip_file *file, const struct clip_dimensions *dimensions, const char *name)
{
    for (size_t i = 0; i < clip_tensors(dimensions); i++) {
        struct clip_tensor tensor = clip_tensor_at(dimensions, file->naming, i);
        for (size_t part = 0; part < tensor.parts; part++)
            if (strcmp(name, tensor.names[part]) == 0)
                return true;
    }
    return false;
}

/* A tensor of the file that may be the missing one under an unknown name; NULL: none. */
static const char *find_misnamed(const struct clip_file *file, const char *name)
{
    struct clip_dimensions names = {.patch = 1, .resolution = 1, .pool_hidden = file->dimensions.pool_hidden};
    names.image_blocks = count_blocks(file, CLIP_IMAGE);
    names.text_blocks = count_blocks(file, CLIP_TEXT);
    size_t skip = strlen(file->prefix);
    for (size_t i = 0; i < safetensors_count(file->file); i++) {
        const char *whole = safetensors_at(file->file, i)->name, *candidate = whole;
        if (strncmp(whole, file->prefix, skip) == 0)
            candidate += skip;
        if (nearest_word(name, &candidate, 1) != NULL && !is_name_of_clip(file, &names, candidate))
            return whole;
    }
    return NULL;
}

/* expected: its shape, as far as it is known. */
static status missing(const struct clip_file *file, const char *name, const char *expected, struct error *error)
{
    const char *misnamed = find_misnamed(file, name);
    if (misnamed != NULL)
        return error_set(
            error, ERROR_FORMAT,
            "%s: tensor '%s%s' is missing; expected %s, found '%s', which is no name of a CLIP's; rename it",
            path_of(file), file->prefix, name, expected, misnamed);
    return error_set(error, ERROR_FORMAT,
                     "%s: tensor '%s%s' is missing; expected %s, found %zu others; convert or fetch the file again, "
                     "or name the index (.json) if this is one of several shards",
                     path_of(file), file->prefix, name, expected, safetensors_count(file->file));
}

/* ---- dimensions ---- */

/* The sizes but for leading ones, with which timm and transformers pad some shapes of SigLIP; NULL: not of this rank. */
static const size_t *sizes_of(const struct clip_file *file, const struct safetensor *tensor, int rank)
{
    int more = tensor->rank - rank;
    if (more < 0 || (more > 0 && file->dimensions.pool_hidden == 0))
        return NULL;
    for (int r = 0; r < more; r++)
        if (tensor->shape[r] != 1)
            return NULL;
    return tensor->shape + more;
}

/* Finds a tensor from which dimensions are read: it must have this rank and no empty side. */
static status find_sized(const struct clip_file *file, const char *openai, int rank, const size_t **sizes,
                         struct error *error)
{
    struct clip_tensor tensor = named(file, openai);
    const char *name = tensor.names[0];
    const struct safetensor *found = find(file, name);
    if (found == NULL)
        return missing(file, name, "its sizes, from which the model's follow", error);
    *sizes = sizes_of(file, found, rank);
    if (*sizes == NULL || safetensor_elements(found) == 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected %d sizes above zero, found %s", path_of(file),
                         found->name, rank, shape_text(found->rank, found->shape).text);
    return OK;
}

/* The side of the grid of patches. */
static status infer_grid(const struct clip_file *file, size_t positions, size_t *grid, struct error *error)
{
    bool siglip = file->dimensions.pool_hidden > 0;
    *grid = 0;
    while ((*grid + 1) * (*grid + 1) + !siglip <= positions)
        ++*grid;
    if (*grid > 0 && *grid * *grid + !siglip == positions)
        return OK;
    struct clip_tensor tensor = named(file, "visual.positional_embedding");
    const struct safetensor *found = find(file, tensor.names[0]);
    return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected a square number of patches%s, found %s",
                     path_of(file), found->name, siglip ? "" : " and one class token",
                     shape_text(found->rank, found->shape).text);
}

static status infer_image(struct clip_file *file, struct error *error)
{
    struct clip_dimensions *d = &file->dimensions;
    const size_t *patches, *positions, *projection = NULL, *pool = NULL;
    size_t grid;
    const struct safetensor *flat = find_own(file, "visual.conv1.weight");
    if (d->pool_hidden > 0 && flat->rank == 2)
        return error_set(
            error, ERROR_FORMAT,
            "%s: tensor '%s' of shape %s shows a SigLIP 2 NaFlex, for images of any ratio; expected one of fixed "
            "resolution, such as siglip2-base-patch16-224",
            path_of(file), flat->name, shape_text(flat->rank, flat->shape).text);
    TRY(find_sized(file, "visual.conv1.weight", 4, &patches, error));
    TRY(find_sized(file, "visual.positional_embedding", 2, &positions, error));
    if (d->pool_hidden == 0)
        TRY(find_sized(file, "visual.proj", 2, &projection, error));
    else
        TRY(find_sized(file, "visual.attn_pool.mlp.c_fc.weight", 2, &pool, error));
    TRY(infer_grid(file, positions[0], &grid, error));
    d->image_width = patches[0];
    d->patch = patches[2];
    d->embed = projection != NULL ? projection[file->naming == CLIP_OPENAI ? 1 : 0] : d->image_width;
    d->pool_hidden = pool != NULL ? pool[0] : 0;
    d->resolution = grid * d->patch;
    d->image_blocks = count_blocks(file, CLIP_IMAGE);
    return OK;
}

static status infer_text(struct clip_file *file, struct error *error)
{
    struct clip_dimensions *d = &file->dimensions;
    const size_t *tokens, *positions;
    TRY(find_sized(file, "token_embedding.weight", 2, &tokens, error));
    TRY(find_sized(file, "positional_embedding", 2, &positions, error));
    d->vocabulary = tokens[0];
    d->text_width = tokens[1];
    d->context = positions[0];
    d->text_blocks = count_blocks(file, CLIP_TEXT);
    return OK;
}

static status check_dimensions(const struct clip_file *file, struct error *error)
{
    const struct clip_dimensions *d = &file->dimensions;
    if (d->image_width % 8 != 0 || d->text_width % 8 != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected widths that are multiples of 8, found %zu (image) and %zu (text)", path_of(file),
                         d->image_width, d->text_width);
    if (d->image_blocks == 0 || d->text_blocks == 0)
        return error_set(error, ERROR_FORMAT, "%s: expected blocks in both towers, found %zu (image) and %zu (text)",
                         path_of(file), d->image_blocks, d->text_blocks);
    return OK;
}

static status infer_hidden(struct clip_file *file, struct error *error)
{
    const size_t *image, *text;
    TRY(find_sized(file, "visual.transformer.resblocks.0.mlp.c_fc.weight", 2, &image, error));
    TRY(find_sized(file, "transformer.resblocks.0.mlp.c_fc.weight", 2, &text, error));
    file->dimensions.image_hidden = image[0];
    file->dimensions.text_hidden = text[0];
    return OK;
}

/* ---- the tensors ---- */

/* The shape of one part as the file should have it. */
static void part_shape(const struct clip_tensor *tensor, size_t part, size_t shape[CLIP_RANK])
{
    memcpy(shape, tensor->shape, sizeof tensor->shape);
    if (tensor->parts > 1)
        shape[0] = tensor->rows[part];
    if (tensor->transposed) {
        shape[0] = tensor->shape[1];
        shape[1] = tensor->shape[0];
    }
}

static bool same_shape(const struct clip_file *file, const struct safetensor *tensor, int rank, const size_t *shape)
{
    const size_t *sizes = sizes_of(file, tensor, rank);
    return sizes != NULL && (rank == 0 || memcmp(sizes, shape, (size_t)rank * sizeof *shape) == 0);
}

static bool is_real(enum safetensor_type type)
{
    return type == SAFETENSOR_F32 || type == SAFETENSOR_F16 || type == SAFETENSOR_BF16 || type == SAFETENSOR_F64;
}

static status resolve_part(const struct clip_file *file, struct source *source, size_t part, struct error *error)
{
    const struct clip_tensor *tensor = &source->tensor;
    const char *name = tensor->names[part];
    size_t shape[CLIP_RANK];
    part_shape(tensor, part, shape);
    const struct safetensor *found = find(file, name);
    if (found == NULL)
        return missing(file, name, shape_text(tensor->rank, shape).text, error);
    if (!same_shape(file, found, tensor->rank, shape))
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected shape %s, found %s", path_of(file),
                         found->name, shape_text(tensor->rank, shape).text, shape_text(found->rank, found->shape).text);
    if (!is_real(found->type))
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected F32, F16, BF16 or F64, found %s",
                         path_of(file), found->name, safetensor_type_name(found->type));
    source->parts[part] = found;
    return OK;
}

static status resolve_all(struct clip_file *file, bool *used, struct error *error)
{
    for (size_t i = 0; i < file->count; i++) {
        struct source *source = &file->sources[i];
        source->tensor = clip_tensor_at(&file->dimensions, file->naming, i);
        for (size_t part = 0; part < source->tensor.parts; part++) {
            TRY(resolve_part(file, source, part, error));
            used[source->parts[part] - safetensors_at(file->file, 0)] = true;
        }
    }
    return OK;
}

static status check_unknown(const struct clip_file *file, const bool *used, struct error *error)
{
    static const char *const owners[CLIP_NAMINGS] = {"OpenAI's", "Hugging Face's", "open_clip's"};
    size_t skip = strlen(file->prefix);
    for (size_t i = 0; i < safetensors_count(file->file); i++) {
        const struct safetensor *tensor = safetensors_at(file->file, i);
        bool prefixed = strncmp(tensor->name, file->prefix, skip) == 0;
        if (!used[i] && !clip_name_is_harmless(tensor->name + (prefixed ? skip : 0)))
            return error_set(error, ERROR_FORMAT,
                             "%s: tensor '%s' of shape %s belongs to no %s with %zu image and %zu text blocks under "
                             "%s names",
                             path_of(file), tensor->name, shape_text(tensor->rank, tensor->shape).text,
                             file->dimensions.pool_hidden > 0 ? "SigLIP" : "CLIP", file->dimensions.image_blocks,
                             file->dimensions.text_blocks, owners[file->naming]);
    }
    return OK;
}

static status resolve(struct clip_file *file, struct error *error)
{
    TRY(expect_naming(file, error));
    TRY(infer_image(file, error));
    TRY(infer_text(file, error));
    TRY(check_dimensions(file, error));
    TRY(infer_hidden(file, error));
    file->count = clip_tensors(&file->dimensions);
    file->sources = xcalloc(file->count, sizeof *file->sources);
    bool *used = xcalloc(safetensors_count(file->file), sizeof *used);
    status result = resolve_all(file, used, error);
    NEXT(result, check_unknown(file, used, error));
    free(used);
    return result;
}

/* Takes ownership of tensors, also on failure. */
static status open_tensors(struct clip_file **file, struct safetensors *tensors, struct error *error)
{
    struct clip_file *opened = xcalloc(1, sizeof *opened);
    opened->file = tensors;
    status result = resolve(opened, error);
    if (result != OK) {
        clip_file_close(opened);
        return result;
    }
    *file = opened;
    return OK;
}

status clip_file_open(struct clip_file **file, const char *path, struct error *error)
{
    struct safetensors *tensors;
    *file = NULL;
    TRY(weights_file_open(&tensors, path, error));
    return open_tensors(file, tensors, error);
}

status clip_file_open_header(struct clip_file **file, const char *path, struct error *error)
{
    struct safetensors *tensors;
    *file = NULL;
    TRY(weights_file_open_header(&tensors, path, error));
    return open_tensors(file, tensors, error);
}

void clip_file_close(struct clip_file *file)
{
    if (file == NULL)
        return;
    safetensors_close(file->file);
    free(file->sources);
    free(file);
}

const struct clip_dimensions *clip_file_dimensions(const struct clip_file *file)
{
    return &file->dimensions;
}

const char *clip_file_path(const struct clip_file *file)
{
    return path_of(file);
}

const char *clip_file_metadata(const struct clip_file *file, const char *key)
{
    return safetensors_metadata_value(file->file, key);
}

bool clip_file_is_openai_archive(const struct clip_file *file)
{
    return file->naming == CLIP_OPENAI && find(file, "input_resolution") != NULL &&
           find(file, "context_length") != NULL && find(file, "vocab_size") != NULL;
}

/* ---- reading ---- */

/* values [rows, columns] from a tensor of the file, [columns, rows]. */
static status read_transposed(const struct safetensor *part, float *values, struct error *error)
{
    size_t rows = part->shape[1], columns = part->shape[0];
    float *original = malloc(array_size(rows * columns, sizeof *original));
    if (original == NULL)
        return error_set(error, ERROR_MEMORY, "tensor '%s': no memory to transpose it", part->name);
    status result = safetensor_to_floats(part, original, error);
    for (size_t i = 0; result == OK && i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            values[i * columns + j] = original[j * rows + i];
    free(original);
    return result;
}

static status read_source(const struct source *source, float *values, struct error *error)
{
    if (source->tensor.transposed)
        return read_transposed(source->parts[0], values, error);
    for (size_t part = 0; part < source->tensor.parts; part++) {
        TRY(safetensor_to_floats(source->parts[part], values, error));
        values += safetensor_elements(source->parts[part]);
    }
    return OK;
}

static status check_finite(const struct clip_file *file, const struct source *source, const float *values,
                           struct error *error)
{
    for (size_t part = 0; part < source->tensor.parts; part++) {
        size_t n = safetensor_elements(source->parts[part]);
        TRY(safetensors_expect_finite(file->file, source->parts[part]->name, values, n, error));
        values += n;
    }
    return OK;
}

status clip_file_read(const struct clip_file *file, const char *name, int rank, const size_t *shape, float *values,
                      struct error *error)
{
    const struct source *source = NULL;
    for (size_t i = 0; source == NULL && i < file->count; i++)
        if (strcmp(file->sources[i].tensor.openai, name) == 0)
            source = &file->sources[i];
    if (source == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: a CLIP of this depth has no tensor '%s'", path_of(file), name);
    const struct clip_tensor *tensor = &source->tensor;
    if (tensor->rank != rank || (rank > 0 && memcmp(tensor->shape, shape, (size_t)rank * sizeof *shape) != 0))
        return error_set(error, ERROR_ARGUMENT, "%s: tensor '%s': expected shape %s, found %s", path_of(file), name,
                         shape_text(rank, shape).text, shape_text(tensor->rank, tensor->shape).text);
    TRY(read_source(source, values, error));
    return check_finite(file, source, values, error);
}
