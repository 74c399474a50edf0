/* In plain C: for tests of what is around the products, and of the products themselves on any machine. */
#include <math.h>
#include <string.h>

#include "models/cpu/kernels.h"

extern const struct bf16_kernels bf16_kernels_portable;

static inline float widened(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void multiply(const struct bf16_product *p)
{
    enum { SIDE = BF16_SIDE };
    for (size_t j = 0; j < p->n; j += SIDE)
        for (size_t i = 0; i < p->m; i++) {
            const uint16_t *a = p->a + i * p->lda;
            const uint32_t *b = p->b + j * (p->k / 2);
            float *c = p->c + i * p->ldc + j, sum[SIDE] = {0};
            if (p->accumulate)
                memcpy(sum, c, sizeof sum);
            for (size_t k = 0; k < p->k; k += 2, b += SIDE) {
                float even = widened((uint32_t)a[k] << 16), odd = widened((uint32_t)a[k + 1] << 16);
                for (size_t t = 0; t < SIDE; t++)
                    sum[t] += even * widened(b[t] << 16) + odd * widened(b[t] & 0xffff0000u);
            }
            memcpy(c, sum, sizeof sum);
        }
}

static void round_values(size_t n, const float *x, uint16_t *y)
{
    enum { INFINITE_BITS = 0x7f800000, QUIET = 0x40 };
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
        y[i] = (uint16_t)((bits & 0x7fffffffu) > INFINITE_BITS ? bits >> 16 | QUIET : rounded);
    }
}

static void copy_values(size_t n, const float *x, float *y)
{
    memcpy(y, x, n * sizeof *y);
}

static void no_fence(void)
{
}

static float gelu_gate(float x)
{
    return 1.0f / (1.0f + expf(fminf(-1.702f * x, 87.0f)));
}

static void quick_gelu(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * gelu_gate(x[i]);
}

static void quick_gelu_backward(size_t n, const float *x, const float *dy, float *dx)
{
    for (size_t i = 0; i < n; i++) {
        float s = gelu_gate(x[i]);
        dx[i] = dy[i] * (s + 1.702f * x[i] * s * (1.0f - s));
    }
}

static float softmax(size_t n, size_t padded, float scale, float *x, uint16_t *p)
{
    float highest = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        highest = fmaxf(highest, x[i]);
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(scale * (x[i] - highest));
        sum += x[i];
    }
    for (size_t i = 0; i < n; i++) {
        float share = x[i] / sum;
        round_values(1, &share, &p[i]);
    }
    memset(x + n, 0, (padded - n) * sizeof *x);
    memset(p + n, 0, (padded - n) * sizeof *p);
    return 1.0f / sum;
}

static void softmax_backward(size_t n, size_t padded, float scale, float inverse, const float *e, const float *dp,
                             uint16_t *dx)
{
    float mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += inverse * e[i] * dp[i];
    for (size_t i = 0; i < n; i++) {
        float gradient = scale * inverse * e[i] * (dp[i] - mean);
        round_values(1, &gradient, &dx[i]);
    }
    memset(dx + n, 0, (padded - n) * sizeof *dx);
}

const struct bf16_kernels bf16_kernels_portable = {.name = "portable",
                                                   .multiply = multiply,
                                                   .round = round_values,
                                                   .stream_rounded = round_values,
                                                   .stream = copy_values,
                                                   .fence = no_fence,
                                                   .quick_gelu = quick_gelu,
                                                   .quick_gelu_backward = quick_gelu_backward,
                                                   .softmax = softmax,
                                                   .softmax_backward = softmax_backward};
