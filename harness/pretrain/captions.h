/* Captioned drawings, the pre-training data of the small CLIP.
 *
 *     uint8_t pixels[CAPTIONED_PIXELS];
 *     char caption[CAPTION_CAPACITY];
 *     TRY(captioned_drawing(seed, index, CAPTIONED_PLAIN, pixels, caption, sizeof caption, error));
 *     // "a photo of a small red cup on the left."
 *
 * A picture depends on seed, index and level only, so any thread may draw it; their number is unlimited. They show
 * shapes, relations, counts, textures, digits and letters, objects, animals, vehicles, planes, flowers, food, scenes
 * and land from above; a caption may omit any attribute. The suite's pictures (datasets/mini/suite.h) come from other
 * generators.
 */
#ifndef MTIL_HARNESS_PRETRAIN_CAPTIONS_H
#define MTIL_HARNESS_PRETRAIN_CAPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { CAPTIONED_SIDE = 64, CAPTIONED_PIXELS = 64 * 64 * 3, CAPTION_CAPACITY = 160 };

enum captioned_level {
    CAPTIONED_PLAIN, /* calm backgrounds */
    CAPTIONED_HARDER /* textured backgrounds, noise, blur, low resolution, weak contrast, outlines */
};

/* pixels: [64, 64, 3] RGB of the caller's; caption: lower case, NUL-terminated, ERROR_ARGUMENT when capacity is too
   small (CAPTION_CAPACITY never is). */
status captioned_drawing(uint64_t seed, uint64_t index, enum captioned_level level, uint8_t *pixels, char *caption,
                         size_t capacity, struct error *error);

#endif
