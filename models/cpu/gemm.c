#include <assert.h>
#include <string.h>

#include "models/cpu/cpu.h"

/* Operands up to this size count as small: they are transposed where that helps (see transpose_operand). */
enum { SMALL_OPERAND = 1 << 19 };

/* Operands up to this size are oneDNN's, which is faster there; not on 64-bit Arm, where it has its reference alone, whose rows
 * have other bits at the end of a tile. */
#ifdef __aarch64__
enum { LIBRARY_OPERAND = 0 };
#else
enum { LIBRARY_OPERAND = SMALL_OPERAND };
#endif

/* No tile depends on the number of threads. The rows of a batch come in tiles of a height that depends on op(b) alone,
 * the last one padded to it: oneDNN's kernels differ in the last bit from height to height, and a row must not know how
 * many others came with it. A weight gradient (aᵀ b) has the batch as its depth and one row per feature; its tiles may
 * depend on its whole shape. */
struct tiling {
    size_t rows, columns, row_tiles, column_tiles;
};

static struct tiling tiling_of(const struct gemm *g)
{
    enum { COLUMNS = 1024, LARGEST = 256, SMALLEST = 64, ENOUGH = 24, SMALL_ROWS = 64, LARGE_ROWS = 192 };
    struct tiling t = {.column_tiles = divide_up(g->out.columns, COLUMNS)};
    t.columns = divide_up(divide_up(g->out.columns, t.column_tiles), 16) * 16;
    t.column_tiles = divide_up(g->out.columns, t.columns);
    t.rows = LARGEST;
    if (!g->transpose_a)
        t.rows = g->b.rows * g->b.columns <= SMALL_OPERAND ? SMALL_ROWS : LARGE_ROWS;
    else
        while (t.rows > SMALLEST && divide_up(g->out.rows, t.rows) * t.column_tiles < ENOUGH)
            t.rows /= 2;
    t.row_tiles = divide_up(g->out.rows, t.rows);
    return t;
}

static void finish_row(const struct vector_kernels *vector, const struct gemm *g, bool added, size_t row, size_t column,
                       size_t n, float *out)
{
    if (g->bias != NULL)
        vector->add(n, out, (const float *)g->bias + column, out);
    if (g->addend.data != NULL && !added)
        vector->add(n, out, row_of(g->addend, row) + column, out);
    float *before = g->before.data != NULL ? row_of(g->before, row) + column : NULL;
    if (g->backward) {
        vector->activate_backward(g->activation, n, before, out, out);
    } else {
        if (before != NULL)
            vector->scale(n, 1.0f, out, before);
        if (g->activation != ACTIVATION_NONE)
            vector->activate(g->activation, n, out, out);
    }
}

void cpu_finish_tile(const struct cpu *cpu, const struct gemm *g, bool added, const struct tile *t)
{
    if (g->bias != NULL || (g->addend.data != NULL && !added) || g->before.data != NULL ||
        g->activation != ACTIVATION_NONE)
        for (size_t i = t->row; i < t->row + t->rows; i++)
            finish_row(cpu->vector, g, added, i, t->column, t->columns, row_of(g->out, i) + t->column);
}

struct gemm_run {
    struct cpu *cpu;
    const struct gemm *gemm;
    struct tiling tiling;
    size_t depth;
    bool accumulate;
    struct matrix last_a, last_out; /* the last row tile at full height; data is NULL where nothing is missing */
};

/* Products of few rows at a time read a transposed operand slowly, so a small one is transposed once for all tiles: bᵀ
 * [columns, rows]. */
struct transposition {
    struct matrix from, to;
};

static void transpose_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    enum { SIDE = 16 };
    const struct transposition *work = operation;
    for (size_t i = first * SIDE; i < last * SIDE && i < work->from.rows; i += SIDE)
        for (size_t j = 0; j < work->from.columns; j++)
            for (size_t k = i; k < i + SIDE && k < work->from.rows; k++)
                row_of(work->to, j)[k] = row_of(work->from, k)[j];
}

