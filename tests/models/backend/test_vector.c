/* The inner loops of the CPU backend, on every instruction set that this machine has: against libm, at their edges. Sums, maps and
 * products show in the operations, whose tests run with each set. */
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "models/cpu/kernels.h"
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

enum { LONGEST = 577 };
static const size_t lengths[] = {1, 7, 31, 32, 33, 63, 65, 197, 577};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* A test of kernels, which runs on every set of them that this machine has. */
#define KERNEL_TEST(name, kind)                                                                                        \
    static void name##_on(const struct kind##_kernels *kind);                                                          \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        const struct kind##_kernels *kernels = kind##_kernels_at(0);                                                   \
        assert_non_null(kernels);                                                                                      \
        for (size_t set = 1; kernels != NULL; kernels = kind##_kernels_at(set++))                                      \
            name##_on(kernels);                                                                                        \
    }                                                                                                                  \
    static void name##_on(const struct kind##_kernels *kind)

static void fill(float *x, float deviation, uint32_t task)
{
    struct rng rng = rng_make(3, RNG_TEST, task, 0);
    for (size_t i = 0; i < LONGEST; i++)
        x[i] = deviation * rng_normal(&rng, i);
}

static void near(const char *set, const char *what, double got, double expected, double tolerance)
{
    if (isfinite(expected) ? !(fabs(got - expected) <= tolerance) : isnan(expected) ? !isnan(got) : got != expected)
        fail_msg("%s, %s: expected %.9g, found %.9g, tolerance %.3g", set, what, expected, got, tolerance);
}

/* The exponential shows in softmax of two values: y₀/y₁ = e^(x₀ − x₁). */
KERNEL_TEST(exponential_is_accurate, vector)
{
    for (double x = -86.5; x <= 0; x += 0.0173) {
        const float pair[2] = {(float)x, 0};
        float p[2];
        vector->softmax(2, 1.0f, pair, p);
        double ratio = (double)p[0] / (double)p[1], expected = exp((double)pair[0]);
        near(vector->name, "e^x", ratio / expected, 1, 4 * 0x1p-23);
    }
    float far[3] = {-1e30f, 0, 3e38f}; /* no overflow, no NaN */
    vector->softmax(3, 0.125f, far, far);
    near(vector->name, "softmax far out", (double)far[2], 1, 0);
    near(vector->name, "softmax far out", (double)(far[0] + far[1]), 0, 1e-30);
}

/* Steps through where the functions bend, and on to where they are flat. Far from zero 1 − σ and 1 + erf cancel, and x
 * times what rounding left of them remains. GELU = x (1 + erf(x / √2)) / 2 shows the error of erf near zero, too. */
KERNEL_TEST(activations_are_accurate, vector)
{
    static const float extremes[] = {-3e38f, -1e4f, 1e4f, 3e38f, NAN, -NAN};
    for (enum activation kind = ACTIVATION_NONE; kind <= ACTIVATION_SIGMOID; kind++) {
        float x, y, slope, one = 1;
        for (double at = -30; at <= 30; at += 0.00731) {
            x = (float)at;
            vector->activate(kind, 1, &x, &y);
            vector->activate_backward(kind, 1, &x, &one, &slope);
            double least = kind == ACTIVATION_GELU && fabs(at) > 1e-2 ? 0 : 1;
            near(vector->name, "activation", (double)y, reference_activation(kind, (double)x),
                 3e-7 * fmax(least, fabs((double)x)));
            near(vector->name, "slope", (double)slope, reference_slope(kind, (double)x),
                 3e-7 * fmax(1, fabs((double)x)));
        }
        for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
            vector->activate(kind, 1, &extremes[i], &y);
            /* what is left of the sigmoid, some e^-87, times the largest float */
            near(vector->name, "activation far out", (double)y, reference_activation(kind, (double)extremes[i]),
                 extremes[i] < -1e30f ? 10 : 1e-30);
        }
    }
}

