/* On AVX-512 BF16: 8 rows by two strips in registers. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "models/cpu/kernels.h"

extern const struct bf16_kernels bf16_kernels_avx512bf16, bf16_kernels_amx;

enum { SIDE = BF16_SIDE, ROWS = 8 };
#define LOG2_E 1.44269504088896341f

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

/* A mask of the SIDE values from i on, set where the index is below n. */
static inline __mmask16 below(size_t n, size_t i)
{
    return i + SIDE <= n ? (__mmask16)0xffff : i < n ? (__mmask16)((1u << (n - i)) - 1) : 0;
}

static inline void store_rounded(uint16_t *y, __m512 low, __m512 high)
{
    _mm512_storeu_si512(y, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

static void round_values(size_t n, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + 2 * SIDE <= n; i += 2 * SIDE)
        store_rounded(y + i, _mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + SIDE));
    for (; i < n; i += SIDE) {
        __mmask16 some = below(n, i);
        _mm256_mask_storeu_epi16(y + i, some, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + i)));
    }
}

static bool is_whole_lines(const void *y, size_t bytes)
{
    enum { LINE = 64 };
    return ((uintptr_t)y | bytes) % LINE == 0;
}

static void stream_rounded(size_t n, const float *x, uint16_t *y)
{
    if (!is_whole_lines(y, n * sizeof *y)) {
        round_values(n, x, y);
        return;
    }
    for (size_t i = 0; i < n; i += 2 * SIDE)
        _mm512_stream_si512((void *)(y + i),
                            (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + SIDE), _mm512_loadu_ps(x + i)));
}

static void stream(size_t n, const float *x, float *y)
{
    if (!is_whole_lines(y, n * sizeof *y)) {
        memcpy(y, x, n * sizeof *y);
        return;
    }
    for (size_t i = 0; i < n; i += SIDE)
        _mm512_stream_ps(y + i, _mm512_loadu_ps(x + i));
}

static void fence(void)
{
    _mm_sfence();
}

/* 2ᶻ for −126 ≤ z ≤ 127, by a polynomial in z − ⌊z⌉ whose relative error is below 1e-7 (Remez) */
static inline __m512 exp2_of(__m512 z)
{
    z = _mm512_max_ps(_mm512_set1_ps(-126.0f), z); /* NaN stays: the second operand */
    __m512 whole = _mm512_roundscale_ps(z, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r = _mm512_sub_ps(z, whole),
           p = _mm512_set1_ps(1.327647245e-3f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.675540961e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.550713092e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.402212024e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.931469440e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.000000119f));
    return _mm512_scalef_ps(p, whole);
}

/* σ(1.702 x), 2⁻¹²⁶ at least */
static inline __m512 gelu_gate(__m512 x)
{
    __m512 z = _mm512_min_ps(_mm512_mul_ps(x, _mm512_set1_ps(-1.702f * LOG2_E)), _mm512_set1_ps(126.0f)),
           d = _mm512_add_ps(exp2_of(z), _mm512_set1_ps(1.0f)), guess = _mm512_rcp14_ps(d);
    return _mm512_mul_ps(guess, _mm512_fnmadd_ps(d, guess, _mm512_set1_ps(2.0f))); /* one of Newton's steps */
}

static void quick_gelu(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i += SIDE) {
        __mmask16 some = below(n, i);
        __m512 v = _mm512_maskz_loadu_ps(some, x + i);
        _mm512_mask_storeu_ps(y + i, some, _mm512_mul_ps(v, gelu_gate(v)));
    }
}

static void quick_gelu_backward(size_t n, const float *x, const float *dy, float *dx)
{
    for (size_t i = 0; i < n; i += SIDE) {
        __mmask16 some = below(n, i);
        __m512 v = _mm512_maskz_loadu_ps(some, x + i), s = gelu_gate(v),
               slope = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(1.702f), v), _mm512_fnmadd_ps(s, s, s));
        _mm512_mask_storeu_ps(dx + i, some,
                              _mm512_mul_ps(_mm512_maskz_loadu_ps(some, dy + i), _mm512_add_ps(s, slope)));
    }
}

static float softmax(size_t n, size_t padded, float scale, float *x, uint16_t *p)
{
    enum { NAN_OR_INFINITE = 0x89, MINUS_INFINITE = 0x10 };
    __m512 highest = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
    __mmask16 strange = 0;
    for (size_t i = 0; i < n; i += SIDE) {
        __mmask16 some = below(n, i);
        __m512 v = _mm512_maskz_loadu_ps(some, x + i);
        strange |= _mm512_mask_fpclass_ps_mask(some, v, NAN_OR_INFINITE);
        highest = _mm512_mask_max_ps(highest, some, highest, v);
    }
    float top = _mm512_reduce_max_ps(highest);
    strange |= top == -INFINITY; /* nothing else is seen */
    __m512 most = _mm512_set1_ps(strange ? NAN : top), factor = _mm512_set1_ps(scale * LOG2_E);
    for (size_t i = 0; i < padded; i += SIDE) {
        __m512 v = _mm512_maskz_loadu_ps(below(n, i), x + i);
        __mmask16 some = below(n, i) & (__mmask16)~_mm512_fpclass_ps_mask(v, MINUS_INFINITE);
        __m512 e = _mm512_maskz_mov_ps(some, exp2_of(_mm512_mul_ps(_mm512_sub_ps(v, most), factor)));
        _mm512_storeu_ps(x + i, e);
        sum = _mm512_add_ps(sum, e);
    }
    float inverse = strange ? NAN : 1.0f / _mm512_reduce_add_ps(sum);
    __m512 share = _mm512_set1_ps(inverse);
    for (size_t i = 0; i < padded; i += 2 * SIDE)
        store_rounded(p + i, _mm512_maskz_mul_ps(below(n, i), _mm512_loadu_ps(x + i), share),
                      _mm512_maskz_mul_ps(below(n, i + SIDE), _mm512_loadu_ps(x + i + SIDE), share));
    return inverse;
}

static inline __m512 score_gradient(size_t n, size_t i, __m512 factor, __m512 mean, const float *e, const float *dp)
{
    __mmask16 some = below(n, i);
    __m512 difference = _mm512_sub_ps(_mm512_maskz_loadu_ps(some, dp + i), mean);
    return _mm512_maskz_mul_ps(some, _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(some, e + i)), difference);
}

static void softmax_backward(size_t n, size_t padded, float scale, float inverse, const float *e, const float *dp,
                             uint16_t *dx)
{
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += SIDE) {
        __mmask16 some = below(n, i);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(some, e + i), _mm512_maskz_loadu_ps(some, dp + i), sum);
    }
    __m512 mean = _mm512_set1_ps(inverse * _mm512_reduce_add_ps(sum)), factor = _mm512_set1_ps(scale * inverse);
    for (size_t i = 0; i < padded; i += 2 * SIDE)
        store_rounded(dx + i, score_gradient(n, i, factor, mean, e, dp),
                      score_gradient(n, i + SIDE, factor, mean, e, dp));
}

#define KERNELS(unit, product)                                                                                         \
    {                                                                                                                  \
        .name = unit, .multiply = product, .round = round_values, .stream_rounded = stream_rounded, .stream = stream,  \
        .fence = fence, .quick_gelu = quick_gelu, .quick_gelu_backward = quick_gelu_backward, .softmax = softmax,      \
        .softmax_backward = softmax_backward                                                                           \
    }
const struct bf16_kernels bf16_kernels_avx512bf16 = KERNELS("avx512bf16", multiply);
const struct bf16_kernels bf16_kernels_amx = KERNELS("amx", bf16_multiply_amx);
