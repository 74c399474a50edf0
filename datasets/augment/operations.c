#include "datasets/augment/operations.h"

#include <math.h>
#include <string.h>

/* --- colours, with the bytes that Pillow's ImageOps and ImageEnhance give ------------------------------------------ */

enum { LEVELS = 256 };

static size_t pixels_of(const struct canvas *canvas)
{
    return (size_t)canvas->side * (size_t)canvas->side;
}

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

/* Applies one table to all channels. */
static void apply_table(const struct canvas *canvas, struct tables *tables)
{
    memcpy(tables->of[1], tables->of[0], LEVELS);
    memcpy(tables->of[2], tables->of[0], LEVELS);
    apply_tables(canvas, tables);
}

static void posterize(const struct canvas *canvas, int bits)
{
    struct tables tables;
    for (int v = 0; v < LEVELS; v++)
        tables.of[0][v] = (uint8_t)(v >> (8 - bits) << (8 - bits));
    apply_table(canvas, &tables);
}

static void solarize(const struct canvas *canvas, double threshold)
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

static void spread(const struct canvas *canvas, bool evenly)
{
    struct histograms histograms;
    struct tables tables;
    count_levels(canvas, &histograms);
    for (int c = 0; c < 3; c++)
        if (evenly)
            equalize(histograms.of[c], pixels_of(canvas), tables.of[c]);
        else
            stretch(histograms.of[c], tables.of[c]);
    apply_tables(canvas, &tables);
}

/* Extrapolates from a colour; factor 1 changes nothing. */
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

/* From one grey: black, or the mean grey. */
static void away_from(const struct canvas *canvas, int level, float factor)
{
    struct tables tables;
    for (int v = 0; v < LEVELS; v++)
        tables.of[0][v] = away(level, v, factor);
    apply_table(canvas, &tables);
}

static void contrast(const struct canvas *canvas, float factor)
{
    uint64_t total = 0;
    for (size_t i = 0; i < pixels_of(canvas); i++)
        total += (uint64_t)grey(canvas->pixels + 3 * i);
    away_from(canvas, (int)((double)total / (double)pixels_of(canvas) + 0.5), factor);
}

static void saturation(const struct canvas *canvas, float factor)
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

static void sharpness(const struct canvas *canvas, float factor)
{
    size_t row = (size_t)canvas->side * 3, rows = (size_t)canvas->side;
    memcpy(canvas->scratch, canvas->pixels, row * rows);
    for (size_t y = 1; y + 1 < rows; y++) {
        const uint8_t *from = canvas->scratch + y * row;
        sharpen_row(from - row, from, from + row, row, factor, canvas->pixels + y * row);
    }
}

/* --- affine transforms as Pillow's, of the nearest neighbours: positions in 16.16 fixed point ------------------------ */

static int32_t fixed(double value)
{
    return (int32_t)floor(value * 65536.0 + 0.5);
}

/* The first pixel and the one behind the last whose position first + i · step is inside [0, side) in 16.16 fixed point. */
struct range {
    int begin, end;
};

static struct range narrow(struct range range, int32_t first, int32_t step, int side)
{
    while (range.begin < range.end && (uint32_t)((first + range.begin * step) >> 16) >= (uint32_t)side)
        range.begin++;
    while (range.begin < range.end && (uint32_t)((first + (range.end - 1) * step) >> 16) >= (uint32_t)side)
        range.end--;
    return range;
}

/* Pixel (x, y) becomes the pixel at (m₀x + m₁y + m₂, m₃x + m₄y + m₅), or black outside the image; pixel centres are at
 * halves. */
static void transform(const struct canvas *canvas, const double m[6])
{
    int side = canvas->side;
    size_t row = (size_t)side * 3;
    int32_t xx = fixed(m[0]), xy = fixed(m[1]), yx = fixed(m[3]), yy = fixed(m[4]),
            x0 = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), y0 = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
    for (int y = 0; y < side; y++, x0 += xy, y0 += yy) {
        uint8_t *to = canvas->scratch + (size_t)y * row;
        /* positions are linear along a row, so those inside are next to one another */
        struct range inside = narrow(narrow((struct range){0, side}, x0, xx, side), y0, yx, side);
        memset(to, 0, row);
        for (int x = inside.begin; x < inside.end; x++)
            memcpy(to + 3 * x, canvas->pixels + (size_t)((y0 + x * yx) >> 16) * row + (size_t)((x0 + x * xx) >> 16) * 3,
                   3);
    }
    memcpy(canvas->pixels, canvas->scratch, row * (size_t)side);
}

