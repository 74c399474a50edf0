/* Two passes with an 8-bit image between them, in fixed point (Pillow's Resample.c; sums of integers are exact, so
 * their order is free). Only the columns of the wanted rectangle, and the rows that it needs, are filtered. */
#include "datasets/image/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* --- inner loops in plain C --------------------------------------------------------------------------------------- */

static void rows_plain(const struct filter_rows *rows, const struct kernel *kernel)
{
    for (int i = 0; i < kernel->count; i++) {
        const int32_t *weights = kernel->weights + (size_t)i * (size_t)kernel->groups * FILTER_GROUP;
        for (int r = 0; r < FILTER_ROWS; r++) {
            const uint8_t *source = rows->source[r] + (size_t)kernel->start[i] * 3;
            int32_t sums[3] = {1 << (FILTER_FRACTION - 1), 1 << (FILTER_FRACTION - 1), 1 << (FILTER_FRACTION - 1)};
            for (int j = 0; j < kernel->size[i]; j++)
                for (int c = 0; c < 3; c++)
                    sums[c] += weights[j] * source[3 * j + c];
            for (int c = 0; c < 3; c++)
                rows->target[r][3 * i + c] = filter_to_byte(sums[c]);
        }
    }
}

static void columns_plain(const struct filter_columns *columns)
{
    enum { BLOCK = 64 };
    const struct kernel *kernel = columns->kernel;
    const int32_t *weights = kernel->weights + (size_t)columns->output * (size_t)kernel->groups * FILTER_GROUP;
    size_t x = 0;
    for (; x + BLOCK <= columns->width; x += BLOCK) {
        int32_t sums[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            sums[i] = 1 << (FILTER_FRACTION - 1);
        for (int j = 0; j < kernel->size[columns->output]; j++)
            for (int i = 0; i < BLOCK; i++)
                sums[i] += weights[j] * columns->source[(size_t)j * columns->stride + x + (size_t)i];
        for (int i = 0; i < BLOCK; i++)
            columns->target[x + (size_t)i] = filter_to_byte(sums[i]);
    }
    for (; x < columns->width; x++)
        columns->target[x] = filter_column(columns, x);
}

const struct filters filters_plain = {rows_plain, columns_plain};

const struct filters *filters_at(size_t index)
{
    const struct filters *found[3];
    size_t count = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
        found[count++] = &filters_avx512;
    if (__builtin_cpu_supports("avx2"))
        found[count++] = &filters_avx2;
#endif
    found[count++] = &filters_plain;
    return index < count ? found[index] : NULL;
}

/* --- resampling -------------------------------------------------------------------------------------------------- */

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

/* --- CLIP's two transforms ---------------------------------------------------------------------------------------- */

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
