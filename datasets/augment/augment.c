#include "datasets/augment/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "datasets/augment/operations.h"

bool augmentation_mixes(const struct augmentation *a)
{
    return a->mixup > 0 || a->cutmix > 0;
}

const char *augmentation_key(const struct augmentation *a)
{
    return a->operations > 0                  ? "randaugment"
           : a->policy != AUGMENT_POLICY_NONE ? "autoaugment"
           : a->erasing > 0                   ? "random_erasing"
           : a->flip > 0                      ? "flip"
           : a->mixup > 0                     ? "mixup"
           : a->cutmix > 0                    ? "cutmix"
                                              : NULL;
}

/* The rectangle, empty where nothing is erased. */
static struct image_box draw_erasing(const struct rng *rng, uint64_t item, double probability, int side)
{
    enum { TRIES = 10 };
    const double unit = 0x1p-32, least = log(0.3), most = log(3.3);
    uint32_t words[4];
    rng_block(rng, item * (TRIES + 1), words);
    if (words[0] * unit >= probability)
        return (struct image_box){0};
    for (uint64_t k = 1; k <= TRIES; k++) {
        rng_block(rng, item * (TRIES + 1) + k, words);
        double area = (double)side * side * (0.02 + (0.33 - 0.02) * (words[0] * unit)),
               ratio = exp(least + (most - least) * (words[1] * unit));
        struct image_box box = {.height = (int)nearbyint(sqrt(area * ratio)),
                                .width = (int)nearbyint(sqrt(area / ratio))};
        if (box.height >= side || box.width >= side)
            continue;
        box.top = (int)((uint64_t)words[2] * (uint64_t)(side - box.height + 1) >> 32);
        box.left = (int)((uint64_t)words[3] * (uint64_t)(side - box.width + 1) >> 32);
        return box;
    }
    return (struct image_box){0};
}

static void fill(struct image_box box, enum erasing_fill color, int side, uint8_t *pixels)
{
    static const uint8_t colors[][3] = {[ERASING_FILL_MEAN] = {123, 117, 104}, /* CLIP's mean times 255 */
                                        [ERASING_FILL_BLACK] = {0, 0, 0}};
    for (int y = box.top; y < box.top + box.height; y++)
        for (int x = box.left; x < box.left + box.width; x++)
            for (int c = 0; c < 3; c++)
                pixels[((size_t)y * (size_t)side + (size_t)x) * 3 + (size_t)c] = colors[color][c];
}

void augment_mirror(int side, uint8_t *pixels)
{
    for (int y = 0; y < side; y++)
        for (int left = 0, right = side - 1; left < right; left++, right--) {
            uint8_t *a = pixels + 3 * (y * side + left), *b = pixels + 3 * (y * side + right), kept[3];
            memcpy(kept, a, 3);
            memcpy(a, b, 3);
            memcpy(b, kept, 3);
        }
}

static void apply_operations(const struct augmentation *a, struct rng rng, uint64_t item, int side, uint8_t *pixels)
{
    struct canvas canvas = {side, pixels, xmalloc((size_t)side * (size_t)side * 3)};
    rng.purpose = RNG_AUGMENT;
    if (a->policy != AUGMENT_POLICY_NONE) {
        struct autoaugment_draw draw = autoaugment_draw(&rng, item);
        autoaugment_apply(&draw, &canvas);
    }
    for (size_t k = 0; k < a->operations; k++) {
        uint32_t words[4];
        rng_block(&rng, item * AUGMENT_OPERATIONS_MOST + k, words);
        enum operation operation = (enum operation)((uint64_t)words[0] * RANDAUGMENT_OPERATIONS >> 32);
        double magnitude = operation_magnitude(operation, a->magnitude, AUGMENT_MAGNITUDE_MOST, side);
        bool negative = operation_signed(operation) && words[1] >> 31 != 0;
        operation_apply(operation, negative ? -magnitude : magnitude, &canvas);
    }
    free(canvas.scratch);
}

