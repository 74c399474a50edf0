#include "tests/bench/photographs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/rng.h"
#include "datasets/image/image.h"

enum { WIDTH = PHOTOGRAPH_WIDTH, HEIGHT = PHOTOGRAPH_HEIGHT, CHANNELS = 3, OBJECTS = 12, QUALITY = 90 };

static float noise_at(const struct rng *rng, int channel, int scale, int x, int y)
{
    uint64_t lattice = ((uint64_t)channel << 48) | ((uint64_t)scale << 32) | ((uint64_t)y << 16) | (uint64_t)x;
    return rng_uniform(rng, lattice) - 0.5f;
}

/* Values at the corners of squares of `scale` pixels, bilinear between them. */
static float smooth_noise(const struct rng *rng, int channel, int scale, int x, int y)
{
    int column = x / scale, row = y / scale;
    float u = (float)(x % scale) / (float)scale, v = (float)(y % scale) / (float)scale;
    float above =
        noise_at(rng, channel, scale, column, row) * (1 - u) + noise_at(rng, channel, scale, column + 1, row) * u;
    float below = noise_at(rng, channel, scale, column, row + 1) * (1 - u) +
                  noise_at(rng, channel, scale, column + 1, row + 1) * u;
    return above * (1 - v) + below * v;
}

/* Octaves whose strength falls with frequency, as in photographs; colour varies over large distances only. */
static void draw_texture(const struct rng *rng, float *values)
{
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            float light = 0;
            for (int scale = 128; scale >= 1; scale /= 2)
                light += smooth_noise(rng, 0, scale, x, y) * 30.0f * powf((float)scale, 0.25f);
            for (int c = 0; c < CHANNELS; c++) {
                float tint = smooth_noise(rng, 1 + c, 64, x, y) * 80 + smooth_noise(rng, 1 + c, 8, x, y) * 16;
                values[(y * WIDTH + x) * CHANNELS + c] = 120 + light + tint;
            }
        }
    }
}

/* Ellipses that shift the colour behind a hard edge. */
static void draw_objects(const struct rng *rng, float *values)
{
    for (int k = 0; k < OBJECTS; k++) {
        uint64_t base = (1ULL << 60) + (uint64_t)k * 16;
        float left = rng_uniform(rng, base) * WIDTH, top = rng_uniform(rng, base + 1) * HEIGHT;
        float width = 20 + rng_uniform(rng, base + 2) * 90, height = 20 + rng_uniform(rng, base + 3) * 90;
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++) {
                float dx = ((float)x - left) / width, dy = ((float)y - top) / height;
                for (int c = 0; dx * dx + dy * dy < 1 && c < CHANNELS; c++)
                    values[(y * WIDTH + x) * CHANNELS + c] += rng_uniform(rng, base + 4 + (uint64_t)c) * 80 - 40;
            }
        }
    }
}

static void draw(int number, float *values, struct image *image)
{
    struct rng rng = rng_make((uint64_t)number, RNG_DRAWING, 0, 0);
    draw_texture(&rng, values);
    draw_objects(&rng, values);
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT * CHANNELS; i++)
        image->pixels[i] = (uint8_t)fminf(fmaxf(values[i], 0), 255);
}

status photographs_write(const char *folder, int count, struct error *error)
{
    struct image image;
    TRY(image_create(&image, WIDTH, HEIGHT, error));
    float *values = malloc((size_t)WIDTH * HEIGHT * CHANNELS * sizeof *values);
    status result = values != NULL ? OK : error_set(error, ERROR_MEMORY, "no memory for a picture");
    for (int i = 0; result == OK && i < count; i++) {
        char name[512];
        snprintf(name, sizeof name, "%s/%02d.jpg", folder, i);
        draw(i, values, &image);
        result = image_write_jpeg(name, &image, QUALITY, error);
    }
    free(values);
    image_free(&image);
    return result;
}
