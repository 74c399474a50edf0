/* mtil norms: how far the LayerNorms before the MLPs of a tower's blocks lie apart. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/commands/output.h"
#include "models/files/weights_file.h"

static const struct option options[] = {OUTPUT_FORMAT_OPTION, {0}};

enum { PARTS = 2, BLOCKS_MOST = 64 };

/* Of the image tower, as CLIP, timm, open_clip with timm's, and Hugging Face's ViT, CLIP and SigLIP call them. */
static const char *const names[] = {"visual.transformer.resblocks.%zu.ln_2.%s", "blocks.%zu.norm2.%s",
                                    "visual.trunk.blocks.%zu.norm2.%s", "vit.encoder.layer.%zu.layernorm_after.%s",
                                    "vision_model.encoder.layers.%zu.layer_norm2.%s"};
enum { NAMES = sizeof names / sizeof *names };

/* One kind of vector, of every block. */
struct vectors {
    size_t blocks, width;
    float *values[BLOCKS_MOST]; /* [width] */
};

static const struct safetensor *find(const struct safetensors *file, size_t block, const char *part)
{
    const struct safetensor *found = NULL;
    for (size_t i = 0; found == NULL && i < NAMES; i++) {
        char name[96];
        snprintf(name, sizeof name, names[i], block, part);
        found = safetensors_find(file, name);
    }
    return found;
}

static status read_vectors(struct vectors *v, const struct safetensors *file, const char *part, struct error *error)
{
    const struct safetensor *tensor;
    for (; v->blocks < BLOCKS_MOST && (tensor = find(file, v->blocks, part)) != NULL; v->blocks++) {
        size_t width = safetensor_elements(tensor);
        float *values = v->values[v->blocks] = xmalloc((width + 1) * sizeof *values);
        if (v->blocks > 0 && width != v->width)
            return error_set(error, ERROR_FORMAT, "%s: %s has %zu values, that of block 0 %zu", safetensors_path(file),
                             tensor->name, width, v->width);
        v->width = width;
        TRY(safetensor_to_floats(tensor, values, error));
        TRY(safetensors_expect_finite(file, tensor->name, values, width, error));
    }
    if (v->blocks < 2)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected the LayerNorms of an image tower of 2 blocks or more, found those of %zu; "
                         "give a file of weights, not of adapters",
                         safetensors_path(file), v->blocks);
    return OK;
}

/* A block's share of Equation 9 (Xue et al. 2022), the mean over the elements i of the block's vector:
 * 1 / (M N) Σ_{n ≠ j} Σ_m |γ_ij − γ_mn|. The equation's mean over i is the mean of the N blocks' shares. */
static double divergence(const struct vectors *v, size_t block)
{
    double sum = 0, m = (double)v->width;
    for (size_t n = 0; n < v->blocks; n++)
        for (size_t i = 0; n != block && i < v->width; i++) {
            float distances = 0;
            for (size_t k = 0; k < v->width; k++)
                distances += fabsf(v->values[block][i] - v->values[n][k]);
            sum += (double)distances;
        }
    return sum / (m * m * (double)v->blocks);
}

static void add_row(struct table *table, const char *path, const char *block, const double *values)
{
    table_add_text(table, path);
    table_add_text(table, block);
    for (size_t part = 0; part < PARTS; part++)
        table_add_real(table, values[part]);
}

static void add_rows(struct table *table, const char *path, const struct vectors *parts)
{
    double mean[PARTS] = {0};
    for (size_t block = 0; block < parts->blocks; block++) {
        char name[24];
        double values[PARTS];
        snprintf(name, sizeof name, "%zu", block);
        for (size_t part = 0; part < PARTS; part++) {
            values[part] = divergence(&parts[part], block);
            mean[part] += values[part] / (double)parts->blocks;
        }
        add_row(table, path, name, values);
    }
    add_row(table, path, "all", mean);
}

static status add_file(struct table *table, const char *path, struct error *error)
{
    static const char *const words[PARTS] = {"weight", "bias"};
    struct vectors parts[PARTS] = {0};
    SCOPED(safetensors_close_at) struct safetensors *file = NULL;
    TRY(weights_file_open(&file, path, WEIGHTS_WHOLE, error));
    status result = OK;
    for (size_t part = 0; part < PARTS; part++)
        NEXT(result, read_vectors(&parts[part], file, words[part], error));
    if (result == OK && parts[0].blocks != parts[1].blocks)
        result = error_set(error, ERROR_FORMAT, "%s: %zu blocks have a gain, %zu a bias", path, parts[0].blocks,
                           parts[1].blocks);
    if (result == OK)
        add_rows(table, path, parts);
    for (size_t part = 0; part < PARTS; part++)
        for (size_t block = 0; block < BLOCKS_MOST; block++)
            free(parts[part].values[block]);
    return result;
}

static status run(const struct command_call *call, struct error *error)
{
    static const char *const titles[] = {"weights", "block", "gain", "bias"};
    SCOPED(table_free) struct table table = {0};
    status result = OK;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(&table, &(struct table_column){.title = titles[i], .decimals = 4, .once = i == 0});
    for (size_t i = 0; i < call->argument_count; i++) {
        if (i > 0)
            table_begin_block(&table);
        NEXT(result, add_file(&table, call->arguments[i], error));
    }
    if (result == OK)
        output_table(call, &table);
    return result;
}

const struct command command_norms = {
    .name = "norms",
    .arguments = "WEIGHTS…",
    .summary = "tell how far the LayerNorms of a model's blocks lie apart",
    .details =
        "Of the LayerNorms before the MLPs or experts of an image tower: the mean distance of a block's gains, and "
        "of its\n"
        "biases, from those of all other blocks, as in Equation 9 of WideNet (Xue et al. 2022); `all` is the mean "
        "of the\n"
        "blocks. Files are those of a run, of CLIP and SigLIP, timm or Hugging Face.\n",
    .example = "  mtil norms widenet.safetensors dense.safetensors\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};