/* The numbers of core/rng.h, word for word; of normal ones the angle 2πv is rounded before the cosine is taken. */
KERNEL_TEST(random_numbers_are_philox, vector)
{
    enum { BLOCKS = 37, NORMALS = 50001 };
    static float x[4 * BLOCKS], y[NORMALS];
    const uint64_t first = ((uint64_t)7 << 32) - 3; /* the counter's low word overflows on the way */
    const struct rng rng = rng_make(0x0123456789abcdefu, RNG_DROPOUT, 12, 345);
    const uint32_t key[2] = {(uint32_t)rng.seed, (uint32_t)(rng.seed >> 32)},
                   counter[2] = {rng.step, rng.purpose << 16 | rng.task};
    for (size_t i = 0; i < 4 * BLOCKS; i++)
        x[i] = 1;
    vector->dropout(BLOCKS, first, key, counter, 1u << 30, 2.0f, x);
    for (size_t i = 0; i < 4 * BLOCKS; i++)
        near(vector->name, "dropout", (double)x[i], reference_dropout(&rng, 4 * first + i, 0.25) > 0 ? 2 : 0, 0);
    vector->normals(NORMALS, first, key, counter, y);
    for (size_t i = 0; i < NORMALS; i++)
        near(vector->name, "normal numbers", (double)y[i], (double)rng_normal(&rng, first + i), 3e-6);
}

/* From where softplus is eᵘ to where it is u. */
KERNEL_TEST(routing_noise_is_accurate, vector)
{
    const float noise = -1.5f, epsilon = 0.0f;
    for (double at = -80; at <= 120; at += 0.0137) {
        float u = (float)at, z = 0;
        double expected = (double)noise * (at > 40 ? (double)u : log1p(exp((double)u)));
        vector->add_noise(1, epsilon, &u, &noise, &z);
        near(vector->name, "softplus", (double)z / expected, 1, 6 * 0x1p-23);
    }
}

/* Numbers that are no numbers are not lost on the way. */
KERNEL_TEST(what_is_not_finite_stays_so, vector)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float x[LONGEST], y[LONGEST], ones[LONGEST], zeros[LONGEST] = {0}, statistics[2];
    fill(x, 1, 7);
    for (size_t i = 0; i < LONGEST; i++)
        ones[i] = 1;
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        assert_true(vector->finite(n, x));
        for (size_t b = 0; b < 4; b++)
            for (size_t at = 0; at < n; at += n / 3 + 1) {
                float kept = x[at];
                x[at] = bad[b];
                assert_false(vector->finite(n, x));
                vector->softmax(n, 0.125f, x, y);
                bool weightless = bad[b] < 0 && n > 1; /* −∞ beside others */
                for (size_t i = 0; i < n; i++)
                    assert_true(weightless ? isfinite(y[i]) && (i == at) == (y[i] == 0) : isnan(y[i]));
                vector->layer_norm(n, x, ones, zeros, 1e-5f, y, statistics);
                assert_true(isnan(y[0]) && isnan(y[n - 1]) && isnan(statistics[1]));
                x[at] = kept;
            }
    }
}

/* To the nearest, a tie to the even one; an infinity and a NaN stay; nothing is written past the end, nor by what goes
 * past the caches. */
KERNEL_TEST(bf16_is_rounded_to_the_nearest, bf16)
{
    static const struct {
        uint32_t bits;
        uint16_t rounded;
    } cases[] = {{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0xbf817fff, 0xbf81},
                 {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x80000000, 0x8000},
                 {0x40490fdb, 0x4049}}; /* nine, so that no register holds what its neighbour holds */
    enum { CASES = sizeof cases / sizeof *cases, MOST = 70 };
    float x[MOST];
    for (size_t i = 0; i < MOST; i++)
        memcpy(&x[i], &cases[i % CASES].bits, sizeof x[i]);
    for (size_t n = 0; n < MOST; n++) {
        _Alignas(64) uint16_t y[MOST] = {0};
        _Alignas(64) float copied[MOST] = {0};
        (n % 2 == 0 ? bf16->stream_rounded : bf16->round)(n, x, y);
        bf16->stream(n, x, copied);
        bf16->fence();
        assert_memory_equal(copied, x, n * sizeof *x);
        for (size_t i = 0; i < MOST; i++) {
            near(bf16->name, "rounded", y[i], i < n ? cases[i % CASES].rounded : 0, 0);
            assert_true(i < n || copied[i] == 0);
        }
    }
}

