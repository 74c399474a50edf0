#include "models/files/clip_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

enum { CLAIMS_MOST = 4, CONFIG_LIMIT = 1 << 20 };

/* The settings that one source states, and the source's name for messages. */
struct claim {
    struct clip_config config;
    const char *heads_by, *activation_by;
    char *path; /* owned; of a configuration file */
};

struct claims {
    const struct clip_file *file;
    size_t count;
    struct claim list[CLAIMS_MOST];
};

static struct claim *add_claim(struct claims *claims, const char *heads_by, const char *activation_by)
{
    struct claim *claim = &claims->list[claims->count++];
    *claim = (struct claim){.heads_by = heads_by, .activation_by = activation_by};
    return claim;
}

/* ---- activations ---- */

static const struct {
    const char *name;
    enum activation activation;
} activations[] = {{"quick_gelu", ACTIVATION_QUICK_GELU},
                   {"gelu", ACTIVATION_GELU},
                   {"gelu_tanh", ACTIVATION_GELU_TANH},
                   {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH}};

enum { ACTIVATIONS = sizeof activations / sizeof *activations };

enum activation clip_activation_parse(const char *word)
{
    for (size_t i = 0; i < ACTIVATIONS; i++)
        if (strcmp(word, activations[i].name) == 0)
            return activations[i].activation;
    return ACTIVATION_NONE;
}

const char *clip_activation_name(enum activation activation)
{
    for (size_t i = 0; i < ACTIVATIONS; i++)
        if (activation == activations[i].activation)
            return activations[i].name;
    return "none";
}

/* ---- the file's own metadata ---- */

static const char image_heads_key[] = "image_heads", text_heads_key[] = "text_heads", activation_key[] = "activation",
                  pixels_key[] = "pixels", resolution_key[] = "resolution";

void clip_metadata_fill(struct clip_metadata *metadata, const struct clip_config *config)
{
    snprintf(metadata->image_heads, sizeof metadata->image_heads, "%zu", config->image_heads);
    snprintf(metadata->text_heads, sizeof metadata->text_heads, "%zu", config->text_heads);
    metadata->entries[0] = (struct safetensors_metadata){image_heads_key, metadata->image_heads};
    metadata->entries[1] = (struct safetensors_metadata){text_heads_key, metadata->text_heads};
    metadata->entries[2] = (struct safetensors_metadata){activation_key, clip_activation_name(config->activation)};
    metadata->entries[3] = (struct safetensors_metadata){pixels_key, pixel_norms[config->pixels].name};
    snprintf(metadata->resolution, sizeof metadata->resolution, "%zu", config->resolution);
    metadata->entries[CLIP_METADATA] = (struct safetensors_metadata){resolution_key, metadata->resolution};
    metadata->count = CLIP_METADATA + (config->resolution > 0);
}

static status read_number(const struct clip_file *file, const char *key, size_t *number, struct error *error)
{
    const char *text = clip_file_metadata(file, key);
    int64_t value;
    if (text == NULL)
        return OK;
    if (!parse_integer(text, &value) || value < 1)
        return error_set(error, ERROR_FORMAT, "%s: metadata '%s': expected a whole number from 1, found \"%s\"",
                         clip_file_path(file), key, text);
    *number = (size_t)value;
    return OK;
}

static status read_metadata(struct claims *claims, struct error *error)
{
    struct clip_config *config = &add_claim(claims, "the file's metadata", "the file's metadata")->config;
    TRY(read_number(claims->file, image_heads_key, &config->image_heads, error));
    TRY(read_number(claims->file, text_heads_key, &config->text_heads, error));
    TRY(read_number(claims->file, resolution_key, &config->resolution, error));
    const char *word = clip_file_metadata(claims->file, activation_key),
               *pixels = clip_file_metadata(claims->file, pixels_key);
    if (pixels != NULL && (config->pixels = pixels_parse(pixels)) == PIXELS_UNSTATED)
        return error_set(error, ERROR_FORMAT, "%s: metadata '%s': expected clip, half or imagenet, found \"%s\"",
                         clip_file_path(claims->file), pixels_key, pixels);
    if (word == NULL)
        return OK;
    config->activation = clip_activation_parse(word);
    if (config->activation == ACTIVATION_NONE)
        return error_set(error, ERROR_FORMAT, "%s: metadata '%s': expected quick_gelu, gelu or gelu_tanh, found \"%s\"",
                         clip_file_path(claims->file), activation_key, word);
    return OK;
}

