/* Random numbers addressed by what they are for.
 *
 *     struct rng crops = rng_make(seed, RNG_CROP, task, step);
 *     float u = rng_uniform(&crops, image);      // the same in any thread, batch split or resumed run
 *
 * Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the key is the seed, the counter
 * holds purpose, task, step and index. There is no state to advance. The functions philox_… are those of a block of four
 * words, for the host and for devices.
 */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum rng_purpose {
    RNG_INIT = 1,     /* adapter and model initialisation */
    RNG_ORDER,        /* order of the training items */
    RNG_CROP,         /* augmentation */
    RNG_ROUTER_NOISE, /* n of noisy top-k */
    RNG_DROPOUT,      /* expert dropout */
    RNG_SELECTOR,     /* autoencoder initialisation and order */
    RNG_FEW_SHOT,     /* the n images per class of the few-shot settings */
    RNG_POLICY,       /* merge policies that draw */
    RNG_DRAWING,      /* the built-in suite's and pre-training's pictures */
    RNG_REFERENCE,    /* order of the reference images of the distillation methods */
    RNG_TEST,
    RNG_RESAMPLING, /* bootstrap and permutation tests */
    RNG_PARTITION,  /* cuts of a dataset's classes into tasks */
    RNG_SENTENCES,  /* random reference texts of the distillation methods */
    RNG_DIRECTIONS, /* random features of closed-form regression */
    RNG_TOKENS,     /* partitions of tokens among experts */
    RNG_AUGMENT,    /* operations of RandAugment or AutoAugment */
    RNG_ERASING,    /* random erasing */
    RNG_MIXING,     /* mixup and CutMix */
    RNG_FLIP,       /* mirrored training images */
    RNG_TOWER_DROPOUT,
    RNG_HELD_OUT, /* a task's images that choose a ridge */
    RNG_CENTRES,  /* the first centres of k-means */
    RNG_SAMPLES   /* features drawn from the Gaussians of earlier classes */
};

struct rng {
    uint64_t seed;
    uint32_t purpose, task; /* both below 2^16 */
    uint32_t step;
};

struct rng rng_make(uint64_t seed, enum rng_purpose purpose, uint32_t task, uint32_t step);

/* The four 32-bit words of counter (index, step, purpose·2^16 + task) under the key seed. */
void rng_block(const struct rng *rng, uint64_t index, uint32_t words[4]);

uint32_t rng_uint32(const struct rng *rng, uint64_t index); /* first word of that block */
float rng_uniform(const struct rng *rng, uint64_t index);   /* [0, 1), 24 bits */
float rng_normal(const struct rng *rng, uint64_t index);    /* N(0, 1), Box-Muller on the first two words */

/* Uniform in [0, n), n > 0, by multiplication (bias below n / 2^32). */
uint32_t rng_below(const struct rng *rng, uint64_t index, uint32_t n);

/* A Fisher-Yates shuffle of order[0 … n−1], which is filled with 0 … n−1 first; draw i has index i. */
void rng_permutation(const struct rng *rng, size_t n, uint32_t *order);

/* Marks functions of headers that the host's compiler and CUDA's both compile, for the host and for devices. */
#ifdef __CUDACC__
#define MTIL_HOST_DEVICE __host__ __device__
#else
#define MTIL_HOST_DEVICE
#endif

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
