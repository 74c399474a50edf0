/* How a model's images are normalised: (v / 255 − mean) / deviation, per channel.
 *
 *     enum pixels pixels = PIXELS_UNSTATED;
 *     TRY(pixels_beside(&pixels, "model.safetensors", "config.json", "layer_norm_eps", &epsilon, error));
 *     ... pixel_norms[pixels].mean, pixel_norms[pixels].deviation ...
 */
#pragma once

#include "core/status.h"

struct json_t; /* jansson's */

enum pixels { PIXELS_UNSTATED, PIXELS_CLIP, PIXELS_HALF, PIXELS_IMAGENET, PIXEL_NORMS };

struct pixel_norm {
    const char *name;
    float mean[3], deviation[3];
};
extern const struct pixel_norm pixel_norms[PIXEL_NORMS]; /* none at PIXELS_UNSTATED */

enum pixels pixels_parse(const char *name); /* PIXELS_UNSTATED for other words */

/* What a configuration of this name beside the weights states, in the form of open_clip (preprocess_cfg), timm (pretrained_cfg of
 * config.json) or transformers (preprocessor_config.json); *pixels stays where there is none, or it states nothing. What differs
 * from *pixels, and other numbers than those of pixel_norms, are errors. *number, too, stays where key is not there. */
status pixels_beside(enum pixels *pixels, const char *weights, const char *name, const char *key, double *number,
                     struct error *error);

/* The same from its content. */
status pixels_of_json(enum pixels *pixels, const struct json_t *root, const char *path, struct error *error);