static status transpose_operand(struct cpu *cpu, struct gemm *g, struct error *error)
{
    if (!g->transpose_b || g->b.rows * g->b.columns > SMALL_OPERAND)
        return OK;
    struct transposition work = {g->b, matrix_rows(NULL, g->b.columns, g->b.rows)};
    TRY(cpu_scratch(cpu, g->b.rows * g->b.columns * sizeof(float), &work.to.data, error));
    cpu_run_rows(cpu, (g->b.rows + 15) / 16, 16 * g->b.columns, transpose_rows, &work);
    g->b = work.to;
    g->transpose_b = false;
    return OK;
}

static void copy_rows(size_t rows, size_t columns, struct matrix from, size_t first, struct matrix to)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(row_of(to, i), row_of(from, first + i), columns * sizeof(float));
}

/* The strides stay what they are for the other tiles: kernels are chosen by them. */
static status pad_last_tile(struct gemm_run *run, struct error *error)
{
    const struct gemm *g = run->gemm;
    size_t height = run->tiling.rows, rows = g->out.rows % height;
    if (g->transpose_a || rows == 0)
        return OK;
    run->last_a = matrix_rows(NULL, height, g->a.columns);
    run->last_out = matrix_rows(NULL, height, g->out.columns);
    run->last_a.stride = g->a.stride;
    run->last_out.stride = g->out.stride;
    TRY(cpu_scratch(run->cpu, height * g->a.stride * sizeof(float), &run->last_a.data, error));
    TRY(cpu_scratch(run->cpu, height * g->out.stride * sizeof(float), &run->last_out.data, error));
    memset(run->last_a.data, 0, height * g->a.stride * sizeof(float));
    copy_rows(rows, g->a.columns, g->a, g->out.rows - rows, run->last_a);
    return OK;
}

static void multiply(const struct gemm_run *run, const struct tile *t, const float *a, float *c, size_t rows)
{
    const struct gemm *g = run->gemm;
    product_run(run->cpu, &(struct product){
                              .a = a,
                              .b = g->transpose_b ? row_of(g->b, t->column) : (const float *)g->b.data + t->column,
                              .c = c,
                              .m = rows,
                              .n = t->columns,
                              .k = run->depth,
                              .lda = g->a.stride,
                              .ldb = g->b.stride,
                              .ldc = g->out.stride,
                              .transpose_a = g->transpose_a,
                              .transpose_b = g->transpose_b,
                              .accumulate = run->accumulate,
                              .scale = g->scale != 0 ? g->scale : 1.0f,
                          });
}

static void multiply_padded(const struct gemm_run *run, const struct tile *t)
{
    struct matrix out = run->gemm->out, padded = run->last_out;
    out.data = (float *)out.data + t->column;
    padded.data = (float *)padded.data + t->column;
    if (run->accumulate) {
        copy_rows(t->rows, t->columns, out, t->row, padded);
        for (size_t i = t->rows; i < run->tiling.rows; i++)
            memset(row_of(padded, i), 0, t->columns * sizeof(float));
    }
    multiply(run, t, run->last_a.data, padded.data, run->tiling.rows);
    for (size_t i = 0; i < t->rows; i++)
        memcpy(row_of(out, t->row + i), row_of(padded, i), t->columns * sizeof(float));
}

static void multiply_tile(void *context, size_t job, size_t worker)
{
    const struct gemm_run *run = context;
    const struct gemm *g = run->gemm;
    struct tile t = {.row = job / run->tiling.column_tiles * run->tiling.rows,
                     .column = job % run->tiling.column_tiles * run->tiling.columns};
    t.rows = smaller(g->out.rows - t.row, run->tiling.rows);
    t.columns = smaller(g->out.columns - t.column, run->tiling.columns);
    if (t.rows < run->tiling.rows && !g->transpose_a)
        multiply_padded(run, &t);
    else
        multiply(run, &t, g->transpose_a ? (const float *)g->a.data + t.row : row_of(g->a, t.row),
                 row_of(g->out, t.row) + t.column, t.rows);
    cpu_finish_tile(run->cpu, g, run->accumulate, &t);
}