/* ---- configurations beside the file ---- */

/* Takes ownership of path. A file with a common name may describe something else; a file named like the weights may not. */
static status read_config(struct claims *claims, char *path, bool must_be_clip, struct error *error)
{
    struct claim *claim = add_claim(claims, path, path);
    SCOPED(bytes_free) struct bytes bytes = {0};
    bool is_clip;
    claim->path = path;
    TRY(file_read(path, CONFIG_LIMIT, &bytes, error));
    TRY(clip_config_parse(&claim->config, &is_clip, clip_file_dimensions(claims->file), path, (const char *)bytes.data,
                          bytes.size, error));
    if (!is_clip && must_be_clip)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected the configuration of a CLIP, with vision_cfg (open_clip) or vision_config "
                         "(transformers), found neither",
                         path);
    return OK;
}

static status read_if_there(struct claims *claims, char *path, bool must_be_clip, bool *there, struct error *error)
{
    *there = file_exists(path);
    if (*there)
        return read_config(claims, path, must_be_clip, error);
    free(path);
    return OK;
}

static status read_configs(struct claims *claims, struct error *error)
{
    const char *weights = clip_file_path(claims->file), *slash = strrchr(weights, '/');
    const char *name = slash != NULL ? slash + 1 : weights, *dot = strrchr(name, '.');
    int folder = (int)(name - weights),
        stem = (int)(dot != NULL && dot != name ? dot - weights : (long)strlen(weights));
    bool there;
    bool index = strcmp(dot != NULL ? dot : "", ".json") == 0; /* an index of shards is no configuration */
    if (!index)
        TRY(read_if_there(claims, path_format("%.*s.json", stem, weights), true, &there, error));
    if (!index && there)
        return OK;
    TRY(read_if_there(claims, path_format("%.*sopen_clip_config.json", folder, weights), true, &there, error));
    return read_if_there(claims, path_format("%.*sconfig.json", folder, weights), false, &there, error);
}

/* ---- what OpenAI published ---- */

/* Its build_model takes heads of 64 columns for every vision transformer. */
static const struct {
    const char *stem; /* of its file */
    size_t embed, resolution, patch, image_width, image_blocks, text_width;
} published[] = {{"ViT-B-32", 512, 224, 32, 768, 12, 512},
                 {"ViT-B-16", 512, 224, 16, 768, 12, 512},
                 {"ViT-L-14", 768, 224, 14, 1024, 24, 768},
                 {"ViT-L-14-336px", 768, 336, 14, 1024, 24, 768}};

bool clip_published(struct clip_dimensions *d, const char *stem)
{
    size_t i = 0, count = sizeof published / sizeof *published;
    while (i < count && strcmp(published[i].stem, stem) != 0)
        i++;
    if (i == count)
        return false;
    size_t image = published[i].image_width, text = published[i].text_width;
    *d = (struct clip_dimensions){.embed = published[i].embed,
                                  .resolution = published[i].resolution,
                                  .patch = published[i].patch,
                                  .image_width = image,
                                  .image_hidden = 4 * image,
                                  .image_heads = image / 64,
                                  .image_blocks = published[i].image_blocks,
                                  .context = 77,
                                  .vocabulary = 49408,
                                  .text_width = text,
                                  .text_hidden = 4 * text,
                                  .text_heads = text / 64,
                                  .text_blocks = 12};
    return true;
}

static bool is_published(const struct clip_dimensions *d)
{
    if (d->context != 77 || d->vocabulary != 49408 || d->text_blocks != 12 || d->image_hidden != 4 * d->image_width ||
        d->text_hidden != 4 * d->text_width)
        return false;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (d->embed == published[i].embed && d->resolution == published[i].resolution &&
            d->patch == published[i].patch && d->image_width == published[i].image_width &&
            d->image_blocks == published[i].image_blocks && d->text_width == published[i].text_width)
            return true;
    return false;
}

