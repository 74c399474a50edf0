/* Frozen weights are packed once and read until their parameters change or are released (struct backend, renew). */
#include <stdlib.h>

#include "core/alloc.h"
#include "models/cpu/cpu.h"

struct packed_weight {
    struct matrix matrix;
    bool transpose;
    uint32_t *pairs;
};

static bool same(const struct packed_weight *w, struct matrix b, bool transpose)
{
    return w->matrix.data == b.data && w->matrix.rows == b.rows && w->matrix.columns == b.columns &&
           w->matrix.stride == b.stride && w->transpose == transpose;
}

const uint32_t *cpu_weights_find(const struct cpu_weights *weights, struct matrix b, bool transpose)
{
    for (size_t i = 0; i < weights->count; i++)
        if (same(&weights->list[i], b, transpose))
            return weights->list[i].pairs;
    return NULL;
}

uint32_t *cpu_weights_add(struct cpu_weights *weights, struct matrix b, bool transpose, size_t pairs)
{
    if (weights->count == weights->capacity) {
        weights->capacity = weights->capacity > 0 ? 2 * weights->capacity : 64;
        weights->list = xrealloc(weights->list, weights->capacity * sizeof *weights->list);
    }
    uint32_t *memory = aligned_alloc(64, bf16_padded(array_size(pairs, sizeof *memory), 64));
    if (memory != NULL)
        weights->list[weights->count++] = (struct packed_weight){b, transpose, memory};
    return memory;
}

void cpu_weights_renew(struct cpu_weights *weights, const float *values, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < weights->count; i++) {
        struct packed_weight w = weights->list[i];
        const float *first = w.matrix.data, *last = first + w.matrix.rows * w.matrix.stride;
        if (first < values + n && values < last)
            free(w.pairs);
        else
            weights->list[kept++] = w;
    }
    weights->count = kept;
}

void cpu_weights_free(struct cpu_weights *weights)
{
    for (size_t i = 0; i < weights->count; i++)
        free(weights->list[i].pairs);
    free(weights->list);
}
