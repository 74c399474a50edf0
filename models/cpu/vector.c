/* Compiled once per instruction set; VECTOR_TABLE, VECTOR_NAME and VECTOR_MULTIPLY come from the build. */
#include "models/cpu/kernels.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"

enum { VECTOR_LANES = 32 };

/* Operands may be one and the same vector, element for element; without this the compiler keeps a scalar loop for it. */
#if defined(__clang__)
#define ELEMENTWISE /* it compares the pointers at run time and has both loops */
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#endif

extern const struct vector_kernels VECTOR_TABLE;

/* These are compiled for finite values, so that whether one is finite shows in its bits alone. */
static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

enum { INFINITE_BITS = 0x7f800000 };
static const uint32_t MINUS_INFINITE_BITS = 0xff800000u;

static bool all_finite(size_t n, const float *x)
{
    int32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t magnitude = (int32_t)(bits_of(x[i]) & 0x7fffffffu);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest < INFINITE_BITS;
}

static void make_nan(size_t n, float *y)
{
    memset(y, 0xff, n * sizeof *y);
}

static inline void add_upper(int width, float *lanes)
{
    for (int j = 0; j < width; j++)
        lanes[j] += lanes[j + width];
}

/* Halves are added until one lane is left. In a loop over widths GCC takes the narrow ones value by value. */
static inline float lanes_sum(const float lanes[VECTOR_LANES])
{
    float part[VECTOR_LANES];
    memcpy(part, lanes, sizeof part);
    add_upper(16, part);
    add_upper(8, part);
    add_upper(4, part);
    add_upper(2, part);
    add_upper(1, part);
    return part[0];
}

/* Σ term over i in [0, n), in interleaved lanes. */
#define LANE_SUM(total, n, term)                                                                                       \
    do {                                                                                                               \
        float lanes_[VECTOR_LANES] = {0};                                                                              \
        size_t whole_ = (n) / VECTOR_LANES * VECTOR_LANES;                                                             \
        for (size_t first_ = 0; first_ < whole_; first_ += VECTOR_LANES)                                               \
            for (size_t j_ = 0; j_ < VECTOR_LANES; j_++) {                                                             \
                size_t i = first_ + j_;                                                                                \
                lanes_[j_] += (term);                                                                                  \
            }                                                                                                          \
        for (size_t i = whole_; i < (n); i++)                                                                          \
            lanes_[i - whole_] += (term);                                                                              \
        (total) = lanes_sum(lanes_);                                                                                   \
    } while (0)

/* eˣ within 2 units in the last place: Cody-Waite reduction by ln 2, then a polynomial of degree 6 (Moshier, Cephes
 * expf). */
