/* Operands of bf16 products in the order in which they are read; those of frozen weights are kept. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "models/cpu/cpu.h"

enum { SIDE = BF16_SIDE, DEPTH = BF16_DEPTH, CHUNK = 512 /* values of a row at a time */ };

/* count values of a row as bf16, and zeros up to `padded` */
static void read_row(const struct cpu *cpu, struct matrix m, size_t row, size_t column, size_t count, size_t padded,
                     uint16_t *to)
{
    size_t at = row * m.stride + column;
    if (m.type == TENSOR_BF16)
        copy_few(to, (const uint16_t *)m.data + at, count * sizeof *to);
    else
        cpu->bf16->round(count, (const float *)m.data + at, to);
    clear_few(to + count, (padded - count) * sizeof *to);
}

/* Rows [first, first + count ≤ SIDE) at a depth of m's rows, as zeros where there are none. */
static void read_depths(const struct cpu *cpu, struct matrix m, size_t depth, size_t column, size_t count,
                        size_t padded, uint16_t to[2][CHUNK])
{
    for (size_t i = 0; i < 2; i++) {
        if (depth + i < m.rows)
            read_row(cpu, m, depth + i, column, count, padded, to[i]);
        else
            clear_few(to[i], padded * sizeof **to);
    }
}

/* Packs aᵀ: pairs of a's rows, transposed block by block. */
static void pack_left_transposed(const struct cpu *cpu, struct matrix a, size_t first, size_t count, uint16_t *to,
                                 size_t stride)
{
    uint16_t rows[2][CHUNK];
    uint32_t pairs[CHUNK / SIDE][SIDE][SIDE], transposed[SIDE][SIDE];
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t n = smaller(count - from, CHUNK), padded = bf16_padded(n, SIDE);
        for (size_t k = 0; k < a.rows; k += DEPTH) {
            for (size_t p = 0; p < SIDE; p++) {
                read_depths(cpu, a, k + 2 * p, first + from, n, padded, rows);
                cpu->vector->pair(padded, rows[0], rows[1], pairs[0][p], SIDE * SIDE);
            }
            for (size_t i = 0; i < n; i++) {
                if (i % SIDE == 0)
                    cpu->vector->transpose(SIDE, pairs[i / SIDE][0], SIDE, transposed[0], SIDE);
                memcpy(to + (from + i) * stride + k, transposed[i % SIDE], sizeof transposed[0]);
            }
        }
    }
}

void bf16_pack_left(const struct cpu *cpu, struct matrix a, bool transpose, size_t first, size_t count, uint16_t *to,
                    size_t stride)
{
    if (transpose)
        pack_left_transposed(cpu, a, first, count, to, stride);
    else
        for (size_t i = 0; i < count; i++)
            read_row(cpu, a, first + i, 0, a.columns, bf16_padded(a.columns, DEPTH), to + i * stride);
}

/* Packs a strip of bᵀ: 16 of b's rows, transposed. */
static void pack_strip_transposed(const struct cpu *cpu, struct matrix b, size_t strip, uint32_t *to)
{
    union {
        uint16_t values[SIDE][CHUNK];
        uint32_t pairs[SIDE][CHUNK / 2];
    } rows;
    size_t first = strip * SIDE, count = smaller(b.rows - first, SIDE);
    if (count < SIDE)
        memset(&rows, 0, sizeof rows);
    for (size_t k = 0; k < b.columns; k += CHUNK) {
        size_t n = smaller(b.columns - k, CHUNK), padded = bf16_padded(n, DEPTH);
        for (size_t i = 0; i < count; i++)
            read_row(cpu, b, first + i, k, n, padded, rows.values[i]);
        cpu->vector->transpose(padded / 2, rows.pairs[0], CHUNK / 2, to + k / 2 * SIDE, SIDE);
    }
}

/* Pairs of b's rows as they are, in pieces of CHUNK columns. */
static void pack_strips(const struct cpu *cpu, struct matrix b, size_t first, size_t last, uint32_t *to)
{
    uint16_t rows[2][CHUNK];
    size_t depth = bf16_padded(b.rows, DEPTH), strip = depth / 2 * SIDE;
    for (size_t s = first; s < last; s += CHUNK / SIDE) {
        size_t column = s * SIDE, end = smaller(last, s + CHUNK / SIDE) * SIDE, padded = end - column,
               n = smaller(end, b.columns) - column;
        for (size_t k = 0; k < depth; k += 2) {
            read_depths(cpu, b, k, column, n, padded, rows);
            cpu->vector->pair(padded, rows[0], rows[1], to + s * strip + k / 2 * SIDE, strip);
        }
    }
}

void bf16_pack_right(const struct cpu *cpu, struct matrix b, bool transpose, size_t first, size_t last, uint32_t *to)
{
    if (!transpose) {
        pack_strips(cpu, b, first, last, to);
        return;
    }
    for (size_t s = first; s < last; s++)
        pack_strip_transposed(cpu, b, s, to + s * bf16_padded(b.columns, DEPTH) / 2 * SIDE);
}

/* ---- frozen weights are packed once and read until their parameters change or are released (struct backend, renew) ---- */

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
