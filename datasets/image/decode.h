/* Inside image/: one decoder per format, chosen by image_decode. Each creates the image itself, once it has checked
 * the size that the file claims, and leaves nothing behind after an error. */
#ifndef MTIL_DATASETS_IMAGE_DECODE_H
#define MTIL_DATASETS_IMAGE_DECODE_H

#include "datasets/image/image.h"

/* A file's content, and its name for messages. */
struct encoded {
    const uint8_t *data;
    size_t size;
    const char *name;
};

status jpeg_decode(struct image *image, const struct encoded *file, struct error *error);
status png_decode(struct image *image, const struct encoded *file, struct error *error);
status gif_decode(struct image *image, const struct encoded *file, struct error *error);
status bmp_decode(struct image *image, const struct encoded *file, struct error *error);

/* image_create with the file's name in front of what is wrong; takes what the file claims, however large. */
status image_create_claimed(struct image *image, int64_t width, int64_t height, const char *name, struct error *error);

#endif
