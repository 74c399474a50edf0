#include "datasets/split/split.h"

enum { WORDS = 624, MIDDLE = 397 };

struct twister {
    uint32_t state[WORDS];
    int position;
};

static void twister_seed(struct twister *twister, uint32_t seed)
{
    twister->state[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        twister->state[i] = 1812433253U * (twister->state[i - 1] ^ twister->state[i - 1] >> 30) + i;
    twister->position = WORDS;
}

static void twister_refill(struct twister *twister)
{
    uint32_t *state = twister->state;
    for (int i = 0; i < WORDS; i++) {
        uint32_t bits = (state[i] & 0x80000000U) | (state[(i + 1) % WORDS] & 0x7fffffffU);
        state[i] = state[(i + MIDDLE) % WORDS] ^ bits >> 1 ^ (bits & 1 ? 0x9908b0dfU : 0);
    }
    twister->position = 0;
}

static uint32_t twister_draw(struct twister *twister)
{
    if (twister->position == WORDS)
        twister_refill(twister);
    uint32_t word = twister->state[twister->position++];
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680U;
    word ^= word << 15 & 0xefc60000U;
    return word ^ word >> 18;
}

void split_permutation(uint64_t seed, size_t n, uint32_t *order)
{
    struct twister twister;
    twister_seed(&twister, (uint32_t)seed);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; i + 1 < n; i++) {
        size_t j = i + twister_draw(&twister) % (n - i);
        uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Bits above the highest of `most` are masked away; what is still greater is drawn again. */
static uint32_t draw_to(struct twister *twister, uint32_t most)
{
    uint32_t mask = most, drawn;
    for (unsigned shift = 1; shift < 32; shift *= 2)
        mask |= mask >> shift;
    do
        drawn = twister_draw(twister) & mask;
    while (drawn > most);
    return drawn;
}

void split_numpy_permutation(uint32_t seed, size_t n, uint32_t *order)
{
    struct twister twister;
    twister_seed(&twister, seed);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = n; i-- > 1;) {
        size_t j = draw_to(&twister, (uint32_t)i);
        uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

size_t split_train_count(size_t n)
{
    return (size_t)(0.8 * (double)n);
}
