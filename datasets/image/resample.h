/* Inside image/: Pillow's antialiased bicubic on 8-bit RGB, any rectangle of the result and nothing more. */
#ifndef MTIL_DATASETS_IMAGE_RESAMPLE_H
#define MTIL_DATASETS_IMAGE_RESAMPLE_H

#include "datasets/image/filters.h"
#include "datasets/image/image.h"

/* Of source's box, resampled to width × height, the rectangle wanted. Both rectangles lie inside what they are taken
 * from. */
struct resampling {
    const struct image *source;
    struct image_box box;
    int width, height;
    struct image_box wanted;
    const struct filters *filters; /* NULL: filters_at(0) */
};

/* pixels [wanted.height, wanted.width, 3] of the caller's. */
status resample(const struct resampling *resampling, uint8_t *pixels, struct error *error);

#endif
