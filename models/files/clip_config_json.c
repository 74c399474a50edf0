/* The configurations of a CLIP that open_clip and transformers write. A missing key has the default of the program that the
 * file is for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "models/files/clip_config.h"

/* ---- how images are normalised ---- */

const struct pixel_norm pixel_norms[PIXEL_NORMS] = {
    [PIXELS_CLIP] = {"clip", {0.48145466f, 0.4578275f, 0.40821073f}, {0.26862954f, 0.26130258f, 0.27577711f}},
    [PIXELS_HALF] = {"half", {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}},
    [PIXELS_IMAGENET] = {"imagenet", {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}},
};

enum pixels pixels_parse(const char *name)
{
    for (enum pixels p = PIXELS_CLIP; p < PIXEL_NORMS; p++)
        if (strcmp(name, pixel_norms[p].name) == 0)
            return p;
    return PIXELS_UNSTATED;
}

static bool is_three(const json_t *array, const float *expected)
{
    bool same = json_array_size(array) == 3;
    for (size_t i = 0; same && i < 3; i++)
        same = fabs(json_number_value(json_array_get(array, i)) - (double)expected[i]) < 1e-6;
    return same;
}

/* Sections and keys, by program. */
static const struct {
    const char *section, *mean, *deviation;
} forms[] = {{"preprocess_cfg", "mean", "std"}, {"pretrained_cfg", "mean", "std"}, {NULL, "image_mean", "image_std"}};

static status read_form(enum pixels *pixels, const json_t *root, size_t form, const char *path, struct error *error)
{
    const char *section = forms[form].section;
    const json_t *object = section != NULL ? json_object_get(root, section) : root,
                 *mean = json_object_get(object, forms[form].mean),
                 *deviation = json_object_get(object, forms[form].deviation);
    enum pixels found = PIXELS_CLIP;
    if (mean == NULL && deviation == NULL)
        return OK;
    while (found < PIXEL_NORMS &&
           !(is_three(mean, pixel_norms[found].mean) && is_three(deviation, pixel_norms[found].deviation)))
        found++;
    if (found == PIXEL_NORMS)
        return error_set(
            error, ERROR_FORMAT,
            "%s: %s%s%s and %s: this program normalises images by CLIP's mean and deviation, by 0.5 and 0.5, or "
            "by ImageNet's; the weights need others",
            path, section != NULL ? section : "", section != NULL ? "." : "", forms[form].mean, forms[form].deviation);
    if (*pixels != PIXELS_UNSTATED && *pixels != found)
        return error_set(error, ERROR_FORMAT,
                         "%s: images are normalised as %s here, but as %s in another configuration beside the weights; "
                         "correct one of them",
                         path, pixel_norms[found].name, pixel_norms[*pixels].name);
    *pixels = found;
    return OK;
}

static status pixels_of_json(enum pixels *pixels, const json_t *root, const char *path, struct error *error)
{
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
        TRY(read_form(pixels, root, form, path, error));
    return OK;
}

static status read_number(const json_t *root, const char *key, double *number, const char *path, struct error *error)
{
    const json_t *value = json_object_get(root, key);
    if (value == NULL || json_is_null(value))
        return OK;
    if (!json_is_number(value))
        return error_set(error, ERROR_FORMAT, "%s: %s: expected a number", path, key);
    *number = json_number_value(value);
    return OK;
}

status pixels_beside(enum pixels *pixels, const char *weights, const char *name, const char *key, double *number,
                     struct error *error)
{
    enum { LIMIT = 1 << 20 };
    OWNED char *path = path_beside(weights, name);
    SCOPED(json_decref_at) json_t *root = NULL;
    if (!file_exists(path))
        return OK;
    TRY(json_read(&root, path, LIMIT, error));
    TRY(pixels_of_json(pixels, root, path, error));
    return read_number(root, key, number, path, error);
}

/* ---- a CLIP's configuration ---- */

/* A part of the configuration: "vision_cfg", and what it must hold. */
struct section {
    const char *path, *name;
    const json_t *object, *overriding; /* overriding, with its defaults: transformers' vision_config_dict */
    struct error *error;
};

struct size_key {
    const char *name;
    size_t fallback, expected; /* expected: the value of the weights */
};

