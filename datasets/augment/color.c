/* Operations on colours, with the bytes that Pillow's ImageOps and ImageEnhance give. */
#include <string.h>

#include "datasets/augment/operations.h"

enum { LEVELS = 256 };

static size_t pixels_of(const struct canvas *canvas)
{
    return (size_t)canvas->side * (size_t)canvas->side;
}

/* --- one table per channel ---------------------------------------------------------------------------------------- */

struct tables {
    uint8_t of[3][LEVELS];
};

static void apply_tables(const struct canvas *canvas, const struct tables *tables)
{
    uint8_t *p = canvas->pixels;
    for (size_t i = 0; i < pixels_of(canvas); i++, p += 3) {
        p[0] = tables->of[0][p[0]];
        p[1] = tables->of[1][p[1]];
        p[2] = tables->of[2][p[2]];
    }
}

/* The same for all channels. */
static void apply_table(const struct canvas *canvas, struct tables *tables)
{
    memcpy(tables->of[1], tables->of[0], LEVELS);
    memcpy(tables->of[2], tables->of[0], LEVELS);
    apply_tables(canvas, tables);
}

void color_posterize(const struct canvas *canvas, int bits)
{
    struct tables tables;
    for (int v = 0; v < LEVELS; v++)
        tables.of[0][v] = (uint8_t)(v >> (8 - bits) << (8 - bits));
    apply_table(canvas, &tables);
}

void color_solarize(const struct canvas *canvas, double threshold)
{
    struct tables tables;
    for (int v = 0; v < LEVELS; v++)
        tables.of[0][v] = (uint8_t)(v < threshold ? v : 255 - v);
    apply_table(canvas, &tables);
}

struct histograms {
    uint32_t of[3][LEVELS];
};

static void count_levels(const struct canvas *canvas, struct histograms *histograms)
{
    const uint8_t *p = canvas->pixels;
    memset(histograms, 0, sizeof *histograms);
    for (size_t i = 0; i < pixels_of(canvas); i++, p += 3)
        for (int c = 0; c < 3; c++)
            histograms->of[c][p[c]]++;
}

static uint8_t to_byte(int64_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void keep_levels(uint8_t table[LEVELS])
{
    for (int v = 0; v < LEVELS; v++)
        table[v] = (uint8_t)v;
}

/* The darkest level becomes 0, the lightest 255. */
static void stretch(const uint32_t count[LEVELS], uint8_t table[LEVELS])
{
    int low = 0, high = LEVELS - 1;
    while (low < LEVELS - 1 && count[low] == 0)
        low++;
    while (high > 0 && count[high] == 0)
        high--;
    keep_levels(table);
    if (high <= low)
        return;
    double scale = 255.0 / (high - low), offset = -low * scale;
    for (int v = 0; v < LEVELS; v++)
        table[v] = to_byte((int64_t)(v * scale + offset));
}

/* Levels by the number of darker pixels. The lightest level does not count towards the step. */
static void equalize(const uint32_t count[LEVELS], size_t pixels, uint8_t table[LEVELS])
{
    int high = LEVELS - 1;
    while (high > 0 && count[high] == 0)
        high--;
    size_t step = (pixels - count[high]) / 255, darker = step / 2;
    keep_levels(table);
    for (int v = 0; step > 0 && v < LEVELS; v++) {
        table[v] = to_byte((int64_t)(darker / step));
        darker += count[v];
    }
}

void color_auto_contrast(const struct canvas *canvas)
{
    struct histograms histograms;
    struct tables tables;
    count_levels(canvas, &histograms);
    for (int c = 0; c < 3; c++)
        stretch(histograms.of[c], tables.of[c]);
    apply_tables(canvas, &tables);
}

void color_equalize(const struct canvas *canvas)
{
    struct histograms histograms;
    struct tables tables;
    count_levels(canvas, &histograms);
    for (int c = 0; c < 3; c++)
        equalize(histograms.of[c], pixels_of(canvas), tables.of[c]);
    apply_tables(canvas, &tables);
}

/* --- away from another image -------------------------------------------------------------------------------------- */

static inline uint8_t away(int from, int value, float factor)
{
    float moved = (float)from + factor * (float)(value - from);
    moved = moved > 0 ? moved : 0;
    return (uint8_t)(int)(moved < 255 ? moved : 255);
}

static inline int grey(const uint8_t *p)
{
    return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16;
}

static void away_from(const struct canvas *canvas, int level, float factor)
{
    struct tables tables;
    for (int v = 0; v < LEVELS; v++)
        tables.of[0][v] = away(level, v, factor);
    apply_table(canvas, &tables);
}

void color_brightness(const struct canvas *canvas, float factor)
{
    away_from(canvas, 0, factor);
}

void color_contrast(const struct canvas *canvas, float factor)
{
    uint64_t total = 0;
    for (size_t i = 0; i < pixels_of(canvas); i++)
        total += (uint64_t)grey(canvas->pixels + 3 * i);
    away_from(canvas, (int)((double)total / (double)pixels_of(canvas) + 0.5), factor);
}

void color_saturation(const struct canvas *canvas, float factor)
{
    uint8_t *p = canvas->pixels;
    for (size_t i = 0; i < pixels_of(canvas); i++, p += 3) {
        int level = grey(p);
        for (int c = 0; c < 3; c++)
            p[c] = away(level, p[c], factor);
    }
}

/* The blur is (Σ of the eight neighbours + 5 · the pixel) / 13, rounded; the border stays. */
static void sharpen_row(const uint8_t *above, const uint8_t *from, const uint8_t *below, size_t bytes, float factor,
                        uint8_t *restrict to)
{
    for (size_t i = 3; i + 3 < bytes; i++) {
        int sum = above[i - 3] + above[i] + above[i + 3] + from[i - 3] + 5 * from[i] + from[i + 3] + below[i - 3] +
                  below[i] + below[i + 3];
        to[i] = away((sum + 6) / 13, from[i], factor);
    }
}

void color_sharpness(const struct canvas *canvas, float factor)
{
    size_t row = (size_t)canvas->side * 3, rows = (size_t)canvas->side;
    memcpy(canvas->scratch, canvas->pixels, row * rows);
    for (size_t y = 1; y + 1 < rows; y++) {
        const uint8_t *from = canvas->scratch + y * row;
        sharpen_row(from - row, from, from + row, row, factor, canvas->pixels + y * row);
    }
}
