#include "models/tokenizer/pairs.h"

#include <stdlib.h>

#include "core/alloc.h"

enum { FIRST_CAPACITY = 1024 };

/* The pair's slot, or the free one where it belongs; capacity is above 0 and never full. */
static struct pair *locate(const struct pairs *pairs, uint32_t left, uint32_t right)
{
    uint64_t key = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15U; /* Fibonacci hashing */
    size_t mask = pairs->capacity - 1, slot = (size_t)(key >> 32) & mask;
    while (pairs->slots[slot].used && (pairs->slots[slot].left != left || pairs->slots[slot].right != right))
        slot = (slot + 1) & mask;
    return &pairs->slots[slot];
}

static void grow(struct pairs *pairs)
{
    struct pairs grown = {.capacity = pairs->capacity == 0 ? FIRST_CAPACITY : 2 * pairs->capacity,
                          .count = pairs->count};
    grown.slots = xcalloc(grown.capacity, sizeof *grown.slots);
    for (size_t i = 0; i < pairs->capacity; i++)
        if (pairs->slots[i].used)
            *locate(&grown, pairs->slots[i].left, pairs->slots[i].right) = pairs->slots[i];
    free(pairs->slots);
    *pairs = grown;
}

uint64_t *pairs_at(struct pairs *pairs, uint32_t left, uint32_t right)
{
    if (2 * pairs->count >= pairs->capacity)
        grow(pairs);
    struct pair *slot = locate(pairs, left, right);
    if (!slot->used) {
        *slot = (struct pair){left, right, 0, true};
        pairs->count++;
    }
    return &slot->value;
}

const uint64_t *pairs_find(const struct pairs *pairs, uint32_t left, uint32_t right)
{
    if (pairs->capacity == 0)
        return NULL;
    const struct pair *slot = locate(pairs, left, right);
    return slot->used ? &slot->value : NULL;
}

void pairs_free(struct pairs *pairs)
{
    free(pairs->slots);
    *pairs = (struct pairs){0};
}
