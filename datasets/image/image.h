/* Images in memory: 8-bit RGB, rows from the top, 3 bytes a pixel, no padding. */
#ifndef MTIL_DATASETS_IMAGE_IMAGE_H
#define MTIL_DATASETS_IMAGE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct image {
    uint8_t *pixels; /* [height, width, 3] */
    int width, height;
};

status image_create(struct image *image, int width, int height, struct error *error); /* content unspecified */
void image_free(struct image *image);

/* Decodes JPEG, PNG, GIF (first frame) or BMP, told apart by content, to the RGB that Pillow gives (fixtures/data/README.md 2.1).
 * name only serves messages. At most 178,956,970 pixels. The caller frees the image. */
status image_decode(struct image *image, const uint8_t *data, size_t size, const char *name, struct error *error);
status image_decode_file(struct image *image, const char *path, struct error *error);

status image_write_png(const char *path, const struct image *image, struct error *error);
status image_write_jpeg(const char *path, const struct image *image, int quality, struct error *error);

/* A crop in pixels, resampled to width × height by Pillow's antialiased bicubic (2.2). */
struct image_box {
    int left, top, width, height;
};
status image_resize(const struct image *source, struct image_box box, int width, int height, struct image *result,
                    struct error *error);

/* Evaluation transform (2.3): shorter side to R, centre crop; pixels [R, R, 3] of the caller's. */
status image_evaluation_crop(const struct image *image, int resolution, uint8_t *pixels, struct error *error);

/* Training transform (2.4): the box to R × R. */
status image_training_crop(const struct image *image, struct image_box box, int resolution, uint8_t *pixels, struct error *error);

#endif