status cpu_gemm(struct cpu *cpu, const struct gemm *operation, struct error *error)
{
    bool bf16 = cpu->bf16 != NULL && !operation->exact;
    if (operation->terms_count > 0 && !(bf16 && cpu_adds_terms(operation)))
        return backend_gemm_with_terms(&cpu->backend, operation, error);
    if (bf16)
        return cpu_gemm_bf16(cpu, operation, error);
    if (cpu->vector->multiply != NULL && !operation->transpose_a &&
        operation->b.rows * operation->b.columns > LIBRARY_OPERAND)
        return cpu_gemm_f32(cpu, operation, error);
    struct gemm g = *operation;
    TRY(transpose_operand(cpu, &g, error));
    struct gemm_run run = {.cpu = cpu,
                           .gemm = &g,
                           .tiling = tiling_of(&g),
                           .depth = g.transpose_a ? g.a.rows : g.a.columns,
                           .accumulate = g.accumulate};
    assert(run.depth == (g.transpose_b ? g.b.columns : g.b.rows));
    assert(g.out.rows == (g.transpose_a ? g.a.columns : g.a.rows));
    assert(g.out.columns == (g.transpose_b ? g.b.rows : g.b.columns));
    /* x = x + a·b: the product can add to x itself */
    if (g.addend.data == g.out.data && g.addend.data != NULL)
        run.accumulate = true;
    TRY(pad_last_tile(&run, error));
    threads_run(cpu->threads, run.tiling.row_tiles * run.tiling.column_tiles, multiply_tile, &run);
    return products_finish(cpu, error);
}

/* --- Products grouped by expert --- */

struct group_tile {
    int32_t group;
    size_t row, rows; /* rows of the stacked operand, or of the group's output in GROUPED_WEIGHTS */
};

struct grouped_run {
    struct cpu *cpu;
    const struct grouped_gemm *gemm;
    struct group_tile *tiles;
    size_t count;
    float *padded; /* where rows share tiles: workspace for one at full height, a and out, for each worker */
};

/* Neither how many samples chose an expert nor how many rows a sample has must change a row's bits. oneDNN's kernels take rows
 * by 4 or 6 on AVX2 and few of them another way on AVX-512, so that the heights of tiles are multiples of 24, the last one
 * of an expert padded to that. Single rows have tiles of their own unless they share them. */
enum { GROUP_WEIGHT_ROWS = 64, SHARED_ROWS = 24, LARGEST_SHARED = 8 * SHARED_ROWS };

static bool shares_tiles(const struct grouped_gemm *g)
{
    return g->rows_share_tiles || g->rows_per_slot > 1;
}

static size_t padded_values(const struct grouped_gemm *g)
{
    return SHARED_ROWS * (g->a.stride + g->out.stride);
}

static void multiply_group(const struct grouped_run *run, size_t expert, const float *a, float *out, size_t rows)
{
    const struct grouped_gemm *g = run->gemm;
    size_t n = g->out.columns, k = g->a.columns;
    product_run(run->cpu, &(struct product){
                              .a = a,
                              .b = (const float *)g->b.data + expert * n * k,
                              .c = out,
                              .m = rows,
                              .n = n,
                              .k = k,
                              .lda = g->a.stride,
                              .ldb = g->transpose_b ? k : n,
                              .ldc = g->out.stride,
                              .transpose_b = g->transpose_b,
                              .scale = 1.0f,
                          });
}

