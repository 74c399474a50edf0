/* Random numbers addressed by what they are for.
 *
 *     struct rng crops = rng_make(seed, RNG_CROP, task, step);
 *     float u = rng_uniform(&crops, image);      // the same in any thread, batch split or resumed run
 *
 * Philox-4x32-10 (core/philox.h): the key is the seed, the counter holds purpose, task, step and index. There is no
 * state to advance.
 */
#pragma once

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