/* --- by name ------------------------------------------------------------------------------------------------------ */

bool operation_signed(enum operation operation)
{
    return operation >= OPERATION_SHEAR_X && operation <= OPERATION_SHARPNESS;
}

/* torch.linspace(0, end, last + 1) in float: from both ends, with one rounding on the second half. */
static double spaced(double end, size_t bin, size_t last)
{
    float most = (float)end, step = most / (float)last;
    if (bin < (last + 1) / 2)
        return (double)(step * (float)bin);
    return (double)(float)((double)most - (double)step * (double)(last - bin));
}

double operation_magnitude(enum operation operation, size_t bin, size_t last, int side)
{
    switch (operation) {
    case OPERATION_SHEAR_X:
    case OPERATION_SHEAR_Y:
        return spaced(0.3, bin, last);
    case OPERATION_TRANSLATE_X:
    case OPERATION_TRANSLATE_Y:
        return spaced(150.0 / 331.0 * side, bin, last);
    case OPERATION_ROTATE:
        return spaced(30, bin, last);
    case OPERATION_BRIGHTNESS:
    case OPERATION_COLOR:
    case OPERATION_CONTRAST:
    case OPERATION_SHARPNESS:
        return spaced(0.9, bin, last);
    case OPERATION_POSTERIZE:
        return 8 - nearbyint((double)bin / ((double)last / 4));
    case OPERATION_SOLARIZE:
        return 255 - 255 * (double)bin / (double)last;
    default:
        return 0;
    }
}

/* About the image's centre, counterclockwise. */
static void rotate(const struct canvas *canvas, double degrees)
{
    double angle = -degrees * (3.14159265358979323846 / 180), c = cos(angle), s = sin(angle),
           middle = canvas->side / 2.0;
    transform(canvas,
              (const double[]){c, s, middle - c * middle - s * middle, -s, c, middle + s * middle - c * middle});
}

void operation_apply(enum operation operation, double magnitude, const struct canvas *canvas)
{
    switch (operation) {
    case OPERATION_SHEAR_X:
        transform(canvas, (const double[]){1, magnitude, 0, 0, 1, 0});
        break;
    case OPERATION_SHEAR_Y:
        transform(canvas, (const double[]){1, 0, 0, magnitude, 1, 0});
        break;
    case OPERATION_TRANSLATE_X:
        transform(canvas, (const double[]){1, 0, -trunc(magnitude), 0, 1, 0});
        break;
    case OPERATION_TRANSLATE_Y:
        transform(canvas, (const double[]){1, 0, 0, 0, 1, -trunc(magnitude)});
        break;
    case OPERATION_ROTATE:
        rotate(canvas, magnitude);
        break;
    case OPERATION_BRIGHTNESS:
        away_from(canvas, 0, (float)(1 + magnitude));
        break;
    case OPERATION_COLOR:
        saturation(canvas, (float)(1 + magnitude));
        break;
    case OPERATION_CONTRAST:
        contrast(canvas, (float)(1 + magnitude));
        break;
    case OPERATION_SHARPNESS:
        sharpness(canvas, (float)(1 + magnitude));
        break;
    case OPERATION_POSTERIZE:
        posterize(canvas, (int)magnitude);
        break;
    case OPERATION_SOLARIZE:
        solarize(canvas, magnitude);
        break;
    case OPERATION_AUTO_CONTRAST:
        spread(canvas, false);
        break;
    case OPERATION_EQUALIZE:
        spread(canvas, true);
        break;
    case OPERATION_INVERT:
        solarize(canvas, 0);
        break;
    case OPERATION_IDENTITY:
    case OPERATIONS:
        break;
    }
}

/* --- AutoAugment -------------------------------------------------------------------------------------------------- */

