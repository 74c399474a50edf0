#include "tests/bench/photograph.h"

#include "core/file.h"
#include "datasets/image/image.h"

enum { SEED = 1, QUALITY = 90 };

/* The same at every point of all channels. */
static void add_grain(struct image *image, uint64_t item, int range)
{
    uint64_t state = item * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < (size_t)image->width * (size_t)image->height; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        int grain = (int)((state >> 32) % (unsigned)(2 * range + 1)) - range;
        for (size_t c = 0; c < 3; c++) {
            int value = image->pixels[3 * i + c] + grain;
            image->pixels[3 * i + c] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
    }
}

static status write_picture(const struct photograph *p, int grain, size_t item, const char *path, uint64_t *bytes,
                            struct error *error)
{
    uint8_t pixels[SUITE_PIXELS];
    struct image image, small = {.pixels = pixels, .width = p->drawn->side, .height = p->drawn->side};
    suite_drawing(p->drawn, SEED, item, (int)(item % (size_t)p->drawn->classes), pixels);
    TRY(image_resize(&small, (struct image_box){0, 0, small.width, small.height}, p->width, p->height, &image, error));
    add_grain(&image, item, grain);
    status result = image_write_jpeg(path, &image, QUALITY, error);
    image_free(&image);
    NEXT(result, file_size(path, bytes, error));
    return result;
}

status photograph_write(const struct photograph *p, size_t item, const char *path, uint64_t *bytes, struct error *error)
{
    return write_picture(p, p->grain, item, path, bytes, error);
}

status photograph_choose_grain(struct photograph *p, size_t item, const char *path, uint64_t bytes, struct error *error)
{
    enum { STEPS = 7 };
    for (int step = 1 << (STEPS - 1); step > 0; step /= 2) {
        uint64_t written;
        TRY(write_picture(p, p->grain + step, item, path, &written, error));
        if (written <= bytes)
            p->grain += step;
    }
    return OK;
}
