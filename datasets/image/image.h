/* Images in memory: 8-bit RGB, rows from the top, 3 bytes per pixel, no padding.
 *
 *     struct image image;
 *     TRY(image_decode_file(&image, "sun_aabb.jpg", error));       // JPEG, PNG, GIF, WebP or BMP, whatever the name says
 *     status result = image_evaluation_crop(&image, 224, pixels, error);   // [224, 224, 3]
 *     image_free(&image);
 *
 * Every pixel is the one that Pillow (up to 12.1) and torchvision give, bit for bit. All functions may run in several
 * threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"
#include "core/status.h"

struct image {
    uint8_t *pixels; /* [height, width, 3] */
    int width, height;
    bool clipped; /* a 16-bit grey PNG with values beyond 255, which are white now, as in Pillow */
};

/* The version of decoding and resampling, for caches: a number that is raised whenever a format or transform gives
 * other bytes, and the version of the JPEG library. */
const char *image_version(void);

#define IMAGE_PIXELS_MOST 178956970 /* Pillow's limit, checked before anything is allocated */

/* Content unspecified; an error when a side is below 1 or there are more than IMAGE_PIXELS_MOST pixels. */
status image_create(struct image *image, int width, int height, struct error *error);
void image_free(struct image *image);

/* Decodes JPEG, PNG, 24-bit BMP, or the first frame of GIF or WebP, recognised by content, to RGB: grey is copied to
 * three channels, alpha and transparency are dropped, EXIF orientation, colour profiles and gamma are ignored, missing
 * data is an error. name is for messages. The caller frees the image; after an error there is none. */
status image_decode(struct image *image, const uint8_t *data, size_t size, const char *name, struct error *error);
status image_decode_file(struct image *image, const char *path, struct error *error);

/* Whether a file counts as an image: by its ending (jpg jpeg png gif ppm bmp pgm tif tiff webp in any case), or
 * because a regular file begins like a supported format. An image that cannot be decoded is an error. A failure to
 * look into a file is an error, too, except for a file that is missing or may not be read. */
status image_file_recognize(bool *image, const char *path, struct error *error);

/* The file is complete or absent. */
status image_write_png(const char *path, const struct image *image, struct error *error);
/* Does not sync the file, for writing many (core/file_writer.h). */
status image_write_png_one_of_many(const char *path, const struct image *image, struct error *error);
/* The file is complete or absent. quality: 1 to 100; chroma is halved both ways (4:2:0). */
status image_write_jpeg(const char *path, const struct image *image, int quality, struct error *error);

/* A part of an image, in pixels. */
struct image_box {
    int left, top, width, height;
};

/* The box, which lies inside the image, resampled to width × height by Pillow's antialiased bicubic, horizontal pass first; no
 * pixel outside the box is used. The caller frees result. */
status image_resize(const struct image *source, struct image_box box, int width, int height, struct image *result,
                    struct error *error);

/* Evaluation transform: the shorter side to R = resolution, then a centre crop; pixels [R, R, 3] of the caller. Fails where the
 * longer side would be too long. */
status image_evaluation_crop(const struct image *image, int resolution, uint8_t *pixels, struct error *error);

/* Evaluation transform of models that see the whole image (SigLIP): both sides to R, without keeping their ratio.
 * Fails where the longer side is too long. */
status image_squash(const struct image *image, int resolution, uint8_t *pixels, struct error *error);

/* Training transform: the box, which lies inside the image, to R × R; pixels [R, R, 3] of the caller. */
void image_training_crop(const struct image *image, struct image_box box, int resolution, uint8_t *pixels);

#define IMAGE_CROP_SCALE 0.9

/* The box of a random-resized crop (torchvision's: scale to 1 of the area, ratio 3/4 to 4/3, ten tries, then the centre) of
 * an image of width × height. Uses the blocks 10·index … 10·index + 9 of rng, whose purpose is RNG_CROP. */
struct image_box image_draw_box(int width, int height, double scale, const struct rng *rng, uint64_t index);