static inline float fast_exp(float x)
{
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    float t = x * 1.44269504088896341f;
    int n = (int)(t + __builtin_copysignf(0.5f, t));
    float k = (float)n;
    float r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t bits = ((uint32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

static inline float sigmoid(float x)
{
    return 1.0f / (1.0f + fast_exp(-x));
}

/* max(x, 0), and NaN of NaN: what is zero are the bits of −0 to −∞. */
static inline float relu(float x)
{
    return bits_of(x) - 0x80000000u <= INFINITE_BITS ? 0.0f : x;
}

/* The clamps of fast_exp make a number of NaN. */
static inline float sigmoid_or_nan(float x)
{
    float y = sigmoid(x);
    return (bits_of(x) & 0x7fffffffu) > INFINITE_BITS ? x : y;
}

/* erf by a rational function on [−4, 4], beyond which it is ±1 in f32. */
static inline float fast_erf(float x)
{
    x = x > 4.0f ? 4.0f : x;
    x = x < -4.0f ? -4.0f : x;
    float s = x * x;
    float p = -2.72614225801306e-10f;
    p = p * s + 2.77068142495902e-08f;
    p = p * s - 2.10102402082508e-06f;
    p = p * s - 5.69250639462346e-05f;
    p = p * s - 7.34990630326855e-04f;
    p = p * s - 2.95459980854025e-03f;
    p = p * s - 1.60960333262415e-02f;
    float q = -1.45660718464996e-05f;
    q = q * s - 2.13374055278905e-04f;
    q = q * s - 1.68282697438203e-03f;
    q = q * s - 7.37332916720468e-03f;
    q = q * s - 1.42647390514189e-02f;
    return x * p / q;
}

/* ln x for normal x > 0 within 2 units in the last place: x = 2ⁿ m with √½ ≤ m < √2, then a polynomial of degree 8 in m − 1
 * (Moshier, Cephes logf). */
static inline float fast_log(float x)
{
    uint32_t bits = bits_of(x) - 0x3f3504f3u; /* √½ */
    float k = (float)((int32_t)bits >> 23), m;
    bits = (bits & 0x007fffffu) + 0x3f3504f3u;
    memcpy(&m, &bits, sizeof m);
    m -= 1.0f;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * m * m + k * -2.12194440e-4f;
    return m - 0.5f * m * m + p + k * 0.693359375f;
}

/* cos 2πv for 0 ≤ v < 1: −sin 2πt with |t| ≤ ¼, by its Taylor series up to t¹³ */
static inline float fast_cos_turns(float v)
{
    float half = v - 0.5f, t = 0.25f - (half < 0 ? -half : half), x = 6.2831853071795865f * t, s = x * x;
    float p = 1.6059043837e-10f;
    p = p * s - 2.5052108385e-8f;
    p = p * s + 2.7557319224e-6f;
    p = p * s - 1.9841269841e-4f;
    p = p * s + 8.3333333333e-3f;
    p = p * s - 1.6666666667e-1f;
    return -(x + x * s * p);
}

static float dot(size_t n, const float *a, const float *b)
{
    float total;
    LANE_SUM(total, n, a[i] * b[i]);
    return total;
}

static float sum(size_t n, const float *x)
{
    float total;
    LANE_SUM(total, n, x[i]);
    return total;
}

static void axpy(size_t n, float factor, const float *restrict x, float *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

static void scale(size_t n, float factor, const float *x, float *y)
{
    ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] = factor * x[i];
}

static void add(size_t n, const float *a, const float *b, float *y)
{
    ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void activate(enum activation activation, size_t n, const float *x, float *y)
{
    switch (activation) {
    case ACTIVATION_NONE:
        if (x != y)
            memcpy(y, x, n * sizeof *x);
        break;
    case ACTIVATION_QUICK_GELU: /* x σ(1.702 x) */
        ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * sigmoid(1.702f * x[i]);
        break;
    case ACTIVATION_GELU: /* x Φ(x) */
        ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            y[i] = 0.5f * x[i] * (1.0f + fast_erf(x[i] * 0.70710678118654752f));
        break;
    case ACTIVATION_RELU:
        ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            y[i] = relu(x[i]);
        break;
    case ACTIVATION_SIGMOID:
        ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            y[i] = sigmoid_or_nan(x[i]);
        break;
    case ACTIVATION_GELU_TANH: /* x ½(1 + tanh(√(2/π)(x + 0.044715 x³))), and ½(1 + tanh(u)) = σ(2u) */
        ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * sigmoid(1.5957691216057308f * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
        break;
    }
}

static void activate_backward(enum activation activation, size_t n, const float *x, const float *dy, float *dx)
{
    switch (activation) {
    case ACTIVATION_NONE:
        if (dx != dy)
            memcpy(dx, dy, n * sizeof *dy);
        break;
    case ACTIVATION_QUICK_GELU:
        ELEMENTWISE
        for (size_t i = 0; i < n; i++) {
            float s = sigmoid(1.702f * x[i]);
            dx[i] = dy[i] * (s + 1.702f * x[i] * s * (1.0f - s));
        }
        break;
    case ACTIVATION_GELU:
        ELEMENTWISE
        for (size_t i = 0; i < n; i++) {
            float cumulative = 0.5f * (1.0f + fast_erf(x[i] * 0.70710678118654752f));
            dx[i] = dy[i] * (cumulative + x[i] * 0.39894228040143268f * fast_exp(-0.5f * x[i] * x[i]));
        }
        break;
    case ACTIVATION_RELU:
        ELEMENTWISE
        for (size_t i = 0; i < n; i++)
            dx[i] = x[i] > 0 ? dy[i] : 0;
        break;
    case ACTIVATION_SIGMOID:
        ELEMENTWISE
        for (size_t i = 0; i < n; i++) {
            float s = sigmoid(x[i]);
            dx[i] = dy[i] * s * (1.0f - s);
        }
        break;
    case ACTIVATION_GELU_TANH:
        ELEMENTWISE
        for (size_t i = 0; i < n; i++) {
            float square = x[i] * x[i], s = sigmoid(1.5957691216057308f * x[i] * (1.0f + 0.044715f * square));
            dx[i] = dy[i] * (s + 1.5957691216057308f * x[i] * s * (1.0f - s) * (1.0f + 0.134145f * square));
        }
        break;
    }
}

static void layer_norm(size_t n, const float *restrict x, const float *restrict gain, const float *restrict bias,
                       float epsilon, float *restrict y, float statistics[2])
{
    float total, squares, width = (float)n;
    LANE_SUM(total, n, x[i]);
    float mean = total / width;
    LANE_SUM(squares, n, (x[i] - mean) * (x[i] - mean));
    float rstd = 1.0f / sqrtf(squares / width + epsilon);
    if (!all_finite(1, &squares)) /* 1/∞ would make a row of zeros of it */
        make_nan(1, &rstd);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * rstd * gain[i] + bias[i];
    statistics[0] = mean;
    statistics[1] = rstd;
}

/* With x̂ the normalised x and g = dy ⊙ gain: dx += rstd (g − mean(g) − x̂ mean(g ⊙ x̂)). */
static void layer_norm_backward(size_t n, const float *restrict x, const float *restrict dy, const float *restrict gain,
                                const float *statistics, float *restrict dx)
{
    float mean = statistics[0], rstd = statistics[1], total, product, width = (float)n;
    LANE_SUM(total, n, dy[i] * gain[i]);
    LANE_SUM(product, n, dy[i] * gain[i] * ((x[i] - mean) * rstd));
    total /= width;
    product /= width;
    for (size_t i = 0; i < n; i++)
        dx[i] += rstd * (dy[i] * gain[i] - total - (x[i] - mean) * rstd * product);
}

static inline void keep_larger(int width, float *lanes)
{
    for (int j = 0; j < width; j++)
        lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
}

static float maximum(size_t n, const float *x)
{
    float lanes[VECTOR_LANES];
    for (int j = 0; j < VECTOR_LANES; j++)
        lanes[j] = x[0];
    size_t whole = n / VECTOR_LANES * VECTOR_LANES;
    for (size_t first = 0; first < whole; first += VECTOR_LANES)
        for (size_t j = 0; j < VECTOR_LANES; j++)
            lanes[j] = x[first + j] > lanes[j] ? x[first + j] : lanes[j];
    for (size_t i = whole; i < n; i++)
        lanes[i - whole] = x[i] > lanes[i - whole] ? x[i] : lanes[i - whole];
    keep_larger(16, lanes);
    keep_larger(8, lanes);
    keep_larger(4, lanes);
    keep_larger(2, lanes);
    keep_larger(1, lanes);
    return lanes[0];
}

/* Of scores that are not all finite: −∞ has the weight 0; beside NaN or ∞, or of −∞ alone, all weights are NaN. */
static void softmax_of_infinite(size_t n, float factor, const float *x, float *y)
{
    const float *highest = NULL;
    float total = 0;
    for (size_t i = 0; i < n; i++) {
        if (bits_of(x[i]) == MINUS_INFINITE_BITS)
            continue;
        if (highest == NULL || !all_finite(1, &x[i]) || x[i] > *highest)
            highest = &x[i];
        if (!all_finite(1, highest))
            break;
    }
    if (highest == NULL || !all_finite(1, highest)) {
        make_nan(n, y);
        return;
    }
    float most = *highest * factor;
    for (size_t i = 0; i < n; i++) {
        y[i] = bits_of(x[i]) == MINUS_INFINITE_BITS ? 0.0f : fast_exp(x[i] * factor - most);
        total += y[i];
    }
    for (size_t i = 0; i < n; i++)
        y[i] /= total;
}

static void softmax(size_t n, float factor, const float *x, float *y)
{
    if (!all_finite(n, x)) {
        softmax_of_infinite(n, factor, x, y);
        return;
    }
    float highest = maximum(n, x) * factor, total;
    ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] = fast_exp(x[i] * factor - highest);
    LANE_SUM(total, n, y[i]);
    float inverse = 1.0f / total;
    ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        y[i] *= inverse;
}

static void softmax_backward(size_t n, float factor, const float *p, const float *dp, float *dx)
{
    float mean;
    LANE_SUM(mean, n, p[i] * dp[i]);
    ELEMENTWISE
    for (size_t i = 0; i < n; i++)
        dx[i] = factor * p[i] * (dp[i] - mean);
}

static double log_sum_exp(size_t n, const float *x)
{
    float highest = maximum(n, x), total;
    LANE_SUM(total, n, fast_exp(x[i] - highest));
    return (double)highest + log((double)total);
}

static void adamw(const struct vector_adamw *rule, size_t n, float *restrict value, float *restrict gradient,
                  float *restrict first, float *restrict second)
{
    const struct vector_adamw r = *rule;
    float step = r.rate / r.correction1, inverse = 1.0f / r.correction2, decay = r.rate * r.weight_decay;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] + r.l2 * value[i];
        float m = r.beta1 * first[i] + r.rest1 * g;
        float v = r.beta2 * second[i] + r.rest2 * g * g;
        first[i] = m;
        second[i] = v;
        value[i] = value[i] - decay * value[i] - step * m / (sqrtf(v) * inverse + r.epsilon);
        gradient[i] = 0;
    }
}

static void sgd(const struct vector_sgd *rule, size_t n, float *restrict value, float *restrict gradient,
                float *restrict moment)
{
    const struct vector_sgd r = *rule;
    for (size_t i = 0; i < n; i++) {
        float m = r.momentum * moment[i] + (gradient[i] + r.l2 * value[i]);
        moment[i] = m;
        value[i] = value[i] - r.rate * m;
        gradient[i] = 0;
    }
}

static void lamb(const struct vector_adamw *rule, size_t n, const float *restrict value, float *restrict gradient,
                 float *restrict first, float *restrict second)
{
    const struct vector_adamw r = *rule;
    float correct = 1.0f / r.correction1, inverse = 1.0f / r.correction2;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i];
        float m = r.beta1 * first[i] + r.rest1 * g;
        float v = r.beta2 * second[i] + r.rest2 * g * g;
        first[i] = m;
        second[i] = v;
        gradient[i] = correct * m / (sqrtf(v) * inverse + r.epsilon) + r.weight_decay * value[i];
    }
}

