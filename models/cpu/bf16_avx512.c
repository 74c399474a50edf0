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

void bf16_round_avx512(size_t n, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + 2 * SIDE <= n; i += 2 * SIDE)
        _mm512_storeu_si512(y + i, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + SIDE), _mm512_loadu_ps(x + i)));
    for (; i < n; i += SIDE) {
        __mmask16 some = n - i < SIDE ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
        _mm256_mask_storeu_epi16(y + i, some, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + i)));
    }
}

static bool is_whole_lines(const void *y, size_t bytes)
{
    enum { LINE = 64 };
    return ((uintptr_t)y | bytes) % LINE == 0;
}

void bf16_stream_rounded_avx512(size_t n, const float *x, uint16_t *y)
{
    if (!is_whole_lines(y, n * sizeof *y)) {
        bf16_round_avx512(n, x, y);
        return;
    }
    for (size_t i = 0; i < n; i += 2 * SIDE)
        _mm512_stream_si512((void *)(y + i),
                            (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + SIDE), _mm512_loadu_ps(x + i)));
}

void bf16_stream_avx512(size_t n, const float *x, float *y)
{
    if (!is_whole_lines(y, n * sizeof *y)) {
        memcpy(y, x, n * sizeof *y);
        return;
    }
    for (size_t i = 0; i < n; i += SIDE)
        _mm512_stream_ps(y + i, _mm512_loadu_ps(x + i));
}

void bf16_fence_avx512(void)
{
    _mm_sfence();
}

const struct bf16_kernels bf16_kernels_avx512bf16 = {.name = "avx512bf16",
                                                     .multiply = multiply,
                                                     .round = bf16_round_avx512,
                                                     .stream_rounded = bf16_stream_rounded_avx512,
                                                     .stream = bf16_stream_avx512,
                                                     .fence = bf16_fence_avx512};
