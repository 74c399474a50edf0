#include "models/files/clip_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "models/clip.h"
#include "models/files/safetensors.h"
#include "models/files/weights_file.h"

enum { MOST_BLOCKS = 1000 };

/* Experts have OpenAI's names in any file. */
static const char experts_prefix[] = "visual.transformer.resblocks.";

struct clip_file {
    struct safetensors *file;
    enum clip_naming naming;
    struct clip_dimensions dimensions;
    const struct safetensor *experts; /* a ViT's first one, in whichever block it is; NULL: none */
    uint64_t replaced;
};

/* transformers' ViTModel has the names of its ViTForImageClassification without "vit.". */
static const struct safetensor *find(const struct clip_file *file, const char *name)
{
    const struct safetensor *found = safetensors_find(file->file, name);
    bool may_lack = file->naming == VIT_HUGGINGFACE && strncmp(name, "vit.", 4) == 0;
    return found == NULL && may_lack ? safetensors_find(file->file, name + 4) : found;
}

static bool is_vit(const struct clip_file *file)
{
    return file->naming >= VIT_TIMM;
}

static const char *model_of(const struct clip_file *file)
{
    return is_vit(file) ? "ViT" : file->dimensions.pool_hidden > 0 ? "SigLIP" : "CLIP";
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

/* The tensor as the file should name it; of the first block. */
static struct clip_tensor named(const struct clip_file *file, const char *openai)
{
    return clip_tensor_named(file->naming, file->dimensions.pool_hidden > 0, openai);
}

static const struct safetensor *find_own(const struct clip_file *file, const char *openai)
{
    struct clip_tensor tensor = named(file, openai);
    return tensor.parts > 0 ? find(file, tensor.names[0]) : NULL;
}

/* Finds the naming and whether it is a SigLIP, which alone has a query that pools. */
static bool detect_naming(struct clip_file *file, bool vit)
{
    enum clip_naming first = vit ? VIT_TIMM : CLIP_OPENAI, end = vit ? CLIP_NAMINGS : VIT_TIMM;
    for (file->naming = first; file->naming < end; file->naming++) {
        file->dimensions.pool_hidden = !vit; /* until its size is read */
        if (find_own(file, "visual.conv1.weight") == NULL)
            continue;
        if (find_own(file, "visual.attn_pool.probe") == NULL)
            file->dimensions.pool_hidden = 0;
        return file->naming != CLIP_OPEN_CLIP || file->dimensions.pool_hidden > 0;
    }
    return false;
}

static status no_naming(const struct clip_file *file, bool vit, struct error *error)
{
    size_t count = safetensors_count(file->file);
    return error_set(error, ERROR_FORMAT, "%s: expected %s; found %zu tensors, the first '%s'", path_of(file),
                     vit ? "a vision transformer under the names of timm or Hugging Face's ViT"
                         : "the weights of a CLIP with a vision transformer, but there is neither "
                           "'visual.conv1.weight' (OpenAI's name) nor "
                           "'vision_model.embeddings.patch_embedding.weight' (Hugging Face's)",
                     count, count > 0 ? safetensors_at(file->file, 0)->name : "");
}

/* One more than the highest block's number, so that a block left out is a missing tensor, not an unknown one. */
static size_t count_blocks(const struct clip_file *file, enum tower tower)
{
    size_t blocks = 0, tensors = safetensors_count(file->file);
    for (size_t i = 0; i < tensors; i++) {
        const char *name = safetensors_at(file->file, i)->name;
        size_t block;
        if (clip_block_of(name, file->naming, tower, &block) && block < MOST_BLOCKS && block >= blocks)
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
    struct clip_dimensions names = {
        .patch = 1, .embed = 1, .pool_hidden = file->dimensions.pool_hidden, .patch_bias = file->dimensions.patch_bias};
    names.image_blocks = count_blocks(file, TOWER_IMAGE);
    names.text_blocks = count_blocks(file, TOWER_TEXT);
    for (size_t i = 0; i < safetensors_count(file->file); i++) {
        const char *candidate = safetensors_at(file->file, i)->name;
        if (nearest_word(name, &candidate, 1) != NULL && !is_name_of_clip(file, &names, candidate))
            return candidate;
    }
    return NULL;
}

/* expected: its shape, as far as it is known. */
static status missing(const struct clip_file *file, const char *name, const char *expected, struct error *error)
{
    const char *misnamed = find_misnamed(file, name);
    if (misnamed != NULL)
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor '%s' is missing; expected %s, found '%s', which is no name of a %s's; rename it",
                         path_of(file), name, expected, misnamed, model_of(file));
    return error_set(error, ERROR_FORMAT,
                     "%s: tensor '%s' is missing; expected %s, found %zu others; convert or fetch the file again, "
                     "or name the index (.json) if this is one of several shards",
                     path_of(file), name, expected, safetensors_count(file->file));
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

/* Finds a tensor from which dimensions are read: it must have its rank and no empty side. */
static status find_sized(const struct clip_file *file, const char *openai, const size_t **sizes, struct error *error)
{
    struct clip_tensor tensor = named(file, openai);
    const char *name = tensor.names[0];
    const struct safetensor *found = find(file, name);
    if (found == NULL)
        return missing(file, name, "its sizes, from which the model's follow", error);
    *sizes = sizes_of(file, found, tensor.ones + tensor.rank);
    if (*sizes == NULL || safetensor_elements(found) == 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected %d sizes above zero, found %s", path_of(file),
                         found->name, tensor.ones + tensor.rank, shape_text(found->rank, found->shape).text);
    *sizes += tensor.ones;
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
    const struct safetensor *found = find_own(file, "visual.positional_embedding");
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
    TRY(find_sized(file, "visual.conv1.weight", &patches, error));
    TRY(find_sized(file, "visual.positional_embedding", &positions, error));
    if (d->pool_hidden > 0)
        TRY(find_sized(file, "visual.attn_pool.mlp.c_fc.weight", &pool, error));
    else if (!is_vit(file))
        TRY(find_sized(file, "visual.proj", &projection, error));
    TRY(infer_grid(file, positions[0], &grid, error));
    d->image_width = patches[0];
    d->patch = patches[2];
    d->embed = projection != NULL ? projection[file->naming == CLIP_OPENAI ? 1 : 0] : pool != NULL ? patches[0] : 0;
    d->pool_hidden = pool != NULL ? pool[0] : 0;
    d->resolution = grid * d->patch;
    d->image_blocks = count_blocks(file, TOWER_IMAGE);
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

static const char image_hidden[] = "visual.transformer.resblocks.0.mlp.c_fc.weight";

static status infer_text(struct clip_file *file, struct error *error)
{
    struct clip_dimensions *d = &file->dimensions;
    const size_t *tokens, *positions, *image, *text;
    TRY(find_sized(file, "token_embedding.weight", &tokens, error));
    TRY(find_sized(file, "positional_embedding", &positions, error));
    d->vocabulary = tokens[0];
    d->text_width = tokens[1];
    d->context = positions[0];
    d->text_blocks = count_blocks(file, TOWER_TEXT);
    TRY(check_dimensions(file, error));
    TRY(find_sized(file, image_hidden, &image, error));
    TRY(find_sized(file, "transformer.resblocks.0.mlp.c_fc.weight", &text, error));
    d->image_hidden = image[0];
    d->text_hidden = text[0];
    return OK;
}

/* The blocks without an MLP. */
static uint64_t replaced_blocks(const struct clip_file *file)
{
    uint64_t replaced = 0;
    for (size_t i = 0; i < clip_tensors(&file->dimensions); i++) {
        struct clip_tensor tensor = clip_tensor_at(&file->dimensions, file->naming, i);
        if (tensor.block < CLIP_BLOCKS_MOST && strstr(tensor.openai, ".mlp.c_fc.weight") != NULL)
            replaced |= (uint64_t)(find(file, tensor.names[0]) == NULL) << tensor.block;
    }
    return replaced;
}

static const struct safetensor *find_experts(const struct clip_file *file)
{
    for (size_t i = 0; i < safetensors_count(file->file); i++) {
        const struct safetensor *tensor = safetensors_at(file->file, i);
        if (strncmp(tensor->name, experts_prefix, strlen(experts_prefix)) == 0 &&
            strstr(tensor->name, ".adaptmlp_list.0.c_fc.weight") != NULL)
            return tensor;
    }
    return NULL;
}

/* What a ViT has, or has otherwise: the norm before its blocks, hidden units of the MLPs or of the experts in their place, a head. */
static status infer_vit(struct clip_file *file, struct error *error)
{
    struct clip_dimensions *d = &file->dimensions;
    const size_t *hidden, *head = NULL;
    file->experts = find_experts(file);
    if (file->experts != NULL && file->experts->rank == 2)
        hidden = file->experts->shape;
    else
        TRY(find_sized(file, image_hidden, &hidden, error));
    if (find_own(file, "head.weight") != NULL)
        TRY(find_sized(file, "head.weight", &head, error));
    d->patch_bias = find_own(file, "visual.ln_pre.weight") == NULL;
    d->image_hidden = hidden[0];
    d->classes = head != NULL ? head[0] : 0;
    file->replaced = file->experts != NULL ? replaced_blocks(file) : 0;
    return OK;
}

/* ---- the tensors ---- */

/* The shape of one part as the file should have it; returns its rank. */
static int part_shape(const struct clip_tensor *tensor, size_t part, size_t shape[CLIP_RANK])
{
    for (int r = 0; r < tensor->ones; r++)
        shape[r] = 1;
    for (int r = 0; r < tensor->rank; r++)
        shape[tensor->ones + r] = tensor->shape[tensor->transposed ? 1 - r : r];
    if (tensor->parts > 1)
        shape[0] = tensor->rows[part];
    return tensor->ones + tensor->rank;
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

static status find_part(const struct clip_file *file, const struct clip_tensor *tensor, size_t part,
                        const struct safetensor **found, struct error *error)
{
    size_t shape[CLIP_RANK];
    int rank = part_shape(tensor, part, shape);
    *found = find(file, tensor->names[part]);
    if (*found == NULL)
        return missing(file, tensor->names[part], shape_text(rank, shape).text, error);
    if (!same_shape(file, *found, rank, shape))
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected shape %s, found %s", path_of(file),
                         (*found)->name, shape_text(rank, shape).text,
                         shape_text((*found)->rank, (*found)->shape).text);
    if (!is_real((*found)->type))
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected F32, F16, BF16 or F64, found %s",
                         path_of(file), (*found)->name, safetensor_type_name((*found)->type));
    return OK;
}

bool clip_file_lacks(const struct clip_file *file, const struct clip_tensor *tensor)
{
    return tensor->block < CLIP_BLOCKS_MOST && strstr(tensor->openai, ".mlp.") != NULL &&
           (file->replaced >> tensor->block & 1) != 0;
}

/* All tensors but a head's are there. */
static status check_all(const struct clip_file *file, bool *used, struct error *error)
{
    struct clip_dimensions model = file->dimensions;
    model.classes = 0;
    for (size_t i = 0; i < clip_tensors(&model); i++) {
        struct clip_tensor tensor = clip_tensor_at(&model, file->naming, i);
        for (size_t part = 0; part < tensor.parts && !clip_file_lacks(file, &tensor); part++) {
            const struct safetensor *found;
            TRY(find_part(file, &tensor, part, &found, error));
            used[found - safetensors_at(file->file, 0)] = true;
        }
    }
    return OK;
}

static bool is_harmless(const struct clip_file *file, const char *name)
{
    return clip_name_is_harmless(name, file->naming) ||
           (file->experts != NULL && strncmp(name, experts_prefix, strlen(experts_prefix)) == 0);
}

static status check_unknown(const struct clip_file *file, const bool *used, struct error *error)
{
    static const char *const owners[CLIP_NAMINGS] = {"OpenAI's", "Hugging Face's", "open_clip's", "timm's",
                                                     "Hugging Face's"};
    const struct clip_dimensions *d = &file->dimensions;
    for (size_t i = 0; i < safetensors_count(file->file); i++) {
        const struct safetensor *tensor = safetensors_at(file->file, i);
        if (!used[i] && !is_harmless(file, tensor->name))
            return error_set(error, ERROR_FORMAT,
                             "%s: tensor '%s' of shape %s belongs to no %s with %zu image and %zu text blocks%s under "
                             "%s names",
                             path_of(file), tensor->name, shape_text(tensor->rank, tensor->shape).text, model_of(file),
                             d->image_blocks, d->text_blocks, d->patch_bias > 0 ? " and no norm before them" : "",
                             owners[file->naming]);
    }
    return OK;
}

static status check_tensors(const struct clip_file *file, struct error *error)
{
    OWNED bool *used = xcalloc(safetensors_count(file->file), sizeof *used);
    TRY(check_all(file, used, error));
    return check_unknown(file, used, error);
}

/* ---- opening ---- */

static status resolve(struct clip_file *file, bool found, bool vit, struct error *error)
{
    if (!vit && (!found || file->dimensions.pool_hidden == 0))
        TRY(refuse_others(file, error));
    if (!found)
        return no_naming(file, vit, error);
    TRY(infer_image(file, error));
    TRY(vit ? infer_vit(file, error) : infer_text(file, error));
    return check_tensors(file, error);
}

static status open_as(struct clip_file **file, const char *path, bool vit, enum weights_part part, struct error *error)
{
    SCOPED(clip_file_close_at) struct clip_file *opened = xcalloc(1, sizeof *opened);
    *file = NULL;
    TRY(weights_file_open(&opened->file, path, part, error));
    bool found = detect_naming(opened, vit);
    if (!found && vit && part == WEIGHTS_HEADER)
        return OK;
    TRY(resolve(opened, found, vit, error));
    *file = TAKE(opened);
    return OK;
}

status clip_file_open(struct clip_file **file, const char *path, enum weights_part part, struct error *error)
{
    return open_as(file, path, false, part, error);
}

status clip_file_open_vit(struct clip_file **file, const char *path, enum weights_part part, struct error *error)
{
    return open_as(file, path, true, part, error);
}

void clip_file_close(struct clip_file *file)
{
    if (file == NULL)
        return;
    safetensors_close(file->file);
    free(file);
}

const struct clip_dimensions *clip_file_dimensions(const struct clip_file *file)
{
    return &file->dimensions;
}

enum clip_naming clip_file_naming(const struct clip_file *file)
{
    return file->naming;
}

const char *clip_file_experts(const struct clip_file *file)
{
    return file->experts != NULL ? file->experts->name : NULL;
}

uint64_t clip_file_replaced(const struct clip_file *file)
{
    return file->replaced;
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
    OWNED float *original = malloc(array_size(rows * columns, sizeof *original));
    if (original == NULL)
        return error_set(error, ERROR_MEMORY, "tensor '%s': no memory to transpose it", part->name);
    TRY(safetensor_to_floats(part, original, error));
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            values[i * columns + j] = original[j * rows + i];
    return OK;
}

status clip_file_read(const struct clip_file *file, size_t index, float *values, struct error *error)
{
    struct clip_tensor tensor = clip_tensor_at(&file->dimensions, file->naming, index);
    for (size_t part = 0; part < tensor.parts; part++) {
        const struct safetensor *found;
        TRY(find_part(file, &tensor, part, &found, error));
        TRY(tensor.transposed ? read_transposed(found, values, error) : safetensor_to_floats(found, values, error));
        TRY(safetensors_expect_finite(file->file, found->name, values, safetensor_elements(found), error));
        values += safetensor_elements(found);
    }
    return OK;
}
