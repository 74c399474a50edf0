/* Operands of f32 products in the order in which they are read. */
#include <string.h>

#include "models/cpu/cpu.h"

enum { SIDE = 16, ROWS = F32_ROWS, STRIP = F32_STRIP };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void f32_pack_left(struct matrix a, size_t first, size_t count, float *panels)
{
    size_t panel = ROWS * f32_row_values(a.columns);
    for (size_t i = 0; i < count; i++) {
        float *to = panels + i / ROWS * panel + i % ROWS * F32_STRIDE;
        for (size_t k = 0; k < a.columns; k += F32_DEPTH, to += ROWS * F32_STRIDE)
            copy_few(to, row_of(a, first + i) + k, smaller(a.columns - k, F32_DEPTH) * sizeof *to);
    }
}

/* Packs 16 columns of a strip of bᵀ: rows of b, transposed, and zeros where there are none. */
static void turn_half(const struct cpu *cpu, struct matrix b, size_t first, float *to)
{
    size_t count = first < b.rows ? smaller(b.rows - first, SIDE) : 0,
           turned = count == SIDE ? b.columns / SIDE * SIDE : 0;
    cpu->vector->turn(turned, (const uint32_t *)row_of(b, first), b.stride, (uint32_t *)to, STRIP);
    for (size_t k = turned; k < b.columns; k++)
        for (size_t i = 0; i < SIDE; i++)
            to[k * STRIP + i] = i < count ? row_of(b, first + i)[k] : 0;
}

/* Pieces of b's rows as they are, a row at a time so that it is read in one go. */
static void copy_strips(struct matrix b, size_t first, size_t last, float *strips)
{
    for (size_t k = 0; k < b.rows; k++)
        for (size_t s = first; s < last; s++) {
            size_t n = smaller(b.columns - s * STRIP, STRIP);
            float *to = strips + (s * b.rows + k) * STRIP;
            copy_few(to, row_of(b, k) + s * STRIP, n * sizeof *to);
            clear_few(to + n, (STRIP - n) * sizeof *to);
        }
}

void f32_pack_right(const struct cpu *cpu, struct matrix b, bool transpose, size_t first, size_t last, float *strips)
{
    if (!transpose) {
        copy_strips(b, first, last, strips);
        return;
    }
    for (size_t s = first; s < last; s++)
        for (size_t half = 0; half < STRIP; half += SIDE)
            turn_half(cpu, b, s * STRIP + half, strips + s * STRIP * b.columns + half);
}