void augment_image(const struct augmentation *a, struct rng rng, uint64_t item, int side, uint8_t *pixels)
{
    rng.purpose = RNG_FLIP;
    if (a->flip > 0 && rng_uniform(&rng, item) < (float)a->flip)
        augment_mirror(side, pixels);
    if (a->operations > 0 || a->policy != AUGMENT_POLICY_NONE)
        apply_operations(a, rng, item, side, pixels);
    if (a->erasing > 0) {
        rng.purpose = RNG_ERASING;
        fill(draw_erasing(&rng, item, a->erasing, side), a->erasing_fill, side, pixels);
    }
}

/* --- mixup and CutMix --------------------------------------------------------------------------------------------- */

static double open_unit(uint32_t word)
{
    return ((double)word + 0.5) * 0x1p-32;
}

/* The logarithm of a number drawn from Gamma(alpha, 1) (Marsaglia and Tsang, "A simple method for generating gamma
 * variables", 2000), which does not underflow for small alpha. Uses the blocks from *index on. */
static double draw_log_gamma(const struct rng *rng, uint64_t *index, double alpha)
{
    const double least = 1e-300; /* two logarithms of −∞ would have no difference */
    double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        uint32_t words[4];
        rng_block(rng, (*index)++, words);
        double x = (double)philox_normal(words), root = 1 + c * x, v = root * root * root;
        if (root > 0 && log(open_unit(words[2])) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + (alpha < 1 ? log(open_unit(words[3])) / fmax(alpha, least) : 0);
    }
}

static double draw_beta(const struct rng *rng, double alpha)
{
    uint64_t index = 1; /* block 0 holds the other draws */
    double a = draw_log_gamma(rng, &index, alpha), b = draw_log_gamma(rng, &index, alpha);
    return 1 / (1 + exp(b - a));
}

static int below(uint32_t word, int n)
{
    return (int)((uint64_t)word * (uint64_t)n >> 32);
}

/* A square of 1 − own of the image's area around a point, clipped to the image. */
static struct image_box cut_box(double own, int x, int y, int side)
{
    int half = (int)(0.5 * sqrt(1 - own) * side), left = x - half, top = y - half, right = x + half, bottom = y + half;
    left = left < 0 ? 0 : left;
    top = top < 0 ? 0 : top;
    right = right > side ? side : right;
    bottom = bottom > side ? side : bottom;
    return (struct image_box){left, top, right - left, bottom - top};
}

struct mixing augment_draw_mixing(const struct augmentation *a, uint64_t seed, uint32_t task, uint64_t step, int side)
{
    struct rng rng = rng_make(seed, RNG_MIXING, task, (uint32_t)step);
    uint32_t words[4];
    rng_block(&rng, 0, words);
    struct mixing mixing = {.cut = a->mixup > 0 && a->cutmix > 0 ? words[0] >> 31 != 0 : a->cutmix > 0};
    double own = draw_beta(&rng, mixing.cut ? a->cutmix : a->mixup);
    if (mixing.cut) {
        mixing.box = cut_box(own, below(words[1], side), below(words[2], side), side);
        own = 1 - (double)mixing.box.width * mixing.box.height / ((double)side * side);
    } else if (words[3] * 0x1p-32 < a->unmixed) {
        own = 1;
    }
    mixing.own = (float)own;
    return mixing;
}

static void average(float own, size_t bytes, const uint8_t *restrict image, const uint8_t *restrict partner,
                    uint8_t *restrict mixed)
{
    float other = 1 - own;
    for (size_t i = 0; i < bytes; i++)
        mixed[i] = (uint8_t)(int)((float)image[i] * own + (float)partner[i] * other + 0.5f);
}

void augment_mix(const struct mixing *mixing, int side, const uint8_t *image, const uint8_t *partner, uint8_t *mixed)
{
    size_t row = (size_t)side * 3, bytes = row * (size_t)side;
    if (!mixing->cut) {
        average(mixing->own, bytes, image, partner, mixed);
        return;
    }
    struct image_box box = mixing->box;
    memcpy(mixed, image, bytes);
    for (int y = box.top; y < box.top + box.height; y++) {
        size_t at = (size_t)y * row + (size_t)box.left * 3;
        memcpy(mixed + at, partner + at, (size_t)box.width * 3);
    }
}
