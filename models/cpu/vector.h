/* The inner loops of the CPU backend, compiled once per instruction set and chosen at run time.
 *
 *     const struct vector_kernels *vector = vector_kernels_at(0);
 *     vector->softmax(n, scale, scores, scores);
 *
 * Plain C loops that the compiler vectorises; sums run in VECTOR_LANES interleaved parts, so that they vectorise
 * without reordering and the result depends on the length alone. Vectors are contiguous; operands may be equal where a
 * comment says so. A result that would hide a NaN or an infinity in x is NaN.
 */
#pragma once

#include <string.h>

#include "models/backend.h"

struct vector_adamw {
    float rate, beta1, beta2, rest1, rest2, epsilon, weight_decay, l2; /* rest: 1 − β, rounded once */
    float correction1, correction2;                                    /* 1 − β₁ˢ, √(1 − β₂ˢ) */
};

struct vector_sgd {
    float rate, momentum, l2;
};

struct f32_product;

struct vector_kernels {
    const char *name; /* "avx512" */
    float (*dot)(size_t n, const float *a, const float *b);
    float (*sum)(size_t n, const float *x);
    bool (*finite)(size_t n, const float *x);                        /* no NaN, no infinity */
    void (*axpy)(size_t n, float scale, const float *x, float *y);   /* y += scale · x */
    void (*scale)(size_t n, float scale, const float *x, float *y);  /* y = scale · x; x = y allowed */
    void (*add)(size_t n, const float *a, const float *b, float *y); /* y = a + b; any may be equal */
    void (*activate)(enum activation activation, size_t n, const float *x, float *y); /* x = y allowed */
    void (*activate_backward)(enum activation activation, size_t n, const float *x, const float *dy,
                              float *dx); /* dy = dx allowed */
    void (*layer_norm)(size_t n, const float *x, const float *gain, const float *bias, float epsilon, float *y,
                       float statistics[2]);
    void (*layer_norm_backward)(size_t n, const float *x, const float *dy, const float *gain, const float *statistics,
                                float *dx);                           /* dx += */
    void (*softmax)(size_t n, float scale, const float *x, float *y); /* y = softmax(scale · x); x = y allowed */
    void (*softmax_backward)(size_t n, float scale, const float *p, const float *dp, float *dx); /* dx = dp allowed */
    double (*log_sum_exp)(size_t n, const float *x);
    void (*adamw)(const struct vector_adamw *rule, size_t n, float *value, float *gradient, float *first,
                  float *second);
    void (*sgd)(const struct vector_sgd *rule, size_t n, float *value, float *gradient, float *moment);
    /* gradient becomes LAMB's u; rate and l2 are not used */
    void (*lamb)(const struct vector_adamw *rule, size_t n, const float *value, float *gradient, float *first,
                 float *second);
    double (*squares)(size_t n, const float *x); /* Σ x² */
    void (*pixels)(size_t n, const uint8_t *pixels, size_t stride, float mean, float std, float *y);
    void (*dropout)(size_t blocks, uint64_t first_block, const uint32_t key[2], const uint32_t counter[2],
                    uint32_t threshold, float scale, float *x); /* x [4 · blocks] in place */
    /* y_i ~ N(0, 1) of block first_block + i as philox_normal has it, but for the last bits */
    void (*normals)(size_t n, uint64_t first_block, const uint32_t key[2], const uint32_t counter[2], float *y);
    /* z += noise ⊙ (softplus(u) + epsilon); u is finite */
    void (*add_noise)(size_t n, float epsilon, const float *u, const float *noise, float *z);
    void (*widen)(size_t n, const uint16_t *x, float *y); /* from bf16 */
    /* Two rows of bf16 become one of pairs, in groups of 16 at a distance of stride: y[j / 16 · stride + j mod 16] = a[j],
     * b[j]; n is a multiple of 16 */
    void (*pair)(size_t n, const uint16_t *a, const uint16_t *b, uint32_t *y, size_t stride);
    /* y[j, i] = x[i, j] of 16 rows of n words, n a multiple of 16; strides in words */
    void (*transpose)(size_t n, const uint32_t *x, size_t x_stride, uint32_t *y, size_t y_stride);
    void (*multiply)(const struct f32_product *product); /* f32.h; NULL: none, oneDNN multiplies */
};

/* memcpy and memset to 0, as calls: where GCC knows how few bytes there can be it has `rep movs`, several times as slow. */
static inline void copy_few(void *to, const void *from, size_t bytes)
{
    __asm__("" : "+r"(bytes));
    memcpy(to, from, bytes);
}

static inline void clear_few(void *to, size_t bytes)
{
    __asm__("" : "+r"(bytes));
    memset(to, 0, bytes);
}

/* The tables that this machine can run, best first; NULL past the last one. */
const struct vector_kernels *vector_kernels_at(size_t index);