/* In double precision, in which no square of a float overflows or vanishes. */
static double squares(size_t n, const float *x)
{
    double lanes[VECTOR_LANES] = {0}, total = 0;
    size_t whole = n / VECTOR_LANES * VECTOR_LANES;
    for (size_t first = 0; first < whole; first += VECTOR_LANES)
        for (size_t j = 0; j < VECTOR_LANES; j++)
            lanes[j] += (double)x[first + j] * (double)x[first + j];
    for (size_t i = whole; i < n; i++)
        lanes[i - whole] += (double)x[i] * (double)x[i];
    for (size_t j = 0; j < VECTOR_LANES; j++)
        total += lanes[j];
    return total;
}

static void pixels(size_t n, const uint8_t *bytes, size_t stride, float mean, float std, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = ((float)bytes[i * stride] / 255.0f - mean) / std;
}

/* Philox with counter (block low, block high, counter[0], counter[1]), many blocks abreast, four words each. */
static void dropout(size_t blocks, uint64_t first_block, const uint32_t key[2], const uint32_t counter[2],
                    uint32_t threshold, float factor, float *x)
{
    enum { GROUP = 16 };
    for (size_t start = 0; start < blocks; start += GROUP) {
        uint32_t c0[GROUP], c1[GROUP], c2[GROUP], c3[GROUP], key0 = key[0], key1 = key[1];
        for (size_t j = 0; j < GROUP; j++) {
            uint64_t block = first_block + start + j;
            c0[j] = (uint32_t)block;
            c1[j] = (uint32_t)(block >> 32);
            c2[j] = counter[0];
            c3[j] = counter[1];
        }
        for (int round = 0; round < PHILOX_ROUNDS; round++) {
            for (size_t j = 0; j < GROUP; j++)
                philox_round(&c0[j], &c1[j], &c2[j], &c3[j], key0, key1);
            philox_next_key(&key0, &key1);
        }
        size_t group = blocks - start < GROUP ? blocks - start : GROUP;
        for (size_t j = 0; j < group; j++) {
            const uint32_t words[4] = {c0[j], c1[j], c2[j], c3[j]};
            float *four = x + 4 * (start + j);
            for (int w = 0; w < 4; w++)
                four[w] = words[w] < threshold ? 0.0f : four[w] * factor;
        }
    }
}

