/* Augmentation: RandAugment's operations give torchvision's bytes, and what is drawn has the distributions of the papers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "datasets/augment/operations.h"
#include "tests/test.h"

enum { LARGEST = 224, R = 40, BYTES = R * R * 3 };

/* In the order of enum operation. */
static const char *const names[OPERATIONS] = {"Identity",  "ShearX",     "ShearY",       "TranslateX", "TranslateY",
                                              "Rotate",    "Brightness", "Color",        "Contrast",   "Sharpness",
                                              "Posterize", "Solarize",   "AutoContrast", "Equalize",   "Invert"};

/* As in fixtures/augment/record.py. */
static int level(const char *kind, int x, int y, int c)
{
    int noise = (x * x * (c + 1) + 3 * x * y + 7 * y * (c + 2) + (x * y * y >> 3)) & 255;
    return strcmp(kind, "noise") == 0  ? noise
           : strcmp(kind, "dim") == 0  ? 90 + 10 * c + (noise >> 3)
           : strcmp(kind, "dark") == 0 ? noise * noise >> 8
                                       : 77 + 40 * c;
}

static void draw(const char *kind, int side, uint8_t *pixels)
{
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < 3; c++)
                pixels[(y * side + x) * 3 + c] = (uint8_t)level(kind, x, y, c);
}

/* As often as draws with this probability are, but for five deviations. */
static void expect_share(double count, double draws, double probability)
{
    double apart = fabs(count / draws - probability), most = 5 * sqrt(probability * (1 - probability) / draws);
    if (!(apart < most))
        fail_msg("%g of %g draws, expected a share of %g", count, draws, probability);
}

static enum operation operation_of(const char *name)
{
    for (int k = 0; k < OPERATIONS; k++)
        if (strcmp(names[k], name) == 0)
            return (enum operation)k;
    fail_msg("unknown operation %s", name);
    return OPERATIONS;
}

static uint8_t pixels_of_canvas[LARGEST * LARGEST * 3], scratch_of_canvas[LARGEST * LARGEST * 3];
static struct canvas canvas = {.pixels = pixels_of_canvas, .scratch = scratch_of_canvas};

static void expect_digest(const char *line, size_t place, const char *expected)
{
    char found[DIGEST_SIZE];
    digest_bytes(canvas.pixels, (size_t)canvas.side * (size_t)canvas.side * 3, found);
    if (strncmp(found, expected, 8) != 0)
        fail_msg("expected %s, found %.8s at place %zu of: %s", expected, found, place, line);
}

/* Every magnitude of an operation on an image. */
static size_t check_operation(const char *line)
{
    char kind[16], name[16], sign, expected[9];
    int used, more;
    size_t bin = 0;
    assert_int_equal(sscanf(line, "%d %15s %15s %c%n", &canvas.side, kind, name, &sign, &used), 4);
    enum operation operation = operation_of(name);
    for (; sscanf(line + used, "%8s%n", expected, &more) == 1; bin++, used += more) {
        double magnitude = operation_magnitude(operation, bin, AUGMENT_MAGNITUDE_MOST, canvas.side);
        draw(kind, canvas.side, canvas.pixels);
        operation_apply(operation, sign == '-' ? -magnitude : magnitude, &canvas);
        expect_digest(line, bin, expected);
    }
    assert_true(operation_signed(operation) || sign == '+');
    return bin;
}

/* The sum of what is found in the lines of a file. */
static size_t check_lines(const char *path, size_t (*check)(const char *line))
{
    FILE *file = fopen(path, "r");
    char line[512];
    size_t cases = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        cases += check(line);
    fclose(file);
    return cases;
}

TEST(operations_give_the_bytes_of_torchvision)
{
    assert_int_equal(check_lines(FIXTURES "/augment/operations.txt", check_operation), 6 * (3 + 31 * (9 * 2 + 2)));
}

/* A sub-policy's probabilities, then the image with both operations, with the first and with the second one alone, each with
 * the four pairs of signs. */
static size_t check_policy(const char *line)
{
    char kind[16], expected[9];
    float first, second;
    int used, more;
    struct autoaugment_draw draws;
    assert_int_equal(sscanf(line, "%d %15s %zu %f %f%n", &canvas.side, kind, &draws.policy, &first, &second, &used), 5);
    assert_true(draws.policy < AUTOAUGMENT_POLICIES);
    const struct autoaugment_step *steps = autoaugment_policies[draws.policy];
    assert_true(steps[0].probability == first && steps[1].probability == second);
    for (size_t k = 0; k < 12; k++, used += more) {
        assert_int_equal(sscanf(line + used, "%8s%n", expected, &more), 1);
        draws.chance[0] = k / 4 == 2 ? 2 : first;
        draws.chance[1] = k / 4 == 1 ? 2 : second;
        draws.negative[0] = k & 2;
        draws.negative[1] = k & 1;
        draw(kind, canvas.side, canvas.pixels);
        autoaugment_apply(&draws, &canvas);
        expect_digest(line, k, expected);
    }
    return 1;
}

