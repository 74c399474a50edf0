/* JPEG, PNG, GIF, WebP and BMP. What decodes has pixels to its last row, and small images can be brought to a model's size. */
#include "tests/fuzz/target.h"

#include "datasets/image/image.h"

enum { SIDE = 8, TRANSFORMED_MOST = 1 << 16 };

static void transform(const struct image *image)
{
    uint8_t pixels[SIDE * SIDE * 3];
    struct rng rng = rng_make(1, RNG_CROP, 0, 0);
    struct image_box box = image_draw_box(image->width, image->height, IMAGE_CROP_SCALE, &rng, 0);
    image_training_crop(image, box, SIDE, pixels);
    assert(image_evaluation_crop(image, SIDE, pixels, &fuzz_error) == OK);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct image image;
    if (image_decode(&image, data, size, "input", &fuzz_error) != OK) {
        assert(image.pixels == NULL);
        return 0;
    }
    size_t count = (size_t)image.width * (size_t)image.height * 3;
    fuzz_touch(image.pixels, count);
    if (count <= TRANSFORMED_MOST)
        transform(&image);
    image_free(&image);
    return 0;
}
