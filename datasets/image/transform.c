/* The two transforms of CLIP's pipeline on decoded images. */
#include <math.h>

#include "datasets/image/resample.h"

status image_resize(const struct image *source, struct image_box box, int width, int height, struct image *result,
                    struct error *error)
{
    TRY(image_create(result, width, height, error));
    struct resampling resampling = {source, box, width, height, {0, 0, width, height}, NULL};
    resample(&resampling, result->pixels);
    return OK;
}

/* (size − resolution) / 2, a half rounded to the even neighbour. */
static int center_offset(int size, int resolution)
{
    int twice = size - resolution;
    return twice / 2 + (twice % 2 != 0 && twice / 2 % 2 != 0);
}

static status too_long(const struct image *image, int resolution, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT, "an image of %d×%d pixels cannot be resized to a resolution of %d",
                     image->width, image->height, resolution);
}

status image_evaluation_crop(const struct image *image, int resolution, uint8_t *pixels, struct error *error)
{
    int64_t shorter = image->width < image->height ? image->width : image->height;
    int64_t width = (int64_t)resolution * image->width / shorter,
            height = (int64_t)resolution * image->height / shorter;
    if (width > INT32_MAX || height > INT32_MAX)
        return too_long(image, resolution, error);
    struct image_box wanted = {center_offset((int)width, resolution), center_offset((int)height, resolution),
                               resolution, resolution};
    struct resampling resampling = {image, {0, 0, image->width, image->height}, (int)width, (int)height, wanted, NULL};
    resample(&resampling, pixels);
    return OK;
}

void image_training_crop(const struct image *image, struct image_box box, int resolution, uint8_t *pixels)
{
    struct resampling resampling = {image, box, resolution, resolution, {0, 0, resolution, resolution}, NULL};
    resample(&resampling, pixels);
}

/* Whole images of any ratio: the memory of both passes grows with the longer side. */
status image_squash(const struct image *image, int resolution, uint8_t *pixels, struct error *error)
{
    int64_t longer = image->width > image->height ? image->width : image->height;
    if (longer * resolution > IMAGE_PIXELS_MOST)
        return too_long(image, resolution, error);
    image_training_crop(image, (struct image_box){0, 0, image->width, image->height}, resolution, pixels);
    return OK;
}

/* If no draw fits: the centre, with the ratio clamped to 3/4 … 4/3. */
static struct image_box fallback_box(int width, int height)
{
    double ratio = (double)width / height;
    struct image_box box = {0, 0, width, height};
    if (ratio < 3.0 / 4)
        box.height = (int)nearbyint(width / (3.0 / 4));
    else if (ratio > 4.0 / 3)
        box.width = (int)nearbyint(height * (4.0 / 3));
    box.left = (width - box.width) / 2;
    box.top = (height - box.height) / 2;
    return box;
}

struct image_box image_draw_box(int width, int height, double scale, const struct rng *rng, uint64_t index)
{
    enum { TRIES = 10 };
    const double unit = 0x1p-32, least = log(3.0 / 4), most = log(4.0 / 3);
    for (uint64_t k = 0; k < TRIES; k++) {
        uint32_t words[4];
        rng_block(rng, index * TRIES + k, words);
        double area = (double)width * height * (scale + (1 - scale) * (words[0] * unit));
        double ratio = exp(least + (most - least) * (words[1] * unit));
        struct image_box box = {.width = (int)nearbyint(sqrt(area * ratio)),
                                .height = (int)nearbyint(sqrt(area / ratio))};
        if (box.width < 1 || box.height < 1 || box.width > width || box.height > height)
            continue;
        box.left = (int)((uint64_t)words[2] * (uint64_t)(width - box.width + 1) >> 32);
        box.top = (int)((uint64_t)words[3] * (uint64_t)(height - box.height + 1) >> 32);
        return box;
    }
    return fallback_box(width, height);
}
