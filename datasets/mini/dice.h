/* Draws in turn, on top of the addressed random numbers of core/rng.h.
 *
 *     struct dice dice = dice_make(seed, STREAM_SUITE, index);      // one for each picture
 *     float angle = dice_between(&dice, 0, 1);
 *     if (dice_chance(&dice, 0.3f)) ...
 *
 * A call has one draw among its arguments, whose order no compiler has to keep.
 *
 * Angles are in turns; sine and cosine are polynomials here, so that a picture has the same bits with any C library.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/rng.h"

struct dice {
    struct rng rng;
    uint64_t next;
    uint32_t words[4];
    unsigned left; /* words not yet used */
};

/* stream tells the domains of the suite apart (below 2^16). */
struct dice dice_make(uint64_t seed, uint32_t stream, uint64_t index);

uint32_t dice_word(struct dice *dice);                        /* 32 fresh bits */
float dice_between(struct dice *dice, float low, float high); /* uniform in [low, high) */
float dice_bell(struct dice *dice);           /* mean 0, variance 1: the sum of eight uniforms, |x| < 5 */
int dice_below(struct dice *dice, int count); /* uniform in [0, count) */
bool dice_chance(struct dice *dice, float probability);

float turn_sine(float turns); /* sin(2π turns), error below 0.0012 */
float turn_cosine(float turns);
