/* Products in f32 on AVX2: 5 or 4 rows by half a strip in registers, over the whole depth. */
#include <immintrin.h>

#include "models/cpu/kernels.h"

enum { SIDE = 8, HALF = F32_STRIP / 2, BLOCK = 5 };

static inline __attribute__((always_inline)) void store(const struct f32_product *p, __m256 sum, float *c,
                                                        size_t columns)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)columns), lanes);
    sum = _mm256_mul_ps(_mm256_set1_ps(p->scale), sum);
    if (p->accumulate)
        sum = _mm256_add_ps(_mm256_maskload_ps(c, mask), sum);
    _mm256_maskstore_ps(c, mask, sum);
}

/* `rows` is known where this is inlined: loops over it are unrolled, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void run_block(const struct f32_product *p, size_t rows, size_t first,
                                                            size_t j)
{
    const float *a = p->a + first / F32_ROWS * F32_ROWS * f32_row_values(p->k) + first % F32_ROWS * F32_STRIDE,
                *b = p->b + j / F32_STRIP * F32_STRIP * p->k + j % F32_STRIP;
    float *c = p->c + first * p->ldc + j;
    __m256 sum[BLOCK][2];
#pragma GCC unroll 5
    for (size_t i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    for (size_t from = 0; from < p->k; from += F32_DEPTH, a += F32_ROWS * F32_STRIDE) {
        size_t depth = p->k - from < F32_DEPTH ? p->k - from : F32_DEPTH;
        for (size_t k = 0; k < depth; k++, b += F32_STRIP) {
            __m256 b0 = _mm256_load_ps(b), b1 = _mm256_load_ps(b + SIDE);
#pragma GCC unroll 5
            for (size_t i = 0; i < rows; i++) {
                __m256 value = _mm256_broadcast_ss(a + i * F32_STRIDE + k);
                sum[i][0] = _mm256_fmadd_ps(value, b0, sum[i][0]);
                sum[i][1] = _mm256_fmadd_ps(value, b1, sum[i][1]);
            }
        }
    }
#pragma GCC unroll 5
    for (size_t i = 0; i < rows; i++)
        if (first + i < p->m) {
            store(p, sum[i][0], c + i * p->ldc, p->n - j);
            if (p->n - j > SIDE)
                store(p, sum[i][1], c + i * p->ldc + SIDE, p->n - j - SIDE);
        }
}

void f32_multiply_avx2(const struct f32_product *p)
{
    for (size_t j = 0; j < p->n; j += HALF)
        for (size_t i = 0; i < p->m; i += F32_ROWS) {
            run_block(p, BLOCK, i, j);
            run_block(p, BLOCK, i + BLOCK, j);
            run_block(p, F32_ROWS - 2 * BLOCK, i + 2 * BLOCK, j);
        }
}
