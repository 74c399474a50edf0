/* On AVX-512 BF16: 8 rows by two strips in registers. */
#include <immintrin.h>
#include <string.h>

#include "models/cpu/bf16.h"

extern const struct bf16_kernels bf16_kernels_avx512bf16;

enum { SIDE = BF16_SIDE, ROWS = 8 };

static inline __m512bh strip_at(const uint32_t *b, size_t pair)
{
    return (__m512bh)_mm512_loadu_si512(b + pair * SIDE);
}

static inline __m512bh broadcast(const uint16_t *a, size_t pair)
{
    int32_t both;
    memcpy(&both, a + 2 * pair, sizeof both);
    return (__m512bh)_mm512_set1_epi32(both);
}

/* Rows [first, first + ROWS), those beyond m like the last one, by `strips` strips from column j on. */
static inline __attribute__((always_inline)) void run_rows(const struct bf16_product *p, size_t first, size_t j,
                                                           size_t strips)
{
    size_t strip = p->k / 2 * SIDE;
    const uint16_t *a[ROWS];
    const uint32_t *b = p->b + j / SIDE * strip;
    float *c = p->c + first * p->ldc + j;
    __m512 sum[ROWS][2];
    for (size_t i = 0; i < ROWS; i++) {
        a[i] = p->a + (first + i < p->m ? first + i : p->m - 1) * p->lda;
        for (size_t t = 0; t < strips; t++)
            sum[i][t] = p->accumulate ? _mm512_loadu_ps(c + i * p->ldc + t * SIDE) : _mm512_setzero_ps();
    }
    for (size_t pair = 0; pair < p->k / 2; pair++)
        for (size_t i = 0; i < ROWS; i++)
            for (size_t t = 0; t < strips; t++)
                sum[i][t] = _mm512_dpbf16_ps(sum[i][t], broadcast(a[i], pair), strip_at(b + t * strip, pair));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t t = 0; t < strips; t++)
            _mm512_storeu_ps(c + i * p->ldc + t * SIDE, sum[i][t]);
}

static void multiply(const struct bf16_product *p)
{
    for (size_t j = 0; j < p->n; j += 2 * SIDE)
        for (size_t i = 0; i < p->m; i += ROWS) {
            if (j + SIDE < p->n)
                run_rows(p, i, j, 2);
            else
                run_rows(p, i, j, 1);
        }
}

const struct bf16_kernels bf16_kernels_avx512bf16 = {.name = "avx512bf16", .multiply = multiply};