static void multiply_group_rows(void *context, size_t job, size_t worker)
{
    const struct grouped_run *run = context;
    const struct grouped_gemm *g = run->gemm;
    struct group_tile tile = run->tiles[job];
    size_t n = g->out.columns, expert = (size_t)tile.group;
    if (shares_tiles(g) && tile.rows < SHARED_ROWS) {
        struct matrix a = matrix_rows(run->padded + worker * padded_values(g), SHARED_ROWS, g->a.columns),
                      out = matrix_rows((float *)a.data + SHARED_ROWS * g->a.stride, SHARED_ROWS, n);
        a.stride = g->a.stride;
        out.stride = g->out.stride;
        memset(a.data, 0, SHARED_ROWS * a.stride * sizeof(float));
        copy_rows(tile.rows, g->a.columns, g->a, tile.row, a);
        multiply_group(run, expert, a.data, out.data, SHARED_ROWS);
        for (size_t i = 0; i < tile.rows; i++)
            memcpy(row_of(g->out, tile.row + i), row_of(out, i), n * sizeof(float));
    } else {
        multiply_group(run, expert, row_of(g->a, tile.row), row_of(g->out, tile.row), tile.rows);
    }
    const float *bias = g->bias != NULL ? (const float *)g->bias + expert * n : NULL;
    const struct gemm finish = {.bias = bias, .activation = g->activation};
    if (bias != NULL || g->activation != ACTIVATION_NONE)
        for (size_t i = tile.row; i < tile.row + tile.rows; i++)
            finish_row(run->cpu->vector, &finish, false, i, 0, n, row_of(g->out, i));
}

static void multiply_group_weights(void *context, size_t job, size_t worker)
{
    const struct grouped_run *run = context;
    const struct grouped_gemm *g = run->gemm;
    struct group_tile tile = run->tiles[job];
    size_t expert = (size_t)tile.group, m = g->a.columns, n = g->b.columns;
    size_t first = (size_t)g->offsets[expert] * g->rows_per_slot,
           last = (size_t)g->offsets[expert + 1] * g->rows_per_slot;
    product_run(run->cpu, &(struct product){
                              .a = row_of(g->a, first) + tile.row,
                              .b = row_of(g->b, first),
                              .c = (float *)g->out.data + expert * m * n + tile.row * n,
                              .m = tile.rows,
                              .n = n,
                              .k = last - first,
                              .lda = g->a.stride,
                              .ldb = g->b.stride,
                              .ldc = n,
                              .transpose_a = true,
                              .accumulate = true,
                              .scale = 1.0f,
                          });
    if (g->column_sums != NULL)
        for (size_t i = first; i < last; i++)
            run->cpu->vector->axpy(tile.rows, 1.0f, row_of(g->a, i) + tile.row,
                                   (float *)g->column_sums + expert * m + tile.row);
}

static size_t rows_of_tile(const struct grouped_gemm *g, size_t left)
{
    if (g->kind == GROUPED_WEIGHTS)
        return smaller(left, GROUP_WEIGHT_ROWS);
    if (!shares_tiles(g))
        return 1;
    return left < SHARED_ROWS ? left : smaller(left / SHARED_ROWS * SHARED_ROWS, LARGEST_SHARED);
}

static size_t list_tiles(const struct grouped_gemm *g, struct group_tile *tiles)
{
    size_t count = 0;
    for (size_t e = 0; e < g->groups; e++) {
        size_t first = (size_t)g->offsets[e] * g->rows_per_slot, last = (size_t)g->offsets[e + 1] * g->rows_per_slot;
        bool weights = g->kind == GROUPED_WEIGHTS;
        if (first == last || (weights && g->frozen != NULL && g->frozen[e]))
            continue;
        size_t from = weights ? 0 : first, to = weights ? g->a.columns : last;
        for (size_t row = from, rows; row < to; row += rows, count++) {
            rows = rows_of_tile(g, to - row);
            if (tiles != NULL)
                tiles[count] = (struct group_tile){(int32_t)e, row, rows};
        }
    }
    return count;
}

status cpu_grouped_gemm(struct cpu *cpu, const struct grouped_gemm *g, struct error *error)
{
    if (cpu->bf16 != NULL)
        return cpu_grouped_gemm_bf16(cpu, g, error);
    struct grouped_run run = {.cpu = cpu, .gemm = g, .count = list_tiles(g, NULL)};
    TRY(cpu_scratch(cpu, run.count * sizeof *run.tiles, &run.tiles, error));
    list_tiles(g, run.tiles);
    if (shares_tiles(g)) {
        TRY(cpu_scratch(cpu, threads_count(cpu->threads) * padded_values(g) * sizeof(float), &run.padded, error));
    }
    threads_run(cpu->threads, run.count, g->kind == GROUPED_ROWS ? multiply_group_rows : multiply_group_weights, &run);
    return products_finish(cpu, error);
}
