/* Internal: Pillow's antialiased bicubic on 8-bit RGB, computing only the wanted rectangle of the result. */
#pragma once

#include "datasets/image/filters.h"
#include "datasets/image/image.h"

/* Resamples the source's box to width × height and computes the rectangle `wanted` of the result. box lies inside
 * source, wanted inside the result. */
struct resampling {
    const struct image *source;
    struct image_box box;
    int width, height;
    struct image_box wanted;
    const struct filters *filters; /* NULL: filters_at(0) */
};

/* pixels [wanted.height, wanted.width, 3] of the caller's. */
void resample(const struct resampling *resampling, uint8_t *pixels);
