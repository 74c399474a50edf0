/* Two passes with an 8-bit image between them, in fixed point (Pillow's Resample.c; sums of integers are exact, so
 * their order is free). Only the columns of the wanted rectangle, and the rows that it needs, are filtered. */
#include "datasets/image/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static void kernel_free(struct kernel *kernel)
{
    free(kernel->start);
    free(kernel->weights);
    free(kernel->parts);
    free(kernel->digits);
}

static double cubic(double x)
{
    x = fabs(x);
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static void store_weight(struct kernel *kernel, int row, int tap, double weight)
{
    int32_t fixed = (int32_t)(weight * (1 << FILTER_FRACTION) + (weight < 0 ? -0.5 : 0.5));
    size_t group = (size_t)row * (size_t)kernel->groups + (size_t)tap / FILTER_GROUP,
           place = (size_t)tap % FILTER_GROUP;
    kernel->weights[group * FILTER_GROUP + place] = fixed;
    kernel->parts[group * 2 * FILTER_GROUP + place] = (int16_t)(fixed >> FILTER_LOW);
    kernel->parts[(group * 2 + 1) * FILTER_GROUP + place] = (int16_t)(fixed & ((1 << FILTER_LOW) - 1));
    for (size_t digit = FILTER_DIGITS; digit-- > 0; fixed = (fixed - (int8_t)(uint8_t)fixed) / 256)
        kernel->digits[(group * FILTER_DIGITS + digit) * FILTER_GROUP + place] = (int8_t)(uint8_t)fixed;
}

/* Weights of one output of an axis that goes from n to m samples. */
static void fill_weights(struct kernel *kernel, int row, int output, int n, int m)
{
    double scale = (double)n / m, filter_scale = fmax(scale, 1), support = 2 * filter_scale;
    double center = (output + 0.5) * scale, sum = 0;
    int from = (int)fmax(center - support + 0.5, 0), to = (int)fmin(center + support + 0.5, n);
    for (int j = from; j < to; j++)
        sum += cubic((j - center + 0.5) * (1 / filter_scale));
    for (int j = from; j < to; j++)
        store_weight(kernel, row, j - from, cubic((j - center + 0.5) * (1 / filter_scale)) * (1 / sum));
    kernel->start[row] = from;
    kernel->size[row] = to - from;
}

/* For the outputs [first, first + count) of an axis that goes from n to m ≠ n samples. */
static void kernel_create(struct kernel *kernel, int n, int m, int first, int count)
{
    int taps = (int)ceil(2 * fmax((double)n / m, 1)) * 2 + 1;
    *kernel = (struct kernel){.count = count, .groups = (taps + FILTER_GROUP - 1) / FILTER_GROUP};
    size_t weights = (size_t)count * (size_t)kernel->groups * FILTER_GROUP;
    kernel->start = xmalloc((size_t)count * 2 * sizeof *kernel->start);
    kernel->weights = xcalloc(weights, sizeof *kernel->weights);
    kernel->parts = xcalloc(weights, 2 * sizeof *kernel->parts);
    kernel->digits = xcalloc(weights, FILTER_DIGITS);
    kernel->size = kernel->start + count;
    for (int i = 0; i < count; i++)
        fill_weights(kernel, i, first + i, n, m);
}

static const struct filters *chosen_filters(const struct resampling *resampling)
{
    return resampling->filters != NULL ? resampling->filters : filters_at(0);
}

/* Rows that lie at the end of the image are copied to where reading ahead is allowed. */
static const uint8_t *readable_row(const struct resampling *resampling, int row, uint8_t *copy)
{
    const struct image *image = resampling->source;
    size_t stride = (size_t)image->width * 3, length = (size_t)resampling->box.width * 3;
    size_t offset = (size_t)(resampling->box.top + row) * stride + (size_t)resampling->box.left * 3;
    if (stride * (size_t)image->height - offset >= length + FILTER_AHEAD)
        return image->pixels + offset;
    memset(copy + length, 0, FILTER_AHEAD);
    return memcpy(copy, image->pixels + offset, length);
}

/* The box's rows [first, first + count) filtered into result [count, wanted.width, 3]. The last group repeats its
 * last row. */
static void filter_width(const struct resampling *resampling, int first, int count, uint8_t *result)
{
    struct kernel kernel;
    size_t length = (size_t)resampling->box.width * 3 + FILTER_AHEAD;
    kernel_create(&kernel, resampling->box.width, resampling->width, resampling->wanted.left, resampling->wanted.width);
    uint8_t *copies = xmalloc(FILTER_ROWS * length);
    for (int y = 0; y < count; y += FILTER_ROWS) {
        struct filter_rows rows;
        for (int r = 0; r < FILTER_ROWS; r++) {
            int row = y + r < count ? y + r : count - 1;
            rows.source[r] = readable_row(resampling, first + row, copies + (size_t)r * length);
            rows.target[r] = result + (size_t)row * (size_t)kernel.count * 3;
        }
        chosen_filters(resampling)->rows(&rows, &kernel);
    }
    free(copies);
    kernel_free(&kernel);
}

/* The horizontal pass; rows whose width does not change are only cut out. */
static void resample_width(const struct resampling *resampling, int first, int count, uint8_t *result)
{
    if (resampling->width != resampling->box.width) {
        filter_width(resampling, first, count, result);
        return;
    }
    size_t length = (size_t)resampling->wanted.width * 3;
    size_t column = (size_t)resampling->box.left + (size_t)resampling->wanted.left;
    for (int y = 0; y < count; y++) {
        size_t row = (size_t)(resampling->box.top + first + y) * (size_t)resampling->source->width;
        memcpy(result + (size_t)y * length, resampling->source->pixels + (row + column) * 3, length);
    }
}

static void resample_both(const struct resampling *resampling, const struct kernel *vertical, uint8_t *pixels)
{
    size_t stride = (size_t)resampling->wanted.width * 3;
    int last = vertical->count - 1, first = vertical->start[0];
    int count = vertical->start[last] + vertical->size[last] - first; /* the rows that any output needs */
    uint8_t *rows = xmalloc((size_t)count * stride);
    resample_width(resampling, first, count, rows);
    for (int y = 0; y < vertical->count; y++) {
        struct filter_columns columns = {rows + (size_t)(vertical->start[y] - first) * stride,
                                         stride,
                                         stride,
                                         vertical,
                                         y,
                                         pixels + (size_t)y * stride};
        chosen_filters(resampling)->columns(&columns);
    }
    free(rows);
}

void resample(const struct resampling *resampling, uint8_t *pixels)
{
    const struct image_box *wanted = &resampling->wanted;
    if (resampling->height == resampling->box.height) {
        resample_width(resampling, wanted->top, wanted->height, pixels);
        return;
    }
    struct kernel vertical;
    kernel_create(&vertical, resampling->box.height, resampling->height, wanted->top, wanted->height);
    resample_both(resampling, &vertical, pixels);
    kernel_free(&vertical);
}