TEST(policies_give_the_bytes_of_torchvision)
{
    assert_int_equal(check_lines(FIXTURES "/augment/autoaugment.txt", check_policy), 6 * AUTOAUGMENT_POLICIES);
}

/* Every sub-policy is as frequent as any other, chances are uniform and signs even. */
TEST(policies_are_drawn_uniformly)
{
    enum { DRAWS = AUTOAUGMENT_POLICIES * 400 };
    size_t counts[AUTOAUGMENT_POLICIES] = {0}, negative[2] = {0};
    double chances[2] = {0}, product = 0;
    struct rng rng = rng_make(5, RNG_AUGMENT, 0, 0);
    for (uint64_t i = 0; i < DRAWS; i++) {
        struct autoaugment_draw one = autoaugment_draw(&rng, i);
        counts[one.policy]++;
        for (int k = 0; k < AUTOAUGMENT_STEPS; k++) {
            chances[k] += (double)one.chance[k];
            negative[k] += one.negative[k];
        }
        product += ((double)one.chance[0] - 0.5) * ((double)one.chance[1] - 0.5);
    }
    for (size_t k = 0; k < AUTOAUGMENT_POLICIES; k++)
        expect_share((double)counts[k], DRAWS, 1.0 / AUTOAUGMENT_POLICIES);
    for (int k = 0; k < AUTOAUGMENT_STEPS; k++) {
        assert_true(fabs(chances[k] / DRAWS - 0.5) < 5 * sqrt(1 / 12.0 / DRAWS));
        expect_share((double)negative[k], DRAWS, 0.5);
    }
    assert_true(fabs(product / DRAWS) < 5 / 12.0 / sqrt(DRAWS));
}

static void augment(const struct augmentation *a, uint32_t epoch, uint64_t item, uint8_t *pixels)
{
    draw("dim", R, pixels);
    augment_image(a, rng_make(5, RNG_TEST, 3, epoch), item, R, pixels);
}

TEST(an_image_gets_a_sub_policy)
{
    const struct augmentation a = {.policy = AUGMENT_POLICY_CIFAR10};
    for (uint64_t i = 0; i < 200; i++) {
        uint8_t found[BYTES], expected[BYTES], scratch[BYTES];
        struct rng rng = rng_make(5, RNG_AUGMENT, 3, (uint32_t)(i / 100));
        struct autoaugment_draw one = autoaugment_draw(&rng, i);
        draw("dim", R, expected);
        autoaugment_apply(&one, &(struct canvas){R, expected, scratch});
        augment(&a, (uint32_t)(i / 100), i, found);
        assert_memory_equal(found, expected, BYTES);
    }
}

/* Two of them one after the other, drawn anew for each item and epoch: each as frequent as any other, and so are both signs. */
TEST(operations_are_drawn_uniformly)
{
    enum { DRAWS = RANDAUGMENT_OPERATIONS * 400, MAGNITUDE = 20 };
    const struct augmentation two = {.operations = 2, .magnitude = MAGNITUDE};
    size_t counts[RANDAUGMENT_OPERATIONS] = {0}, negatives[RANDAUGMENT_OPERATIONS] = {0};
    for (uint64_t i = 0; i < DRAWS / 2; i++) {
        uint8_t found[BYTES], expected[BYTES], scratch[BYTES];
        struct rng rng = rng_make(5, RNG_AUGMENT, 3, (uint32_t)(i / 700));
        draw("dim", R, expected);
        for (size_t k = 0; k < 2; k++) {
            uint32_t words[4];
            rng_block(&rng, i % 700 * AUGMENT_OPERATIONS_MOST + k, words);
            enum operation operation = (enum operation)((double)words[0] * 0x1p-32 * RANDAUGMENT_OPERATIONS);
            bool negative = operation_signed(operation) && words[1] >= 0x80000000;
            double magnitude = operation_magnitude(operation, MAGNITUDE, AUGMENT_MAGNITUDE_MOST, R);
            operation_apply(operation, negative ? -magnitude : magnitude, &(struct canvas){R, expected, scratch});
            counts[operation]++;
            negatives[operation] += negative;
        }
        augment(&two, (uint32_t)(i / 700), i % 700, found);
        assert_memory_equal(found, expected, BYTES);
    }
    for (int k = 0; k < RANDAUGMENT_OPERATIONS; k++) {
        expect_share((double)counts[k], DRAWS, 1.0 / RANDAUGMENT_OPERATIONS);
        if (operation_signed((enum operation)k))
            expect_share((double)negatives[k], (double)counts[k], 0.5);
    }
}

