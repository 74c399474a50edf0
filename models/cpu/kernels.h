/* The kernels of the CPU backend, compiled once per instruction set and chosen at run time: loops over vectors, products of bf16
 * matrices, and products of f32 matrices.
 *
 *     const struct vector_kernels *vector = vector_kernels_at(0);
 *     vector->softmax(n, scale, scores, scores);
 *     const struct bf16_kernels *bf16 = bf16_kernels_at(0);
 *     bf16->multiply(&(struct bf16_product){.m = 197, .n = 64, .k = 224, .a = a, .lda = 224, .b = b, .c = c, .ldc = 64});
 *     vector->multiply(
 *         &(struct f32_product){.m = rows, .n = columns, .k = depth, .a = panels, .b = packed, .c = c, .ldc = n, .scale = 1});
 */
#pragma once

#include <string.h>

#include "models/backend.h"

struct cpu;

/* ---- vectors ----
 * Plain C loops that the compiler vectorises; sums run in VECTOR_LANES interleaved parts, so that they vectorise
 * without reordering and the result depends on the length alone. Vectors are contiguous; operands may be equal where a
 * comment says so. A result that would hide a NaN or an infinity in x is NaN.
 */

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
    void (*multiply)(const struct f32_product *product); /* NULL: none, oneDNN multiplies */
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

/* ---- products of bf16 matrices, summed in f32, on the units that the processor has for them ----
 * A value of the result is the sum over pairs of depths in their order, so its bits depend neither on its tile nor on the
 * rest of the batch. The right operand comes in strips of 16 columns, each strip the pairs (b[2p, j], b[2p + 1, j]) for p
 * below k / 2 and 16 columns j: the layout that AMX and AVX-512 BF16 both read. Depths are
 * padded with zeros to a multiple of BF16_DEPTH, and columns of the right operand to a multiple of BF16_SIDE. Values below
 * the smallest normal number count as 0.
 */

enum { BF16_SIDE = 16, BF16_DEPTH = 32 };

struct bf16_product {
    size_t m, n, k; /* n and k as padded */
    const uint16_t *a;
    size_t lda;
    const uint32_t *b; /* strips of k / 2 · 16 pairs */
    float *c;          /* [m, padded to a multiple of BF16_SIDE: the rows beyond m receive anything] */
    size_t ldc;
    bool accumulate; /* adds to c */
};

struct bf16_kernels {
    const char *name; /* "amx" */
    void (*multiply)(const struct bf16_product *product);
    void (*round)(size_t n, const float *x, uint16_t *y); /* to the nearest, ties to even; NaN stays */
    /* The same, and a copy, past the caches: memory that is written whole need not be read first. To be followed by a
     * fence before another thread is told. */
    void (*stream_rounded)(size_t n, const float *x, uint16_t *y);
    void (*stream)(size_t n, const float *x, float *y);
    void (*fence)(void);
    void (*quick_gelu)(size_t n, const float *x, float *y); /* x σ(1.702 x); x = y allowed */
    void (*quick_gelu_backward)(size_t n, const float *x, const float *dy, float *dx); /* dy = dx allowed */
    /* A row of attention: x becomes e = exp(scale · (x − the highest)), at least 2⁻¹²⁶ on AVX-512, and p is e / Σ e
     * rounded, both with zeros up to `padded`, a multiple of BF16_DEPTH; returns 1 / Σ e. All NaN where one of the n
     * values of x is not finite. */
    float (*softmax)(size_t n, size_t padded, float scale, float *x, uint16_t *p);
    /* Takes e and the inverse that softmax gave: with p = inverse · e, dx = scale · p ⊙ (dp − Σ p dp), rounded, with
     * zeros up to `padded`. */
    void (*softmax_backward)(size_t n, size_t padded, float scale, float inverse, const float *e, const float *dp,
                             uint16_t *dx);
};

/* The product on AMX; the other kernels of AMX are those of AVX-512 BF16 (bf16_avx512.c). */
void bf16_multiply_amx(const struct bf16_product *product);

/* The kernels that this machine can run, best first; the last one is plain C, for tests on machines without the units. NULL
 * past it. */
const struct bf16_kernels *bf16_kernels_at(size_t index);

static inline size_t bf16_padded(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* op(a)'s rows [first, first + count) as bf16, `stride` values apart, zeros up to the padded depth. */
void bf16_pack_left(const struct cpu *cpu, struct matrix a, bool transpose, size_t first, size_t count, uint16_t *to,
                    size_t stride);

/* Strips [first, last) of op(b). */
void bf16_pack_right(const struct cpu *cpu, struct matrix b, bool transpose, size_t first, size_t last, uint32_t *to);

/* ---- products of f32 matrices from packed operands, where the machine has a kernel of our own ----
 * A value of the result is one chain of multiply-adds in the order of its depth, so its bits depend neither on its tile nor
 * on the rest of the batch. The left operand comes in panels of F32_ROWS rows and F32_DEPTH depths, rows F32_STRIDE values
 * apart, so that rows whose length is a power of two do not share one set of a cache. The right operand comes in strips of
 * F32_STRIP columns, depth by depth.
 */

enum { F32_ROWS = 14, F32_DEPTH = 256, F32_STRIDE = F32_DEPTH + 16, F32_STRIP = 32 };

struct f32_product {
    size_t m, n, k;
    const float *a, *b; /* panels; strips, aligned to 64 bytes */
    float *c;
    size_t ldc;
    bool accumulate; /* adds to c */
    float scale;
};

void f32_multiply_avx2(const struct f32_product *product);
void f32_multiply_avx512(const struct f32_product *product);
void f32_multiply_neon(const struct f32_product *product);

/* Values of one row in panels of this depth. */
static inline size_t f32_row_values(size_t depth)
{
    return (depth + F32_DEPTH - 1) / F32_DEPTH * F32_STRIDE;
}

/* A whole product of few rows, a not transposed, by the kernel, or by product_run where there is none. workspace, aligned to 64
 * bytes, has f32_workspace values: enough for any product of m rows whose columns and depth are m and n in either order. */
struct product;
size_t f32_workspace(const struct cpu *cpu, size_t m, size_t n);
void f32_run(struct cpu *cpu, const struct product *product, float *workspace);