/* The tolerance is relative. */
static void near_bf16(const struct bf16_kernels *bf16, const char *what, double found, double expected,
                      double tolerance)
{
    near(bf16->name, what, found, expected, tolerance * fabs(expected) + 1e-12);
}

/* One row of n values, the last of them `last`: exponentials, probabilities and the gradient, and zeros behind them. */
static void bf16_attention_row(const struct bf16_kernels *bf16, size_t n, float last)
{
    const double exact = 4e-6, rounded = 0x1p-8, scale = 0.125;
    size_t padded = bf16_padded(n, BF16_DEPTH);
    float x[LONGEST + BF16_DEPTH], e[LONGEST + BF16_DEPTH], dp[LONGEST + BF16_DEPTH];
    uint16_t p[LONGEST + BF16_DEPTH], dx[LONGEST + BF16_DEPTH];
    fill(x, 20.0f, 31);
    fill(dp, 1.0f, 32);
    x[n - 1] = last;
    memcpy(e, x, sizeof e);
    float inverse = bf16->softmax(n, padded, (float)scale, e, p);
    bf16->softmax_backward(n, padded, (float)scale, inverse, e, dp, dx);
    double shares[LONGEST], mean = 0;
    for (size_t i = 0; i < n; i++)
        shares[i] = scale * (double)x[i];
    reference_softmax(shares, shares, n);
    double highest = shares[0]; /* 1 / the sum of the exponentials */
    for (size_t i = 0; i < n; i++) {
        highest = shares[i] > highest ? shares[i] : highest;
        mean += shares[i] * (double)dp[i];
    }
    near_bf16(bf16, "1 / sum", (double)inverse, highest, exact);
    for (size_t i = 0; i < n; i++) {
        if (!isnan(highest))
            near_bf16(bf16, "the exponential", (double)e[i], shares[i] / highest, exact);
        near_bf16(bf16, "the probability", (double)bf16_value(p[i]), shares[i], rounded);
        near_bf16(bf16, "the gradient", (double)bf16_value(dx[i]), scale * shares[i] * ((double)dp[i] - mean),
                  rounded + 1e-4 / (fabs((double)dp[i] - mean) + 1e-30));
    }
    for (size_t i = n; i < padded; i++)
        assert_true(e[i] == 0 && p[i] == 0 && dx[i] == 0);
}

KERNEL_TEST(bf16_attention_rows, bf16)
{
    static const float last[] = {30, 3e38f /* the only one that counts */, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t k = 0; k < sizeof last / sizeof *last; k++)
            bf16_attention_row(bf16, lengths[i], last[k]);
}

KERNEL_TEST(bf16_quick_gelu, bf16)
{
    static const float far[] = {-1e30f, 1e30f, -1e20f, INFINITY, NAN, 0, 90, -90};
    enum { FAR = sizeof far / sizeof *far };
    for (size_t k = 0; k < LENGTHS; k++) {
        float x[LONGEST], y[LONGEST + 1], dy[LONGEST], dx[LONGEST + 1];
        size_t n = lengths[k];
        fill(x, 4.0f, 33);
        fill(dy, 1.0f, 34);
        memcpy(x, far, (n < FAR ? n : FAR) * sizeof *far);
        y[n] = dx[n] = 7;
        bf16->quick_gelu(n, x, y);
        bf16->quick_gelu_backward(n, x, dy, dx);
        for (size_t i = 0; i < n; i++) {
            double expected = reference_activation(ACTIVATION_QUICK_GELU, (double)x[i]),
                   slope = reference_slope(ACTIVATION_QUICK_GELU, (double)x[i]);
            if (i < FAR) { /* no NaN but of NaN and of an infinity */
                assert_true(isnan(y[i]) == isnan(x[i]) && (isnan(dx[i]) == 0 || !isfinite(x[i])));
                near_bf16(bf16, "quick GELU far out", (double)fmaxf(y[i], 0), fmax(expected, 0), 1e-6);
                continue;
            }
            near_bf16(bf16, "quick GELU", (double)y[i], expected, 4e-6);
            near_bf16(bf16, "its gradient", (double)dx[i], (double)dy[i] * slope, 4e-6 + 1e-6 / fabs(slope));
        }
        assert_true(y[n] == 7 && dx[n] == 7);
    }
}