/* The rectangle that has the colour, which the image lacks. */
static struct image_box find_box(const uint8_t *pixels, const uint8_t color[3])
{
    struct image_box box = {R, R, 0, 0};
    size_t count = 0;
    for (int y = 0; y < R; y++)
        for (int x = 0; x < R; x++)
            if (memcmp(pixels + (y * R + x) * 3, color, 3) == 0) {
                box.left = x < box.left ? x : box.left;
                box.top = y < box.top ? y : box.top;
                box.width = x + 1 > box.left + box.width ? x + 1 - box.left : box.width;
                box.height = y + 1 - box.top;
                count++;
            }
    assert_int_equal(count, box.width * box.height);
    return box;
}

TEST(erased_rectangles)
{
    enum { DRAWS = 3000 };
    static const uint8_t colors[2][3] = {{123, 117, 104}, {0, 0, 0}};
    uint8_t pixels[BYTES];
    for (int fill = 0; fill < 2; fill++) {
        struct augmentation a = {.erasing = 0.4, .erasing_fill = (enum erasing_fill)fill};
        double erased = 0, area = 0, wide = 0, left = 0, top = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            augment(&a, 2, i, pixels);
            struct image_box box = find_box(pixels, colors[fill]);
            if (box.width == 0)
                continue;
            double w = box.width, h = box.height;
            assert_true((w + 0.5) * (h + 0.5) >= 0.02 * R * R && (w - 0.5) * (h - 0.5) <= 0.33 * R * R);
            assert_true((h + 0.5) / (w - 0.5) >= 0.3 && (h - 0.5) / (w + 0.5) <= 3.3);
            erased++;
            area += w * h / (R * R);
            wide += w > h ? 1 : w < h ? 0 : 0.5;
            left += box.left > R - box.left - box.width ? 1 : 0;
            top += box.top > R - box.top - box.height ? 1 : 0;
        }
        expect_share(erased, DRAWS, 0.4);
        assert_true(fabs(area / erased - 0.175) < 0.02); /* uniform between 0.02 and 0.33; a few do not fit */
        expect_share(wide, erased, 0.5);
        expect_share(left, erased, 0.5);
        expect_share(top, erased, 0.5);
    }
}

/* Mean and variance of Beta(alpha, alpha), and of its mass below 1/10. */
TEST(shares_have_the_beta_distribution)
{
    enum { DRAWS = 20000 };
    static const struct {
        double alpha, below; /* P(own < 0.1), from SciPy's beta.cdf */
    } cases[] = {{0.2, 0.33668978}, {1, 0.1}, {0.8, 0.13180567}, {6, 0.00029571}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct augmentation a = {.mixup = cases[k].alpha};
        double sum = 0, squares = 0, below = 0, variance = 1 / (4 * (2 * cases[k].alpha + 1));
        for (uint64_t step = 0; step < DRAWS; step++) {
            struct mixing m = augment_draw_mixing(&a, 9, 1, step, R);
            double own = (double)m.own;
            assert_true(own >= 0 && own <= 1 && !m.cut);
            sum += own;
            squares += (own - 0.5) * (own - 0.5);
            below += own < 0.1;
        }
        assert_true(fabs(sum / DRAWS - 0.5) < 5 * sqrt(variance / DRAWS));
        assert_true(fabs(squares / DRAWS - variance) < 0.03 * variance + 1e-4);
        expect_share(below, DRAWS, cases[k].below);
    }
}

/* Of all batches, whatever else is drawn for them. */
TEST(mixup_has_a_probability)
{
    enum { DRAWS = 4000 };
    struct augmentation always = {.mixup = 1}, mostly = {.mixup = 1, .unmixed = 0.3}, both = {.cutmix = 1};
    size_t alone = 0, cut = 0;
    for (uint64_t step = 0; step < DRAWS; step++) {
        float own = augment_draw_mixing(&mostly, 9, 1, step, R).own;
        alone += own >= 1;
        if (own < 1)
            assert_float_equal(own, augment_draw_mixing(&always, 9, 1, step, R).own, 0);
        both.unmixed = 1;
        cut += augment_draw_mixing(&both, 9, 1, step, R).own < 1;
    }
    expect_share((double)alone, DRAWS, 0.3);
    assert_true(cut > DRAWS / 2); /* it is not CutMix's */
}

