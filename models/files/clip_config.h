/* The settings of a CLIP that the shapes of its weights do not show: heads of the attention, activation of the MLPs, and how images
 * are normalised.
 *
 *     struct clip_config config;
 *     TRY(clip_config_find(&config, file, NULL, error));
 *     ... config.image_heads, config.text_heads, config.activation ...
 *
 * The sources, in this order: the caller; the metadata that clip_save writes; a configuration beside NAME.safetensors, which is
 * NAME.json, or else open_clip_config.json (open_clip's) and config.json (transformers' CLIPModel and SiglipModel). All sources
 * must agree with each other and with the shapes of the weights. Without any, the four vision transformers that OpenAI
 * published have heads of 64 columns, and QuickGELU if the file has the three sizes that OpenAI's own archives record; other
 * weights of these shapes have GELU. The published SigLIPs have 12 heads for a width of 768 and 16 for their other widths, and
 * GELU by tanh, which is what they were trained with. Nothing else is assumed: settings that stay unknown are an error.
 */
#pragma once

#include "models/backend.h"
#include "models/files/clip_file.h"
#include "models/files/safetensors.h"

/* How images are normalised: (v / 255 − mean) / deviation, per channel. */
enum pixels { PIXELS_UNSTATED, PIXELS_CLIP, PIXELS_HALF, PIXELS_IMAGENET, PIXEL_NORMS };

struct pixel_norm {
    const char *name;
    float mean[3], deviation[3];
};
extern const struct pixel_norm pixel_norms[PIXEL_NORMS]; /* none at PIXELS_UNSTATED */

enum pixels pixels_parse(const char *name); /* PIXELS_UNSTATED for other words */

/* Reads the normalisation and the number `key` from a configuration of this name beside the weights, in the form of
 * open_clip (preprocess_cfg), timm (pretrained_cfg of config.json) or transformers (preprocessor_config.json).
 * *pixels and *number stay where the configuration or its statement is missing. A normalisation that differs from
 * *pixels, or has other numbers than those of pixel_norms, is an error. */
status pixels_beside(enum pixels *pixels, const char *weights, const char *name, const char *key, double *number,
                     struct error *error);

struct clip_config {
    size_t image_heads, text_heads; /* 0: not stated */
    enum activation activation;     /* ACTIVATION_NONE: not stated */
    enum pixels pixels;             /* likewise; CLIP's where no source states it */
    size_t resolution; /* of images with pixels right of and below all patches, as 384 for patches of 14; else 0 */
};

/* Settings that the caller knows before the weights are read, and where it has them from, for messages: "model.heads". */
struct clip_stated {
    struct clip_config config;
    const char *heads_by, *activation_by;
};

/* stated may be NULL. */
status clip_config_find(struct clip_config *config, const struct clip_file *file, const struct clip_stated *stated,
                        struct error *error);

/* Opens the file itself, for the identity of results. */
status clip_config_of(struct clip_config *config, const char *path, const struct clip_stated *stated,
                      struct error *error);

/* The dimensions of a vision transformer that OpenAI published, by the name of its file without the ending: "ViT-B-16"; false: it is
 * none. */
bool clip_published(struct clip_dimensions *dimensions, const char *stem);

/* Reads either configuration from size bytes of JSON, called path in messages, and compares it with the dimensions of the
 * weights. *is_clip: whether it describes a CLIP at all. */
status clip_config_parse(struct clip_config *config, bool *is_clip, const struct clip_dimensions *dimensions,
                         const char *path, const char *bytes, size_t size, struct error *error);

/* "quick_gelu", "gelu", "gelu_tanh" (transformers: "gelu_pytorch_tanh"); ACTIVATION_NONE for other words. */
enum activation clip_activation_parse(const char *word);
const char *clip_activation_name(enum activation activation);

/* The configuration as metadata of a safetensors file; entries point into the struct. */
enum { CLIP_METADATA = 4 }; /* and one more with a resolution */
struct clip_metadata {
    char image_heads[24], text_heads[24], resolution[24];
    size_t count;
    struct safetensors_metadata entries[CLIP_METADATA + 1];
};
void clip_metadata_fill(struct clip_metadata *metadata, const struct clip_config *config);
