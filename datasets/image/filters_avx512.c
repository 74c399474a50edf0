/* The inner loops with the instructions of AVX-512 VNNI: vpdpbusd multiplies four pixels by four signed bytes and adds
 * the products to a 32-bit sum. A weight is three such bytes: w = d₀ · 2^16 + d₁ · 2^8 + d₂. */
#include "datasets/image/resample.h"

#if defined(__x86_64__)

#include <stdbool.h>
#include <string.h>

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vnni")))
#define INLINE static inline __attribute__((always_inline))

enum { GROUP_DIGITS = FILTER_DIGITS * FILTER_GROUP };

struct sums {
    __m512i digits[FILTER_DIGITS];
};

/* pixels: four of one column or channel in each 32 bits. digits: a group's, [3, 4]. */
AVX512 INLINE void add_products(struct sums *sums, __m512i pixels, const int8_t *digits)
{
    for (int d = 0; d < FILTER_DIGITS; d++) {
        int32_t four;
        memcpy(&four, digits + (size_t)d * FILTER_GROUP, sizeof four);
        sums->digits[d] = _mm512_dpbusd_epi32(sums->digits[d], pixels, _mm512_set1_epi32(four));
    }
}

/* Rounded, and not below 0. */
AVX512 INLINE __m512i finish(const struct sums *sums)
{
    __m512i total = _mm512_add_epi32(_mm512_slli_epi32(sums->digits[0], 8), sums->digits[1]);
    total = _mm512_add_epi32(_mm512_slli_epi32(total, 8), sums->digits[2]);
    total = _mm512_add_epi32(total, _mm512_set1_epi32(1 << (FILTER_FRACTION - 1)));
    return _mm512_max_epi32(_mm512_srai_epi32(total, FILTER_FRACTION), _mm512_setzero_si512());
}

/* Sixteen bytes of each of four rows. */
AVX512 INLINE __m512i load_rows(const struct filter_rows *rows, size_t offset)
{
    __m512i all = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(rows->source[0] + offset)));
    for (int r = 1; r < FILTER_ROWS; r++)
        all = _mm512_mask_broadcast_i32x4(all, (__mmask16)(0xf << 4 * r),
                                          _mm_loadu_si128((const __m128i *)(rows->source[r] + offset)));
    return all;
}

/* Pixel i of four rows. Four bytes are stored where the next pixel overwrites the last of them. */
AVX512 INLINE void store_pixels(const struct filter_rows *rows, int i, bool last, __m512i pixels)
{
    uint32_t values[FILTER_ROWS];
    _mm_storeu_si128((__m128i *)values, _mm512_cvtusepi32_epi8(pixels));
    for (int r = 0; r < FILTER_ROWS; r++) {
        if (last)
            memcpy(rows->target[r] + 3 * i, &values[r], 3);
        else
            memcpy(rows->target[r] + 3 * i, &values[r], 4);
    }
}

AVX512 static void rows_avx512(const struct filter_rows *given, const struct kernel *kernel)
{
    const struct filter_rows copy = *given, *rows = &copy; /* stores of bytes may not change it: kept in registers */
    const __m512i by_channel =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1));
    for (int i = 0; i < kernel->count; i++) {
        const int8_t *digits = kernel->digits + (size_t)i * (size_t)kernel->groups * GROUP_DIGITS;
        size_t offset = (size_t)kernel->start[i] * 3;
        struct sums sums = {{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()}};
        for (int j = 0; j < kernel->size[i]; j += FILTER_GROUP, digits += GROUP_DIGITS, offset += 3 * FILTER_GROUP)
            add_products(&sums, _mm512_shuffle_epi8(load_rows(rows, offset), by_channel), digits);
        store_pixels(rows, i, i + 1 == kernel->count, finish(&sums));
    }
}

enum { BLOCK = 64 };

/* Sixty-four columns, four rows at a time; those past the last tap have weight 0. */
AVX512 INLINE void filter_block(const struct filter_columns *columns, size_t x)
{
    const struct kernel *kernel = columns->kernel;
    const int8_t *digits = kernel->digits + (size_t)columns->output * (size_t)kernel->groups * GROUP_DIGITS;
    const uint8_t *row = columns->source + x;
    int size = kernel->size[columns->output];
    struct sums sums[4];
    memset(sums, 0, sizeof sums);
    for (int j = 0; j < size; j += FILTER_GROUP, digits += GROUP_DIGITS, row += FILTER_GROUP * columns->stride) {
        __m512i rows[FILTER_GROUP];
        for (int k = 0; k < FILTER_GROUP; k++)
            rows[k] = _mm512_loadu_si512(j + k < size ? row + (size_t)k * columns->stride : row);
        __m512i left[2] = {_mm512_unpacklo_epi8(rows[0], rows[1]), _mm512_unpacklo_epi8(rows[2], rows[3])};
        __m512i right[2] = {_mm512_unpackhi_epi8(rows[0], rows[1]), _mm512_unpackhi_epi8(rows[2], rows[3])};
        add_products(&sums[0], _mm512_unpacklo_epi16(left[0], left[1]), digits);
        add_products(&sums[1], _mm512_unpackhi_epi16(left[0], left[1]), digits);
        add_products(&sums[2], _mm512_unpacklo_epi16(right[0], right[1]), digits);
        add_products(&sums[3], _mm512_unpackhi_epi16(right[0], right[1]), digits);
    }
    _mm512_storeu_si512(columns->target + x,
                        _mm512_packus_epi16(_mm512_packs_epi32(finish(&sums[0]), finish(&sums[1])),
                                            _mm512_packs_epi32(finish(&sums[2]), finish(&sums[3]))));
}

AVX512 static void columns_avx512(const struct filter_columns *columns)
{
    if (columns->width < BLOCK) {
        filters_plain.columns(columns);
        return;
    }
    for (size_t x = 0; x + BLOCK <= columns->width; x += BLOCK)
        filter_block(columns, x);
    if (columns->width % BLOCK != 0)
        filter_block(columns, columns->width - BLOCK); /* some columns twice, with the same result */
}

const struct filters filters_avx512 = {rows_avx512, columns_avx512};

#endif
