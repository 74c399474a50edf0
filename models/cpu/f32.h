/* Products of f32 matrices from packed operands, where the machine has a kernel of our own.
 *
 *     f32_pack_left(a, 0, rows, panels);
 *     f32_pack_right(cpu, b, transpose_b, 0, strips, packed);
 *     cpu->vector->multiply(
 *         &(struct f32_product){.m = rows, .n = columns, .k = depth, .a = panels, .b = packed, .c = c, .ldc = n, .scale = 1});
 *
 * A value of the result is one chain of multiply-adds in the order of its depth, so its bits depend neither on its tile nor
 * on the rest of the batch. The left operand comes in panels of F32_ROWS rows and F32_DEPTH depths, rows F32_STRIDE values
 * apart, so that rows whose length is a power of two do not share one set of a cache. The right operand comes in strips of
 * F32_STRIP columns, depth by depth.
 */
#pragma once

#include "models/cpu/vector.h"

enum { F32_ROWS = 14, F32_DEPTH = 256, F32_STRIDE = F32_DEPTH + 16, F32_STRIP = 32 };

struct f32_product {
    size_t m, n, k;
    const float *a, *b; /* panels; strips, aligned to 64 bytes */
    float *c;
    size_t ldc;
    bool accumulate; /* adds to c */
    float scale;
};

void f32_multiply_avx2(const struct f32_product *product);
void f32_multiply_avx512(const struct f32_product *product);

/* Values of one row in panels of this depth. */
static inline size_t f32_row_values(size_t depth)
{
    return (depth + F32_DEPTH - 1) / F32_DEPTH * F32_STRIDE;
}

struct cpu;

/* Packs a's rows [first, first + count). Rows that the last panel lacks are left as they are and enter no result. */
void f32_pack_left(struct matrix a, size_t first, size_t count, float *panels);

/* Packs strips [first, last) of op(b), with zeros in missing columns. */
void f32_pack_right(const struct cpu *cpu, struct matrix b, bool transpose, size_t first, size_t last, float *strips);

/* A whole product of few rows, a not transposed, by the kernel, or by product_run where there is none. workspace, aligned to 64
 * bytes, has f32_workspace values: enough for any product of m rows whose columns and depth are m and n in either order. */
struct product;
size_t f32_workspace(const struct cpu *cpu, size_t m, size_t n);
void f32_run(struct cpu *cpu, const struct product *product, float *workspace);
