/* Internal: Pillow's antialiased bicubic on 8-bit RGB, computing only the wanted rectangle of the result; its inner loops are
 * portable, for AVX2 or for AVX-512, and all give the same bytes. */
#pragma once

#include "datasets/image/image.h"

enum {
    FILTER_FRACTION = 22, /* bits; 8 for the pixel and 2 for the overshoot of the cubic fill up 32 */
    FILTER_LOW = 11,      /* bits of a weight's lower part: w = high · 2^11 + low, both fit 16 bits */
    FILTER_DIGITS = 3,    /* of a weight, in base 256 */
    FILTER_GROUP = 4,     /* taps that are stored together */
    FILTER_ROWS = 4,      /* rows filtered at once: they share a load of the weights */
    FILTER_AHEAD = 16     /* bytes that may be read beyond the last tap's first byte */
};

/* One axis: output i is the sum over taps j < size[i] of its weights · input[start[i] + j]. */
struct kernel {
    int count, groups; /* groups of FILTER_GROUP taps per output; unused weights are zero */
    int *start, *size;
    int32_t *weights; /* [count, groups, 4] */
    int16_t *parts;   /* [count, groups, 8]: four high parts, four low parts */
    int8_t *digits;   /* [count, groups, 3, 4]: digits of four weights in base 256, -128 to 127, highest first */
};

struct filter_rows {
    const uint8_t *source[FILTER_ROWS]; /* rows of RGB pixels, FILTER_AHEAD readable bytes behind them */
    uint8_t *target[FILTER_ROWS];       /* kernel.count pixels each */
};

/* One output row: target[x] = Σ weight of tap j · source[j · stride + x], x < width in bytes. */
struct filter_columns {
    const uint8_t *source;
    size_t stride, width;
    const struct kernel *kernel;
    int output;
    uint8_t *target;
};

struct filters {
    void (*rows)(const struct filter_rows *rows, const struct kernel *kernel);
    void (*columns)(const struct filter_columns *columns);
};

extern const struct filters filters_plain, filters_avx2, filters_avx512; /* the latter two on x86-64 only */

/* The filters that the machine can run, fastest first; NULL beyond the last. */
const struct filters *filters_at(size_t index);

static inline uint8_t filter_to_byte(int32_t sum)
{
    int32_t value = sum >> FILTER_FRACTION;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One column, for the remainder of the vector loops. */
static inline uint8_t filter_column(const struct filter_columns *columns, size_t x)
{
    const struct kernel *kernel = columns->kernel;
    const int32_t *weights = kernel->weights + (size_t)columns->output * (size_t)kernel->groups * FILTER_GROUP;
    int32_t sum = 1 << (FILTER_FRACTION - 1);
    for (int j = 0; j < kernel->size[columns->output]; j++)
        sum += weights[j] * columns->source[(size_t)j * columns->stride + x];
    return filter_to_byte(sum);
}

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
