/* Operands of f32 products in the order in which they are read. */

#include "models/cpu/cpu.h"

enum { SIDE = 16, ROWS = F32_ROWS, STRIP = F32_STRIP };

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
static void transpose_half(const struct cpu *cpu, struct matrix b, size_t first, float *to)
{
    size_t count = first < b.rows ? smaller(b.rows - first, SIDE) : 0,
           transposed = count == SIDE ? b.columns / SIDE * SIDE : 0;
    cpu->vector->transpose(transposed, (const uint32_t *)row_of(b, first), b.stride, (uint32_t *)to, STRIP);
    for (size_t k = transposed; k < b.columns; k++)
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
            transpose_half(cpu, b, s * STRIP + half, strips + s * STRIP * b.columns + half);
}

static size_t values_of(size_t m, size_t n, size_t k)
{
    return bf16_padded(m, ROWS) * f32_row_values(k) + bf16_padded(n, STRIP) * k;
}

size_t f32_workspace(const struct cpu *cpu, size_t m, size_t n)
{
    size_t one = values_of(m, m, n), other = values_of(m, n, m);
    if (cpu->vector->multiply == NULL)
        return 0;
    return bf16_padded(one > other ? one : other, SIDE);
}

void f32_run(struct cpu *cpu, const struct product *p, float *workspace)
{
    if (cpu->vector->multiply == NULL) {
        product_run(cpu, p);
        return;
    }
    struct matrix a = matrix_rows((float *)p->a, p->m, p->k),
                  b = p->transpose_b ? matrix_rows((float *)p->b, p->n, p->k) : matrix_rows((float *)p->b, p->k, p->n);
    float *strips = workspace + bf16_padded(p->m, ROWS) * f32_row_values(p->k);
    a.stride = p->lda;
    b.stride = p->ldb;
    f32_pack_left(a, 0, p->m, workspace);
    f32_pack_right(cpu, b, p->transpose_b, 0, bf16_padded(p->n, STRIP) / STRIP, strips);
    cpu->vector->multiply(&(struct f32_product){
        .m = p->m, .n = p->n, .k = p->k, .a = workspace, .b = strips, .c = p->c, .ldc = p->ldc, .scale = p->scale});
}