/* The heads of the published SigLIPs' towers, by width: base, large, shape-optimised 400M, and giant-opt. */
static size_t siglip_heads(size_t width)
{
    return width == 768 ? 12 : width == 1024 || width == 1152 || width == 1536 ? 16 : 0;
}

static void fill_in_siglip(struct clip_config *config, const struct clip_dimensions *d)
{
    if (config->image_heads == 0)
        config->image_heads = siglip_heads(d->image_width);
    if (config->text_heads == 0)
        config->text_heads = siglip_heads(d->text_width);
    if (config->activation ==
        ACTIVATION_NONE) /* as trained, and at transformers; open_clip computes some with GELU itself */
        config->activation = ACTIVATION_GELU_TANH;
    if (config->pixels == PIXELS_UNSTATED)
        config->pixels = PIXELS_HALF;
}

static void fill_in_published(struct clip_config *config, const struct clip_file *file)
{
    const struct clip_dimensions *d = clip_file_dimensions(file);
    if (d->pool_hidden > 0)
        fill_in_siglip(config, d);
    else if (config->pixels == PIXELS_UNSTATED)
        config->pixels = PIXELS_CLIP;
    if (!is_published(d))
        return;
    if (config->image_heads == 0)
        config->image_heads = d->image_width / 64;
    if (config->text_heads == 0)
        config->text_heads = d->text_width / 64;
    if (config->activation == ACTIVATION_NONE && clip_file_is_openai_archive(file))
        config->activation = ACTIVATION_QUICK_GELU;
}

/* ---- combining the sources ---- */

/* Takes one tower's heads from a claim; an error where an earlier claim differs. */
static status settle_heads(const struct claims *claims, const char *tower, size_t width, size_t claimed, const char *by,
                           size_t *heads, const char **heads_by, struct error *error)
{
    if (claimed == 0)
        return OK;
    if (width % claimed != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected a number of heads that divides the %s tower's width of %zu, found %zu (%s)",
                         clip_file_path(claims->file), tower, width, claimed, by);
    if (*heads != 0 && *heads != claimed)
        return error_set(error, ERROR_FORMAT,
                         "%s: the %s tower has %zu heads according to %s, but %zu according to %s; correct one of them",
                         clip_file_path(claims->file), tower, *heads, *heads_by, claimed, by);
    *heads = claimed;
    *heads_by = by;
    return OK;
}

static status settle_activation(const struct claims *claims, const struct claim *claim, enum activation *activation,
                                const char **activation_by, struct error *error)
{
    enum activation claimed = claim->config.activation;
    if (claimed == ACTIVATION_NONE)
        return OK;
    if (*activation != ACTIVATION_NONE && *activation != claimed)
        return error_set(error, ERROR_FORMAT,
                         "%s: the activation is %s according to %s, but %s according to %s; correct one of them",
                         clip_file_path(claims->file), clip_activation_name(*activation), *activation_by,
                         clip_activation_name(claimed), claim->activation_by);
    *activation = claimed;
    *activation_by = claim->activation_by;
    return OK;
}

static status settle_pixels(const struct claims *claims, enum pixels *pixels, struct error *error)
{
    double resample = 3;
    TRY(pixels_beside(pixels, clip_file_path(claims->file), "preprocessor_config.json", "resample", &resample, error));
    if (resample != 3)
        return error_set(
            error, ERROR_FORMAT,
            "%s: preprocessor_config.json beside it: resample: expected 3 (bicubic), as images are resized "
            "here, found %g (0 nearest, 1 Lanczos, 2 bilinear); set 3 only if the weights do not need "
            "another, as open_clip does for SigLIP 2",
            clip_file_path(claims->file), resample);
    for (size_t i = 0; i < claims->count; i++) {
        enum pixels claimed = claims->list[i].config.pixels;
        if (claimed != PIXELS_UNSTATED && *pixels != PIXELS_UNSTATED && *pixels != claimed)
            return error_set(error, ERROR_FORMAT,
                             "%s: images are normalised as %s according to %s, but as %s according to another source; "
                             "correct one of them",
                             clip_file_path(claims->file), pixel_norms[claimed].name, claims->list[i].activation_by,
                             pixel_norms[*pixels].name);
        *pixels = claimed != PIXELS_UNSTATED ? claimed : *pixels;
    }
    return OK;
}

