/* Internal: one decoder per format, chosen by image_decode; BMP's is in image.c. Each creates the image after checking the
 * claimed size, and leaves nothing to free after an error. */
#pragma once

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
status webp_decode(struct image *image, const struct encoded *file, struct error *error);

/* image_create with the file's name in its error; accepts any claimed size. */
status image_create_claimed(struct image *image, int64_t width, int64_t height, const char *name, struct error *error);