/* Its policy for CIFAR-10 with magnitudes as torchvision has them, in ten bins. Operations without a magnitude have bin 0. */
const struct autoaugment_step autoaugment_policies[AUTOAUGMENT_POLICIES][AUTOAUGMENT_STEPS] = {
    {{OPERATION_INVERT, 0.1F, 0}, {OPERATION_CONTRAST, 0.2F, 6}},
    {{OPERATION_ROTATE, 0.7F, 2}, {OPERATION_TRANSLATE_X, 0.3F, 9}},
    {{OPERATION_SHARPNESS, 0.8F, 1}, {OPERATION_SHARPNESS, 0.9F, 3}},
    {{OPERATION_SHEAR_Y, 0.5F, 8}, {OPERATION_TRANSLATE_Y, 0.7F, 9}},
    {{OPERATION_AUTO_CONTRAST, 0.5F, 0}, {OPERATION_EQUALIZE, 0.9F, 0}},
    {{OPERATION_SHEAR_Y, 0.2F, 7}, {OPERATION_POSTERIZE, 0.3F, 7}},
    {{OPERATION_COLOR, 0.4F, 3}, {OPERATION_BRIGHTNESS, 0.6F, 7}},
    {{OPERATION_SHARPNESS, 0.3F, 9}, {OPERATION_BRIGHTNESS, 0.7F, 9}},
    {{OPERATION_EQUALIZE, 0.6F, 0}, {OPERATION_EQUALIZE, 0.5F, 0}},
    {{OPERATION_CONTRAST, 0.6F, 7}, {OPERATION_SHARPNESS, 0.6F, 5}},
    {{OPERATION_COLOR, 0.7F, 7}, {OPERATION_TRANSLATE_X, 0.5F, 8}},
    {{OPERATION_EQUALIZE, 0.3F, 0}, {OPERATION_AUTO_CONTRAST, 0.4F, 0}},
    {{OPERATION_TRANSLATE_Y, 0.4F, 3}, {OPERATION_SHARPNESS, 0.2F, 6}},
    {{OPERATION_BRIGHTNESS, 0.9F, 6}, {OPERATION_COLOR, 0.2F, 8}},
    {{OPERATION_SOLARIZE, 0.5F, 2}, {OPERATION_INVERT, 0.0F, 0}},
    {{OPERATION_EQUALIZE, 0.2F, 0}, {OPERATION_AUTO_CONTRAST, 0.6F, 0}},
    {{OPERATION_EQUALIZE, 0.2F, 0}, {OPERATION_EQUALIZE, 0.6F, 0}},
    {{OPERATION_COLOR, 0.9F, 9}, {OPERATION_EQUALIZE, 0.6F, 0}},
    {{OPERATION_AUTO_CONTRAST, 0.8F, 0}, {OPERATION_SOLARIZE, 0.2F, 8}},
    {{OPERATION_BRIGHTNESS, 0.1F, 3}, {OPERATION_COLOR, 0.7F, 0}},
    {{OPERATION_SOLARIZE, 0.4F, 5}, {OPERATION_AUTO_CONTRAST, 0.9F, 0}},
    {{OPERATION_TRANSLATE_Y, 0.9F, 9}, {OPERATION_TRANSLATE_Y, 0.7F, 9}},
    {{OPERATION_AUTO_CONTRAST, 0.9F, 0}, {OPERATION_SOLARIZE, 0.8F, 3}},
    {{OPERATION_EQUALIZE, 0.8F, 0}, {OPERATION_INVERT, 0.1F, 0}},
    {{OPERATION_TRANSLATE_Y, 0.7F, 9}, {OPERATION_AUTO_CONTRAST, 0.9F, 0}},
};

struct autoaugment_draw autoaugment_draw(const struct rng *rng, uint64_t item)
{
    uint32_t words[4];
    rng_block(rng, item, words);
    return (struct autoaugment_draw){.policy = (uint64_t)words[0] * AUTOAUGMENT_POLICIES >> 32,
                                     .chance = {(float)(words[1] >> 8) * 0x1p-24F, (float)(words[2] >> 8) * 0x1p-24F},
                                     .negative = {words[3] >> 31 != 0, (words[3] >> 30 & 1) != 0}};
}

void autoaugment_apply(const struct autoaugment_draw *draw, const struct canvas *canvas)
{
    for (int i = 0; i < AUTOAUGMENT_STEPS; i++) {
        const struct autoaugment_step *step = &autoaugment_policies[draw->policy][i];
        double magnitude = operation_magnitude(step->operation, step->bin, AUTOAUGMENT_LAST_BIN, canvas->side);
        bool negative = operation_signed(step->operation) && draw->negative[i];
        if (draw->chance[i] <= step->probability)
            operation_apply(step->operation, negative ? -magnitude : magnitude, canvas);
    }
}