/* A resolution with other patches is another model's, whose dimensions differ. */
static status settle_resolution(const struct claims *claims, const struct claim *claim, size_t *resolution,
                                struct error *error)
{
    const struct clip_dimensions *d = clip_file_dimensions(claims->file);
    size_t claimed = claim->config.resolution;
    if (claimed - claimed % d->patch != d->resolution)
        return OK;
    if (*resolution != 0 && *resolution != claimed)
        return error_set(error, ERROR_FORMAT,
                         "%s: images have %zu pixels according to %s, but %zu according to another source; correct "
                         "one of them",
                         clip_file_path(claims->file), claimed, claim->heads_by, *resolution);
    *resolution = claimed;
    return OK;
}

static status decide(const struct claims *claims, struct clip_config *config, struct error *error)
{
    const struct clip_dimensions *d = clip_file_dimensions(claims->file);
    const char *image_by = NULL, *text_by = NULL, *activation_by = NULL;
    for (size_t i = 0; i < claims->count; i++) {
        const struct claim *c = &claims->list[i];
        TRY(settle_heads(claims, "image", d->image_width, c->config.image_heads, c->heads_by, &config->image_heads,
                         &image_by, error));
        TRY(settle_heads(claims, "text", d->text_width, c->config.text_heads, c->heads_by, &config->text_heads,
                         &text_by, error));
        TRY(settle_activation(claims, c, &config->activation, &activation_by, error));
        TRY(settle_resolution(claims, c, &config->resolution, error));
    }
    if (config->resolution == d->resolution)
        config->resolution = 0;
    TRY(settle_pixels(claims, &config->pixels, error));
    fill_in_published(config, claims->file);
    return OK;
}

static status check_known(const struct clip_config *config, const struct clip_file *file,
                          const struct clip_stated *stated, struct error *error)
{
    static const char where[] = "a configuration beside the weights (NAME.json, open_clip_config.json or config.json)";
    const char *heads_by = stated != NULL ? stated->heads_by : "the caller",
               *activation_by = stated != NULL ? stated->activation_by : "the caller";
    if (config->image_heads == 0 || config->text_heads == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: the number of attention heads is unknown, since the shapes of the weights do not show "
                         "it; expected %s, or IMAGE,TEXT from %s",
                         clip_file_path(file), where, heads_by);
    if (config->activation == ACTIVATION_NONE)
        return error_set(error, ERROR_FORMAT,
                         "%s: the activation is unknown, since the weights do not show it; expected %s, or from %s: "
                         "quick_gelu for OpenAI's weights, gelu for most others",
                         clip_file_path(file), where, activation_by);
    return OK;
}

status clip_config_find(struct clip_config *config, const struct clip_file *file, const struct clip_stated *stated,
                        struct error *error)
{
    struct claims claims = {.file = file};
    *config = (struct clip_config){0};
    if (stated != NULL)
        add_claim(&claims, stated->heads_by, stated->activation_by)->config = stated->config;
    status result = read_metadata(&claims, error);
    NEXT(result, read_configs(&claims, error));
    NEXT(result, decide(&claims, config, error));
    for (size_t i = 0; i < claims.count; i++)
        free(claims.list[i].path);
    return result == OK ? check_known(config, file, stated, error) : result;
}

status clip_config_of(struct clip_config *config, const char *path, const struct clip_stated *stated,
                      struct error *error)
{
    SCOPED(clip_file_close_at) struct clip_file *file = NULL;
    TRY(clip_file_open(&file, path, WEIGHTS_HEADER, error));
    return clip_config_find(config, file, stated, error);
}
