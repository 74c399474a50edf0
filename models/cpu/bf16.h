/* Products of bf16 matrices, summed in f32, on the units that the processor has for them.
 *
 *     const struct bf16_kernels *bf16 = bf16_kernels_at(0);
 *     bf16->multiply(&(struct bf16_product){.m = 197, .n = 64, .k = 224, .a = a, .lda = 224, .b = b, .c = c, .ldc = 64});
 *
 * A value of the result is the sum over pairs of depths in their order, so its bits depend neither on its tile nor on the
 * rest of the batch. The right operand comes in strips of 16 columns, each strip the pairs (b[2p, j], b[2p + 1, j]) for p
 * below k / 2 and 16 columns j: the layout that AMX and AVX-512 BF16 both read. Depths are
 * padded with zeros to a multiple of BF16_DEPTH, and columns of the right operand to a multiple of BF16_SIDE. Values below
 * the smallest normal number count as 0.
 */
#pragma once

#include "models/cpu/vector.h"

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

/* On AMX, whose other kernels are those of AVX-512 BF16 (bf16_avx512.c). */
void bf16_multiply_amx(const struct bf16_product *product);

/* The kernels that this machine can run, best first; the last one is plain C, for tests on machines without the units. NULL
 * past it. */
const struct bf16_kernels *bf16_kernels_at(size_t index);

static inline size_t bf16_padded(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

struct cpu;

/* op(a)'s rows [first, first + count) as bf16, `stride` values apart, zeros up to the padded depth. */
void bf16_pack_left(const struct cpu *cpu, struct matrix a, bool transpose, size_t first, size_t count, uint16_t *to,
                    size_t stride);

/* Strips [first, last) of op(b). */
void bf16_pack_right(const struct cpu *cpu, struct matrix b, bool transpose, size_t first, size_t last, uint32_t *to);
