/* A hash table from pairs of symbols to a number.
 *
 *     struct pairs pairs = {0};
 *     uint64_t *value = pairs_at(&pairs, left, right);      // a new pair starts with 0
 *     const uint64_t *found = pairs_find(&pairs, left, right);
 *     pairs_free(&pairs);
 *
 * Open addressing with linear probing; pairs are never removed. Finding is safe from several threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
    uint32_t left, right;
    uint64_t value;
    bool used;
};

struct pairs {
    struct pair *slots;
    size_t capacity, count; /* capacity is 0 or a power of two; walk the slots to see all pairs */
};

uint64_t *pairs_at(struct pairs *pairs, uint32_t left, uint32_t right);
const uint64_t *pairs_find(const struct pairs *pairs, uint32_t left, uint32_t right); /* NULL: absent */
void pairs_free(struct pairs *pairs);
