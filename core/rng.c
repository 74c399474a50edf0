#include "core/rng.h"

struct rng rng_make(uint64_t seed, enum rng_purpose purpose, uint32_t task, uint32_t step)
{
    return (struct rng){.seed = seed, .purpose = purpose, .task = task, .step = step};
}

void rng_block(const struct rng *rng, uint64_t index, uint32_t words[4])
{
    philox_block(rng->seed, index, rng->step, philox_stream(rng->purpose, rng->task), words);
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
    return philox_normal(words);
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