static void normals(size_t n, uint64_t first_block, const uint32_t key[2], const uint32_t counter[2], float *y)
{
    uint64_t seed = key[0] | (uint64_t)key[1] << 32;
    uint32_t step = counter[0], stream = counter[1];
    for (size_t i = 0; i < n; i++) {
        uint32_t words[4];
        philox_block(seed, first_block + i, step, stream, words);
        float u = (float)(int32_t)((words[0] >> 8) + 1) * 0x1p-24f, v = (float)(int32_t)(words[1] >> 8) * 0x1p-24f;
        y[i] = sqrtf(-2.0f * fast_log(u)) * fast_cos_turns(v);
    }
}

static void add_noise(size_t n, float epsilon, const float *u, const float *noise, float *z)
{
    ELEMENTWISE
    for (size_t i = 0; i < n; i++) {
        float magnitude = u[i] > 0 ? u[i] : -u[i], e = fast_exp(-magnitude), s = 1.0f + e; /* s is rounded */
        float softplus = (u[i] > 0 ? u[i] : 0) + fast_log(s) + (e - (s - 1.0f)) / s;
        z[i] += noise[i] * (softplus + epsilon);
    }
}

static void widen(size_t n, const uint16_t *restrict x, float *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(&y[i], &bits, sizeof bits);
    }
}

