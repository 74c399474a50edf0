/* Products in f32 on AVX-512: 14 rows by one strip in registers, over the whole depth. */
#include <immintrin.h>

#include "models/cpu/kernels.h"

enum { ROWS = F32_ROWS, SIDE = 16 };

static inline __attribute__((always_inline)) void store(const struct f32_product *p, __m512 sum, float *c,
                                                        uint32_t some)
{
    __mmask16 mask = (__mmask16)some;
    sum = _mm512_mul_ps(_mm512_set1_ps(p->scale), sum);
    if (p->accumulate)
        sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), sum);
    _mm512_mask_storeu_ps(c, mask, sum);
}

/* `vectors`, 1 or 2, is known where this is inlined: loops over it and over rows are unrolled, so that the sums stay in
 * registers. */
static inline __attribute__((always_inline)) void run_panel(const struct f32_product *p, size_t vectors, size_t first,
                                                            size_t j)
{
    const float *a = p->a + first * f32_row_values(p->k), *b = p->b + j * p->k;
    float *c = p->c + first * p->ldc + j;
    size_t columns = p->n - j < F32_STRIP ? p->n - j : F32_STRIP;
    uint32_t some = (uint32_t)((UINT64_C(1) << columns) - 1);
    __m512 sum[ROWS][2];
#pragma GCC unroll 14
    for (size_t i = 0; i < ROWS; i++)
        sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    for (size_t from = 0; from < p->k; from += F32_DEPTH, a += ROWS * F32_STRIDE) {
        size_t depth = p->k - from < F32_DEPTH ? p->k - from : F32_DEPTH;
        for (size_t k = 0; k < depth; k++, b += F32_STRIP) {
            __m512 b0 = _mm512_load_ps(b), b1 = vectors > 1 ? _mm512_load_ps(b + SIDE) : b0;
#pragma GCC unroll 14
            for (size_t i = 0; i < ROWS; i++) {
                __m512 value = _mm512_set1_ps(a[i * F32_STRIDE + k]);
                sum[i][0] = _mm512_fmadd_ps(value, b0, sum[i][0]);
                if (vectors > 1)
                    sum[i][1] = _mm512_fmadd_ps(value, b1, sum[i][1]);
            }
        }
    }
#pragma GCC unroll 14
    for (size_t i = 0; i < ROWS; i++)
        if (first + i < p->m) {
            store(p, sum[i][0], c + i * p->ldc, some);
            if (vectors > 1)
                store(p, sum[i][1], c + i * p->ldc + SIDE, some >> SIDE);
        }
}

void f32_multiply_avx512(const struct f32_product *p)
{
    for (size_t j = 0; j < p->n; j += F32_STRIP)
        for (size_t i = 0; i < p->m; i += ROWS)
            if (p->n - j > SIDE)
                run_panel(p, 2, i, j);
            else
                run_panel(p, 1, i, j);
}
