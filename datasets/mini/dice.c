#include "datasets/mini/dice.h"

#include <math.h>

struct dice dice_make(uint64_t seed, uint32_t stream, uint64_t index)
{
    /* the picture's index fills the step and the upper half of the counter; the lower half counts its draws */
    return (struct dice){.rng = rng_make(seed, RNG_DRAWING, stream, (uint32_t)index), .next = index >> 32 << 32};
}

uint32_t dice_word(struct dice *dice)
{
    if (dice->left == 0) {
        rng_block(&dice->rng, dice->next++, dice->words);
        dice->left = 4;
    }
    return dice->words[--dice->left];
}

float dice_between(struct dice *dice, float low, float high)
{
    return low + (high - low) * ((float)(dice_word(dice) >> 8) * 0x1p-24f);
}

float dice_bell(struct dice *dice)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t word = dice_word(dice);
        sum += (word >> 16) + (word & 0xffff);
    }
    /* eight uniforms on [0, 65535]: mean 4 · 65535, standard deviation sqrt(8 / 12) · 65536 */
    return ((float)sum - 262140.0f) * (1.2247449f / 65536.0f);
}

int dice_below(struct dice *dice, int count)
{
    return (int)((uint64_t)dice_word(dice) * (uint64_t)count >> 32);
}

bool dice_chance(struct dice *dice, float probability)
{
    return dice_between(dice, 0, 1) < probability;
}

float turn_sine(float turns)
{
    float t = turns - floorf(turns + 0.5f);
    float parabola = 8 * t - 16 * t * fabsf(t);
    return 0.225f * (parabola * fabsf(parabola) - parabola) + parabola;
}

float turn_cosine(float turns)
{
    return turn_sine(turns + 0.25f);
}