/* Half of the images, others in every epoch. */
TEST(flips)
{
    enum { DRAWS = 2000 };
    static uint8_t plain[BYTES], mirrored[BYTES], pixels[BYTES];
    struct augmentation half = {.flip = 0.5}, always = {.flip = 1};
    size_t flipped = 0, differ = 0;
    augment(&(struct augmentation){0}, 0, 0, plain);
    augment(&always, 0, 0, mirrored);
    for (size_t i = 0; i < BYTES / 3; i++)
        assert_memory_equal(mirrored + 3 * i, plain + 3 * (i / R * R + R - 1 - i % R), 3);
    for (uint64_t i = 0; i < DRAWS; i++) {
        augment(&half, 3, i, pixels);
        bool first = memcmp(pixels, plain, BYTES) != 0;
        assert_memory_equal(pixels, first ? mirrored : plain, BYTES);
        augment(&half, 4, i, pixels);
        flipped += first;
        differ += first != (memcmp(pixels, plain, BYTES) != 0);
    }
    expect_share((double)flipped, DRAWS, 0.5);
    expect_share((double)differ, DRAWS, 0.5);
}

static float own_of(double alpha, uint64_t step)
{
    return augment_draw_mixing(&(struct augmentation){.mixup = alpha}, 1, 0, step, R).own;
}

/* An extreme alpha neither hangs nor gives NaN. */
TEST(extreme_alphas)
{
    for (uint64_t step = 0; step < 1000; step++) {
        float small = own_of(1e-6, step), least = own_of(1e-310, step);
        assert_true(small <= 1e-6F || small >= 1 - 1e-6F);
        assert_true(least == 0 || least == 1);
        assert_true(fabsf(own_of(AUGMENT_ALPHA_MOST, step) - 0.5F) < 0.1F);
    }
}

TEST(cut_rectangles)
{
    enum { DRAWS = 4000 };
    struct augmentation a = {.cutmix = 1};
    double own = 0, expected = 0;
    for (uint64_t step = 0; step < DRAWS; step++) {
        struct mixing m = augment_draw_mixing(&a, 9, 1, step, R);
        assert_true(m.cut && m.box.left >= 0 && m.box.top >= 0 && m.box.width >= 0 && m.box.height >= 0);
        assert_true(m.box.left + m.box.width <= R && m.box.top + m.box.height <= R);
        assert_true(fabsf(m.own - (1 - (float)(m.box.width * m.box.height) / (R * R))) < 1e-6F);
        own += (double)m.own;
    }
    /* Of a square of side s around a uniform point s − s²/4 per axis is inside on average; s = √(1 − own), own uniform. */
    for (int i = 0; i < 1000; i++) {
        double s = 2 * floor(0.5 * sqrt((i + 0.5) / 1000) * R) / R, inside = s - s * s / 4;
        expected += (1 - inside * inside) / 1000;
    }
    assert_true(fabs(own / DRAWS - expected) < 0.02);
}

TEST(both_kinds_of_mixing)
{
    enum { DRAWS = 2000 };
    struct augmentation both = {.mixup = 1000, .cutmix = 1};
    size_t cut = 0;
    for (uint64_t step = 0; step < DRAWS; step++) {
        struct mixing m = augment_draw_mixing(&both, 4, 0, step, R);
        cut += m.cut;
        if (!m.cut) /* of mixup's alpha, not of CutMix's */
            assert_true(fabsf(m.own - 0.5F) < 0.1F);
    }
    expect_share((double)cut, DRAWS, 0.5);
}

TEST(mixed_pixels)
{
    static uint8_t image[BYTES], partner[BYTES], mixed[BYTES];
    draw("noise", R, image);
    draw("dim", R, partner);
    struct mixing average = {.own = 0.3F}, cut = {.own = 0.9F, .cut = true, .box = {3, 5, 16, 10}};
    augment_mix(&average, R, image, partner, mixed);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(mixed[i], (int)floor(0.3 * image[i] + 0.7 * partner[i] + 0.5 + 1e-5));
    augment_mix(&cut, R, image, partner, mixed);
    for (int y = 0; y < R; y++)
        for (int x = 0; x < R; x++) {
            bool inside = x >= 3 && x < 19 && y >= 5 && y < 15;
            assert_memory_equal(mixed + (y * R + x) * 3, (inside ? partner : image) + (y * R + x) * 3, 3);
        }
    for (int side = 0; side < 2; side++) { /* the whole share of one of both */
        augment_mix(&(struct mixing){.own = (float)side}, R, image, partner, mixed);
        assert_memory_equal(mixed, side == 1 ? image : partner, BYTES);
    }
}