enum { GROUP_WORDS = 16 };

static void pair(size_t n, const uint16_t *restrict a, const uint16_t *restrict b, uint32_t *restrict y, size_t stride)
{
    for (size_t i = 0; i < n; i += GROUP_WORDS, y += stride)
        for (size_t j = 0; j < GROUP_WORDS; j++)
            y[j] = a[i + j] | (uint32_t)b[i + j] << 16;
}

typedef uint32_t words __attribute__((vector_size(GROUP_WORDS * sizeof(uint32_t))));

/* Swaps the off-diagonal blocks of side s in every square of side 2s. */
#define FIRST(s, j) (((j) & (s)) != 0 ? GROUP_WORDS + (j) - (s) : (j))
#define SECOND(s, j) (((j) & (s)) != 0 ? GROUP_WORDS + (j) : (j) + (s))
#define ALL(of, s)                                                                                                     \
    of(s, 0), of(s, 1), of(s, 2), of(s, 3), of(s, 4), of(s, 5), of(s, 6), of(s, 7), of(s, 8), of(s, 9), of(s, 10),     \
        of(s, 11), of(s, 12), of(s, 13), of(s, 14), of(s, 15)
#define SWAP_BLOCKS(row, s)                                                                                            \
    do {                                                                                                               \
        for (int i_ = 0; i_ < GROUP_WORDS; i_++)                                                                       \
            if ((i_ & (s)) == 0) {                                                                                     \
                words a_ = (row)[i_], b_ = (row)[i_ + (s)];                                                            \
                (row)[i_] = __builtin_shufflevector(a_, b_, ALL(FIRST, s));                                            \
                (row)[i_ + (s)] = __builtin_shufflevector(a_, b_, ALL(SECOND, s));                                     \
            }                                                                                                          \
    } while (0)

static void transpose(size_t n, const uint32_t *restrict x, size_t x_stride, uint32_t *restrict y, size_t y_stride)
{
    for (size_t j = 0; j < n; j += GROUP_WORDS) {
        words row[GROUP_WORDS];
        for (size_t i = 0; i < GROUP_WORDS; i++)
            memcpy(&row[i], x + i * x_stride + j, sizeof row[i]);
        SWAP_BLOCKS(row, 8);
        SWAP_BLOCKS(row, 4);
        SWAP_BLOCKS(row, 2);
        SWAP_BLOCKS(row, 1);
        for (size_t i = 0; i < GROUP_WORDS; i++)
            memcpy(y + (j + i) * y_stride, &row[i], sizeof row[i]);
    }
}

const struct vector_kernels VECTOR_TABLE = {
    .name = VECTOR_NAME,
    .dot = dot,
    .sum = sum,
    .finite = all_finite,
    .axpy = axpy,
    .scale = scale,
    .add = add,
    .activate = activate,
    .activate_backward = activate_backward,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .log_sum_exp = log_sum_exp,
    .adamw = adamw,
    .sgd = sgd,
    .lamb = lamb,
    .squares = squares,
    .pixels = pixels,
    .dropout = dropout,
    .normals = normals,
    .add_noise = add_noise,
    .widen = widen,
    .pair = pair,
    .transpose = transpose,
#ifdef VECTOR_MULTIPLY
    .multiply = VECTOR_MULTIPLY,
#endif
};