static const json_t *value_of(const struct section *section, const char *key)
{
    const json_t *stated = json_is_object(section->overriding) ? section->overriding : section->object,
                 *value = json_object_get(stated, key);
    return json_is_null(value) ? NULL : value;
}

static status read_size(const struct section *section, const char *key, size_t fallback, size_t *size)
{
    const json_t *value = value_of(section, key);
    *size = fallback;
    if (value == NULL)
        return OK;
    if (!json_is_integer(value) || json_integer_value(value) < 1)
        return error_set(section->error, ERROR_FORMAT, "%s: %s.%s: expected a whole number from 1", section->path,
                         section->name, key);
    *size = (size_t)json_integer_value(value);
    return OK;
}

static status read_real(const struct section *section, const char *key, double fallback, double *real)
{
    const json_t *value = value_of(section, key);
    *real = fallback;
    if (value == NULL)
        return OK;
    if (!json_is_number(value))
        return error_set(section->error, ERROR_FORMAT, "%s: %s.%s: expected a number", section->path, section->name,
                         key);
    *real = json_number_value(value);
    return OK;
}

static status differs(const struct section *section, const char *key, size_t found, size_t expected)
{
    return error_set(section->error, ERROR_FORMAT,
                     "%s: %s.%s is %zu%s, but the weights beside it have %zu; it is the configuration of other weights",
                     section->path, section->name, key, found, value_of(section, key) == NULL ? " by default" : "",
                     expected);
}

static status check_sizes(const struct section *section, const struct size_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t found;
        TRY(read_size(section, keys[i].name, keys[i].fallback, &found));
        if (found != keys[i].expected)
            return differs(section, keys[i].name, found, keys[i].expected);
    }
    return OK;
}

#define CHECK_SIZES(section, ...)                                                                                      \
    check_sizes(section, (const struct size_key[]){__VA_ARGS__},                                                       \
                sizeof((const struct size_key[]){__VA_ARGS__}) / sizeof(struct size_key))

/* Pixels right of and below all patches are no part of the weights. */
static status read_resolution(struct clip_config *config, const struct section *section,
                              const struct clip_dimensions *d)
{
    TRY(read_size(section, "image_size", 224, &config->resolution));
    if (config->resolution - config->resolution % d->patch != d->resolution)
        return differs(section, "image_size", config->resolution, d->resolution);
    return OK;
}

/* ---- open_clip ---- */

/* Refuses keys that are not known here, because they belong to other towers than CLIP's and change the computation. */
static status check_keys(const struct section *section, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)section->object, key, value)
    {
        const char *const *name = known;
        while (*name != NULL && strcmp(*name, key) != 0)
            name++;
        if (*name == NULL && !json_is_null(value) && !json_is_false(value))
            return error_set(section->error, ERROR_FORMAT,
                             "%s: %s.%s: this program's CLIP has no such setting; leave it out only if the weights do "
                             "not need it",
                             section->path, section->name, key);
    }
    return OK;
}

/* Checks that the MLP has int(width · mlp_ratio) units, as in open_clip. */
static status check_mlp(const struct section *section, size_t width, size_t hidden)
{
    double ratio;
    TRY(read_real(section, "mlp_ratio", 4, &ratio));
    double units = (double)width * ratio;
    if (!(units >= 1 && units < 1e9) || (size_t)units != hidden)
        return error_set(section->error, ERROR_FORMAT,
                         "%s: %s.mlp_ratio is %g, but the MLPs of the weights beside it have %zu units for a width of "
                         "%zu; it is the configuration of other weights",
                         section->path, section->name, ratio, hidden, width);
    return OK;
}

static status read_vision_cfg(struct clip_config *config, const struct section *section,
                              const struct clip_dimensions *d)
{
    static const char *const known[] = {"layers",     "width",      "head_width",    "mlp_ratio",
                                        "patch_size", "image_size", "patch_dropout", NULL};
    size_t head;
    TRY(check_keys(section, known));
    TRY(CHECK_SIZES(section, {"layers", 12, d->image_blocks}, {"width", 768, d->image_width},
                    {"patch_size", 16, d->patch}));
    TRY(read_resolution(config, section, d));
    TRY(check_mlp(section, d->image_width, d->image_hidden));
    TRY(read_size(section, "head_width", 64, &head));
    if (d->image_width % head != 0)
        return error_set(section->error, ERROR_FORMAT,
                         "%s: %s.head_width: expected a divisor of the width %zu, found %zu", section->path,
                         section->name, d->image_width, head);
    config->image_heads = d->image_width / head;
    return OK;
}

