#include "datasets/image/filters.h"

static void rows_plain(const struct filter_rows *rows, const struct kernel *kernel)
{
    for (int i = 0; i < kernel->count; i++) {
        const int32_t *weights = kernel->weights + (size_t)i * (size_t)kernel->groups * FILTER_GROUP;
        for (int r = 0; r < FILTER_ROWS; r++) {
            const uint8_t *source = rows->source[r] + (size_t)kernel->start[i] * 3;
            int32_t sums[3] = {1 << (FILTER_FRACTION - 1), 1 << (FILTER_FRACTION - 1), 1 << (FILTER_FRACTION - 1)};
            for (int j = 0; j < kernel->size[i]; j++)
                for (int c = 0; c < 3; c++)
                    sums[c] += weights[j] * source[3 * j + c];
            for (int c = 0; c < 3; c++)
                rows->target[r][3 * i + c] = filter_to_byte(sums[c]);
        }
    }
}

static void columns_plain(const struct filter_columns *columns)
{
    enum { BLOCK = 64 };
    const struct kernel *kernel = columns->kernel;
    const int32_t *weights = kernel->weights + (size_t)columns->output * (size_t)kernel->groups * FILTER_GROUP;
    size_t x = 0;
    for (; x + BLOCK <= columns->width; x += BLOCK) {
        int32_t sums[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            sums[i] = 1 << (FILTER_FRACTION - 1);
        for (int j = 0; j < kernel->size[columns->output]; j++)
            for (int i = 0; i < BLOCK; i++)
                sums[i] += weights[j] * columns->source[(size_t)j * columns->stride + x + (size_t)i];
        for (int i = 0; i < BLOCK; i++)
            columns->target[x + (size_t)i] = filter_to_byte(sums[i]);
    }
    for (; x < columns->width; x++)
        columns->target[x] = filter_column(columns, x);
}

const struct filters filters_plain = {rows_plain, columns_plain};

const struct filters *filters_at(size_t index)
{
    const struct filters *found[3];
    size_t count = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
        found[count++] = &filters_avx512;
    if (__builtin_cpu_supports("avx2"))
        found[count++] = &filters_avx2;
#endif
    found[count++] = &filters_plain;
    return index < count ? found[index] : NULL;
}
