/* Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) for the host and for
 * devices; see core/rng.h for its use. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "core/host_device.h"

enum { PHILOX_ROUNDS = 10 };

static inline MTIL_HOST_DEVICE void philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, uint32_t key0,
                                                 uint32_t key1)
{
    uint64_t p0 = (uint64_t)0xD2511F53u * *c0, p1 = (uint64_t)0xCD9E8D57u * *c2;
    *c0 = (uint32_t)(p1 >> 32) ^ *c1 ^ key0;
    *c1 = (uint32_t)p1;
    *c2 = (uint32_t)(p0 >> 32) ^ *c3 ^ key1;
    *c3 = (uint32_t)p0;
}

static inline MTIL_HOST_DEVICE void philox_next_key(uint32_t *key0, uint32_t *key1)
{
    *key0 += 0x9E3779B9u;
    *key1 += 0xBB67AE85u;
}

/* The highest word of the counter. */
static inline MTIL_HOST_DEVICE uint32_t philox_stream(uint32_t purpose, uint32_t task)
{
    return purpose << 16 | (task & 0xffffu);
}

/* The four words of counter (index, step, stream) under the key seed. */
static inline MTIL_HOST_DEVICE void philox_block(uint64_t seed, uint64_t index, uint32_t step, uint32_t stream,
                                                 uint32_t words[4])
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    words[0] = (uint32_t)index;
    words[1] = (uint32_t)(index >> 32);
    words[2] = step;
    words[3] = stream;
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        philox_round(&words[0], &words[1], &words[2], &words[3], key0, key1);
        philox_next_key(&key0, &key1);
    }
}

/* N(0, 1) by Box and Muller from the first two words. A device's logarithm and cosine may differ from the host's in the
 * last bit. */
static inline MTIL_HOST_DEVICE float philox_normal(const uint32_t words[4])
{
    /* u in (0, 1], so that the logarithm is finite */
    float u = (float)((words[0] >> 8) + 1) * 0x1p-24f, v = (float)(words[1] >> 8) * 0x1p-24f;
    return sqrtf(-2.0f * logf(u)) * cosf(6.2831853071795864769f * v);
}
