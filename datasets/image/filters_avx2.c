/* The inner loops with the instructions of AVX2. */
#include "datasets/image/resample.h"

#if defined(__x86_64__)

#include <stdbool.h>

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i join_parts(__m256i high, __m256i low)
{
    return _mm256_add_epi32(_mm256_slli_epi32(high, FILTER_LOW), low);
}

AVX2 static inline __m256i round_sums(__m256i sums)
{
    return _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << (FILTER_FRACTION - 1))), FILTER_FRACTION);
}

/* Pixel i of four rows. The halves of a row's sums belong together; they are added for two rows at a time. Four
 * bytes are stored where the next pixel overwrites the last of them. */
AVX2 static inline __attribute__((always_inline)) void store_pixels(const struct filter_rows *rows, int i, bool last,
                                                                    const __m256i high[4], const __m256i low[4])
{
    __m256i pairs[2];
    for (int r = 0; r < 4; r += 2) {
        __m256i one = join_parts(high[r], low[r]), two = join_parts(high[r + 1], low[r + 1]);
        pairs[r / 2] = round_sums(
            _mm256_add_epi32(_mm256_permute2x128_si256(one, two, 0x20), _mm256_permute2x128_si256(one, two, 0x31)));
    }
    __m256i words = _mm256_packs_epi32(pairs[0], pairs[1]); /* rows 0 2, 1 3 */
    __m256i bytes = _mm256_packus_epi16(words, words);
    uint32_t pixels[FILTER_ROWS] = {(uint32_t)_mm256_extract_epi32(bytes, 0), (uint32_t)_mm256_extract_epi32(bytes, 4),
                                    (uint32_t)_mm256_extract_epi32(bytes, 1), (uint32_t)_mm256_extract_epi32(bytes, 5)};
    for (int r = 0; r < FILTER_ROWS; r++) {
        if (last)
            __builtin_memcpy(rows->target[r] + 3 * i, &pixels[r], 3);
        else
            __builtin_memcpy(rows->target[r] + 3 * i, &pixels[r], 4);
    }
}

/* vpmaddwd multiplies sixteen pairs of 16-bit numbers and adds neighbours. Of four pixels it is given the lanes
 * r0 r1 g0 g1 b0 b1 - -, r2 r3 g2 g3 b2 b3 - -, against the weights w0 w1 four times, w2 w3 four times. */
AVX2 static void rows_avx2(const struct filter_rows *rows, const struct kernel *kernel)
{
    const __m256i spread = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                                            -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i pick_high = _mm256_setr_epi32(0x03020100, 0x03020100, 0x03020100, 0x03020100, 0x07060504, 0x07060504,
                                                0x07060504, 0x07060504);
    const __m256i pick_low = _mm256_add_epi8(pick_high, _mm256_set1_epi8(8));
    for (int i = 0; i < kernel->count; i++) {
        const int16_t *parts = kernel->parts + (size_t)i * (size_t)kernel->groups * 2 * FILTER_GROUP;
        size_t offset = (size_t)kernel->start[i] * 3;
        __m256i high[FILTER_ROWS], low[FILTER_ROWS];
        for (int r = 0; r < FILTER_ROWS; r++)
            high[r] = low[r] = _mm256_setzero_si256();
        for (int j = 0; j < kernel->size[i]; j += FILTER_GROUP, parts += 2 * FILTER_GROUP, offset += 3 * FILTER_GROUP) {
            __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)parts));
            __m256i high_weight = _mm256_shuffle_epi8(both, pick_high),
                    low_weight = _mm256_shuffle_epi8(both, pick_low);
            for (int r = 0; r < FILTER_ROWS; r++) {
                __m128i packed = _mm_loadu_si128((const __m128i *)(rows->source[r] + offset));
                __m256i pixels = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(packed), spread);
                high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(pixels, high_weight));
                low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(pixels, low_weight));
            }
        }
        store_pixels(rows, i, i + 1 == kernel->count, high, low);
    }
}

/* Sixteen columns; pairs of rows are interleaved for vpmaddwd. */
AVX2 static inline void sixteen_columns(const struct filter_columns *columns, size_t x)
{
    const struct kernel *kernel = columns->kernel;
    const int16_t *parts = kernel->parts + (size_t)columns->output * (size_t)kernel->groups * 2 * FILTER_GROUP;
    const uint8_t *row = columns->source + x;
    int size = kernel->size[columns->output];
    __m256i high[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, low[2] = {high[0], high[0]};
    for (int j = 0; j < size; j += 2, row += 2 * columns->stride) {
        const int16_t *pair = parts + j / FILTER_GROUP * 2 * FILTER_GROUP + j % FILTER_GROUP;
        int32_t high_pair, low_pair;
        __builtin_memcpy(&high_pair, pair, sizeof high_pair);
        __builtin_memcpy(&low_pair, pair + FILTER_GROUP, sizeof low_pair);
        __m256i high_weight = _mm256_set1_epi32(high_pair), low_weight = _mm256_set1_epi32(low_pair);
        const uint8_t *next = j + 1 < size ? row + columns->stride : row; /* past the last tap: weight 0 */
        __m256i above = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)row));
        __m256i below = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)next));
        __m256i left = _mm256_unpacklo_epi16(above, below), right = _mm256_unpackhi_epi16(above, below);
        high[0] = _mm256_add_epi32(high[0], _mm256_madd_epi16(left, high_weight));
        high[1] = _mm256_add_epi32(high[1], _mm256_madd_epi16(right, high_weight));
        low[0] = _mm256_add_epi32(low[0], _mm256_madd_epi16(left, low_weight));
        low[1] = _mm256_add_epi32(low[1], _mm256_madd_epi16(right, low_weight));
    }
    __m256i words =
        _mm256_packs_epi32(round_sums(join_parts(high[0], low[0])), round_sums(join_parts(high[1], low[1])));
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(columns->target + x), bytes);
}

AVX2 static void columns_avx2(const struct filter_columns *columns)
{
    enum { BLOCK = 16 };
    if (columns->width < BLOCK) {
        filters_plain.columns(columns);
        return;
    }
    for (size_t x = 0; x + BLOCK <= columns->width; x += BLOCK)
        sixteen_columns(columns, x);
    if (columns->width % BLOCK != 0)
        sixteen_columns(columns, columns->width - BLOCK); /* some columns twice, with the same result */
}

const struct filters filters_avx2 = {rows_avx2, columns_avx2};

#endif
