#include "core/rng.h"

#include <math.h>

struct rng rng_make(uint64_t seed, enum rng_purpose purpose, uint32_t task, uint32_t step)
{
    return (struct rng){.seed = seed, .purpose = purpose, .task = task, .step = step};
}

void rng_block(const struct rng *rng, uint64_t index, uint32_t words[4])
{
    uint32_t key0 = (uint32_t)rng->seed, key1 = (uint32_t)(rng->seed >> 32);
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = rng->step,
             c3 = rng->purpose << 16 | (rng->task & 0xffff);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

uint32_t rng_uint32(const struct rng *rng, uint64_t index)
{
    uint32_t words[4];
    rng_block(rng, index, words);
    return words[0];
}

float rng_uniform(const struct rng *rng, uint64_t index)
{
    return (float)(rng_uint32(rng, index) >> 8) * 0x1p-24f;
}

float rng_normal(const struct rng *rng, uint64_t index)
{
    uint32_t words[4];
    rng_block(rng, index, words);
    /* u in (0, 1], so that the logarithm is finite */
    float u = (float)((words[0] >> 8) + 1) * 0x1p-24f, v = (float)(words[1] >> 8) * 0x1p-24f;
    return sqrtf(-2.0f * logf(u)) * cosf(6.2831853071795864769f * v);
}

uint32_t rng_below(const struct rng *rng, uint64_t index, uint32_t n)
{
    return (uint32_t)((uint64_t)rng_uint32(rng, index) * n >> 32);
}

void rng_permutation(const struct rng *rng, size_t n, uint32_t *order)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; i + 1 < n; i++) {
        size_t j = i + rng_below(rng, i, (uint32_t)(n - i));
        uint32_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}