static status read_text_cfg(struct clip_config *config, const struct section *section, const struct clip_dimensions *d)
{
    static const char *const known[] = {"context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio", NULL};
    TRY(check_keys(section, known));
    TRY(CHECK_SIZES(section, {"context_length", 77, d->context}, {"vocab_size", 49408, d->vocabulary},
                    {"width", 512, d->text_width}, {"layers", 12, d->text_blocks}));
    TRY(check_mlp(section, d->text_width, d->text_hidden));
    return read_size(section, "heads", 8, &config->text_heads);
}

/* SigLIP's: timm's name stands for the image tower, and of its settings the size of an image is stated alone. */
static status read_siglip_cfg(struct clip_config *config, const struct section *vision, const struct section *text,
                              const struct clip_dimensions *d)
{
    static const char *const known[2][15] = {{"image_size", "timm_model_name", "timm_pool", "timm_proj", NULL},
                                             {"context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio",
                                              "hf_tokenizer_name", "tokenizer_kwargs", "no_causal_mask", "proj_bias",
                                              "pool_type", "norm_kwargs", "act_kwargs", NULL}};
    TRY(check_keys(vision, known[0]));
    TRY(check_keys(text, known[1]));
    TRY(read_resolution(config, vision, d));
    TRY(CHECK_SIZES(text, {"context_length", 77, d->context}, {"vocab_size", 49408, d->vocabulary},
                    {"width", 512, d->text_width}, {"layers", 12, d->text_blocks}));
    return read_size(text, "heads", 8, &config->text_heads);
}

/* Whether images are resized as they are for a model of this kind (clip_squashes). */
static status check_resizing(const struct section *section, bool siglip)
{
    const char *const keys[] = {"resize_mode", "interpolation"}, *const done[] = {siglip ? "squash" : "shortest",
                                                                                  "bicubic"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = value_of(section, keys[i]);
        const char *found = json_is_string(value) ? json_string_value(value) : "no text";
        if (value != NULL && strcmp(found, done[i]) != 0)
            return error_set(
                section->error, ERROR_FORMAT,
                "%s: %s.%s: expected %s, as images of a %s are resized here, found %s; leave it out only if "
                "the weights do not need it",
                section->path, section->name, keys[i], done[i], siglip ? "SigLIP" : "CLIP", found);
    }
    return OK;
}

static status read_open_clip(struct clip_config *config, const json_t *root, const struct clip_dimensions *d,
                             const char *path, struct error *error)
{
    const json_t *model = json_object_get(root, "model_cfg"), *quick;
    if (model == NULL)
        model = root;
    const struct section top = {path, "model_cfg", model, NULL, error};
    TRY(pixels_of_json(&config->pixels, root, path, error));
    TRY(CHECK_SIZES(&top, {"embed_dim", 512, d->embed}));
    const struct section vision = {path, "vision_cfg", json_object_get(model, "vision_cfg"), NULL, error},
                         text = {path, "text_cfg", json_object_get(model, "text_cfg"), NULL, error},
                         images = {path, "preprocess_cfg", json_object_get(root, "preprocess_cfg"), NULL, error};
    TRY(check_resizing(&images, d->pool_hidden > 0));
    if (d->pool_hidden > 0)
        return read_siglip_cfg(config, &vision, &text, d);
    TRY(read_vision_cfg(config, &vision, d));
    TRY(read_text_cfg(config, &text, d));
    quick = value_of(&top, "quick_gelu");
    if (quick != NULL && !json_is_boolean(quick))
        return error_set(error, ERROR_FORMAT, "%s: model_cfg.quick_gelu: expected true or false", path);
    config->activation = json_is_true(quick) ? ACTIVATION_QUICK_GELU : ACTIVATION_GELU;
    return OK;
}

/* ---- transformers ---- */

