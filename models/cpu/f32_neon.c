/* Products in f32 on 64-bit Arm: 5 or 4 rows by half a strip in registers, over the whole depth. */
#include <arm_neon.h>

#include "models/cpu/kernels.h"

enum { SIDE = 4, VECTORS = F32_STRIP / 2 / SIDE, HALF = F32_STRIP / 2, BLOCK = 5 };

static inline __attribute__((always_inline)) void store(const struct f32_product *p, float32x4_t sum, float *c,
                                                        size_t columns)
{
    float part[SIDE];
    sum = vmulq_n_f32(sum, p->scale);
    if (columns >= SIDE) {
        vst1q_f32(c, p->accumulate ? vaddq_f32(vld1q_f32(c), sum) : sum);
        return;
    }
    vst1q_f32(part, sum);
    for (size_t i = 0; i < columns; i++)
        c[i] = p->accumulate ? c[i] + part[i] : part[i];
}

/* `rows` is known where this is inlined: loops over it are unrolled, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void run_block(const struct f32_product *p, size_t rows, size_t first,
                                                            size_t j)
{
    const float *a = p->a + first / F32_ROWS * F32_ROWS * f32_row_values(p->k) + first % F32_ROWS * F32_STRIDE,
                *b = p->b + j / F32_STRIP * F32_STRIP * p->k + j % F32_STRIP;
    float *c = p->c + first * p->ldc + j;
    float32x4_t sum[BLOCK][VECTORS];
#pragma GCC unroll 5
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t v = 0; v < VECTORS; v++)
            sum[i][v] = vdupq_n_f32(0);
    for (size_t from = 0; from < p->k; from += F32_DEPTH, a += F32_ROWS * F32_STRIDE) {
        size_t depth = p->k - from < F32_DEPTH ? p->k - from : F32_DEPTH;
        for (size_t k = 0; k < depth; k++, b += F32_STRIP) {
            float32x4_t right[VECTORS];
#pragma GCC unroll 4
            for (size_t v = 0; v < VECTORS; v++)
                right[v] = vld1q_f32(b + v * SIDE);
#pragma GCC unroll 5
            for (size_t i = 0; i < rows; i++) {
                float32x4_t value = vld1q_dup_f32(a + i * F32_STRIDE + k);
#pragma GCC unroll 4
                for (size_t v = 0; v < VECTORS; v++)
                    sum[i][v] = vfmaq_f32(sum[i][v], value, right[v]);
            }
        }
    }
#pragma GCC unroll 5
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t v = 0; v < VECTORS; v++)
            if (first + i < p->m && p->n - j > v * SIDE)
                store(p, sum[i][v], c + i * p->ldc + v * SIDE, p->n - j - v * SIDE);
}

void f32_multiply_neon(const struct f32_product *p)
{
    for (size_t j = 0; j < p->n; j += HALF)
        for (size_t i = 0; i < p->m; i += F32_ROWS) {
            run_block(p, BLOCK, i, j);
            run_block(p, BLOCK, i + BLOCK, j);
            run_block(p, F32_ROWS - 2 * BLOCK, i + 2 * BLOCK, j);
        }
}