/* Reads the keys that both towers have in transformers. */
static status read_tower(const struct section *section, bool siglip, enum activation *activation)
{
    const json_t *word = value_of(section, "hidden_act");
    double epsilon, expected = siglip ? 1e-6 : 1e-5;
    TRY(read_real(section, "layer_norm_eps", expected, &epsilon));
    if (!(fabs(epsilon - expected) < 1e-9))
        return error_set(section->error, ERROR_FORMAT, "%s: %s.layer_norm_eps: expected %g, found %g", section->path,
                         section->name, expected, epsilon);
    if (word != NULL && !json_is_string(word))
        return error_set(section->error, ERROR_FORMAT, "%s: %s.hidden_act: expected a text", section->path,
                         section->name);
    const char *name = word != NULL ? json_string_value(word) : siglip ? "gelu_tanh" : "quick_gelu";
    *activation = clip_activation_parse(name);
    if (*activation == ACTIVATION_NONE)
        return error_set(section->error, ERROR_FORMAT,
                         "%s: %s.hidden_act: expected quick_gelu, gelu or gelu_pytorch_tanh, found \"%s\"",
                         section->path, section->name, name);
    return OK;
}

static status read_transformers(struct clip_config *config, const json_t *root, const struct clip_dimensions *d,
                                const char *path, struct error *error)
{
    const struct section top = {path, "CLIPConfig", root, NULL, error},
                         vision = {path, "vision_config", json_object_get(root, "vision_config"),
                                   json_object_get(root, "vision_config_dict"), error},
                         text = {path, "text_config", json_object_get(root, "text_config"),
                                 json_object_get(root, "text_config_dict"), error};
    const char *type = json_string_value(json_object_get(root, "model_type"));
    enum activation of_text;
    bool siglip = d->pool_hidden > 0;
    const size_t image_patch = siglip ? 16 : 32, text_width = siglip ? 768 : 512;
    if (type != NULL && strcmp(type, siglip ? "siglip" : "clip") != 0)
        return error_set(error, ERROR_FORMAT, "%s: model_type: expected %s, found \"%s\"", path,
                         siglip ? "siglip" : "clip", type);
    if (!siglip)
        TRY(CHECK_SIZES(&top, {"projection_dim", 512, d->embed}));
    TRY(CHECK_SIZES(&vision, {"hidden_size", 768, d->image_width}, {"intermediate_size", 3072, d->image_hidden},
                    {"num_hidden_layers", 12, d->image_blocks}, {"patch_size", image_patch, d->patch},
                    {"num_channels", 3, 3}));
    TRY(read_resolution(config, &vision, d));
    TRY(CHECK_SIZES(&text, {"hidden_size", text_width, d->text_width},
                    {"intermediate_size", 4 * text_width, d->text_hidden}, {"num_hidden_layers", 12, d->text_blocks},
                    {"vocab_size", siglip ? 32000 : 49408, d->vocabulary},
                    {"max_position_embeddings", siglip ? 64 : 77, d->context}));
    TRY(read_size(&vision, "num_attention_heads", 12, &config->image_heads));
    TRY(read_size(&text, "num_attention_heads", text_width / 64, &config->text_heads));
    TRY(read_tower(&vision, siglip, &config->activation));
    TRY(read_tower(&text, siglip, &of_text));
    if (of_text != config->activation)
        return error_set(error, ERROR_FORMAT,
                         "%s: hidden_act: expected the same in both towers, found %s (vision) and %s (text)", path,
                         clip_activation_name(config->activation), clip_activation_name(of_text));
    return OK;
}

/* ---- either ---- */

static bool has_object(const json_t *root, const char *key)
{
    return json_is_object(json_object_get(root, key));
}

static status read_root(struct clip_config *config, bool *is_clip, const json_t *root,
                        const struct clip_dimensions *dimensions, const char *path, struct error *error)
{
    const json_t *model = json_object_get(root, "model_cfg");
    *is_clip = true;
    if (has_object(model != NULL ? model : root, "vision_cfg"))
        return read_open_clip(config, root, dimensions, path, error);
    if (has_object(root, "vision_config") || has_object(root, "vision_config_dict"))
        return read_transformers(config, root, dimensions, path, error);
    *is_clip = false;
    return OK;
}

status clip_config_parse(struct clip_config *config, bool *is_clip, const struct clip_dimensions *dimensions,
                         const char *path, const char *bytes, size_t size, struct error *error)
{
    *config = (struct clip_config){0};
    SCOPED(json_decref_at) json_t *root = NULL;
    TRY(json_parse(&root, bytes, size, path, error));
    return read_root(config, is_clip, root, dimensions, path, error);
}
