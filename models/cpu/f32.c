/* Matrix products in f32: by oneDNN, which no other file calls, or on a kernel of our own (kernels.h). */
#include <dlfcn.h>
#include <dnnl.h>
#include <stdio.h>
#include <string.h>

#include "models/cpu/cpu.h"

/* ---- oneDNN: its f32 product has the same interface in versions 2.x and 3.x; each call works on one tile in one thread, since the
 * threads are ours ---- */

/* oneDNN built on OpenMP would start threads of its own; the setting is per calling thread. Other builds lack the
 * symbol. */
static void single_threaded(void)
{
    static _Thread_local bool done;
    if (done)
        return;
    void (*set_threads)(int) = NULL;
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_threads != NULL)
        set_threads(1);
    done = true;
}

void product_run(struct cpu *cpu, const struct product *p)
{
    single_threaded();
    dnnl_status_t result = dnnl_sgemm(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', (dnnl_dim_t)p->m,
                                      (dnnl_dim_t)p->n, (dnnl_dim_t)p->k, p->scale, p->a, (dnnl_dim_t)p->lda, p->b,
                                      (dnnl_dim_t)p->ldb, p->accumulate ? 1.0f : 0.0f, p->c, (dnnl_dim_t)p->ldc);
    if (result != dnnl_success)
        atomic_store(&cpu->product_failed, true);
}

status products_finish(struct cpu *cpu, struct error *error)
{
    if (!atomic_exchange(&cpu->product_failed, false))
        return OK;
    return error_set(error, ERROR_MEMORY,
                     "memory: oneDNN cannot allocate a matrix product's packed operands; lower the batch size");
}

void product_limit(const char *instructions)
{
    bool avx2 = strcmp(instructions, "avx2") == 0, avx512 = strcmp(instructions, "avx512") == 0;
    /* The later call of a second backend is refused, as the limit is set then. */
    (void)dnnl_set_max_cpu_isa(avx512 ? dnnl_cpu_isa_avx512_core : avx2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41);
}

void product_library(char *text, size_t capacity)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, capacity, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

/* ---- operands in the order in which the kernel reads them ---- */

enum { SIDE = 16, ROWS = F32_ROWS, STRIP = F32_STRIP };

/* Packs a's rows [first, first + count). Rows that the last panel lacks are left as they are and enter no result. */
static void pack_left(struct matrix a, size_t first, size_t count, float *panels)
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

/* Packs strips [first, last) of op(b), with zeros in missing columns. */
static void pack_right(const struct cpu *cpu, struct matrix b, bool transpose, size_t first, size_t last, float *strips)
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
    pack_left(a, 0, p->m, workspace);
    pack_right(cpu, b, p->transpose_b, 0, bf16_padded(p->n, STRIP) / STRIP, strips);
    cpu->vector->multiply(&(struct f32_product){
        .m = p->m, .n = p->n, .k = p->k, .a = workspace, .b = strips, .c = p->c, .ldc = p->ldc, .scale = p->scale});
}

/* ---- a whole product: the right operand is packed first, by all threads; the left one tile by tile. As no value depends on its
 * tile, tiles are as large as caches like them. ---- */

enum { TILE_ROWS = 112, LOWEST = 2 * F32_ROWS, TILE_COLUMNS = 512, PACK_STRIPS = 4 };

struct gemm_run {
    struct cpu *cpu;
    const struct gemm *gemm;
    bool accumulate;
    size_t depth, rows, row_tiles; /* rows of a tile */
    float *strips, *workspaces;    /* workspaces: one tile's panels for each worker */
};

static void pack_some_strips(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct gemm_run *run = operation;
    size_t strips = divide_up(run->gemm->out.columns, F32_STRIP);
    pack_right(cpu, run->gemm->b, run->gemm->transpose_b, first * PACK_STRIPS, smaller(last * PACK_STRIPS, strips),
               run->strips);
}

static void multiply_tile(void *context, size_t job, size_t worker)
{
    const struct gemm_run *run = context;
    const struct gemm *g = run->gemm;
    size_t row = job % run->row_tiles * run->rows, column = job / run->row_tiles * TILE_COLUMNS,
           rows = smaller(g->out.rows - row, run->rows), columns = smaller(g->out.columns - column, TILE_COLUMNS);
    float *panels = run->workspaces + worker * values_of(run->rows, 0, run->depth);
    pack_left(g->a, row, rows, panels);
    run->cpu->vector->multiply(&(struct f32_product){.m = rows,
                                                     .n = columns,
                                                     .k = run->depth,
                                                     .a = panels,
                                                     .b = run->strips + column * run->depth,
                                                     .c = row_of(g->out, row) + column,
                                                     .ldc = g->out.stride,
                                                     .accumulate = run->accumulate,
                                                     .scale = g->scale != 0 ? g->scale : 1.0f});
    cpu_finish_tile(run->cpu, g, run->accumulate, &(struct tile){row, column, rows, columns});
}

/* Lower where a tile's panels would not stay in a second-level cache, or where there would be too few to share out
 * evenly. */
static size_t rows_of_tiles(const struct cpu *cpu, struct matrix out, size_t depth)
{
    enum { STAYS = 3 << 16 /* values */, EACH = 8 };
    size_t rows = TILE_ROWS, columns = divide_up(out.columns, TILE_COLUMNS), threads = threads_count(cpu->threads);
    while (rows > F32_ROWS && rows * f32_row_values(depth) > STAYS)
        rows /= 2;
    while (threads > 1 && rows > LOWEST && divide_up(out.rows, rows) * columns < EACH * threads)
        rows /= 2;
    return rows;
}

status cpu_gemm_f32(struct cpu *cpu, const struct gemm *g, struct error *error)
{
    size_t columns = g->out.columns;
    struct gemm_run run = {.cpu = cpu,
                           .gemm = g,
                           .accumulate = g->accumulate || (g->addend.data == g->out.data && g->addend.data != NULL),
                           .depth = g->a.columns,
                           .rows = rows_of_tiles(cpu, g->out, g->a.columns)};
    run.row_tiles = divide_up(g->out.rows, run.rows);
    TRY(cpu_scratch(cpu, array_size(bf16_padded(columns, F32_STRIP) * run.depth, sizeof(float)), &run.strips, error));
    TRY(cpu_scratch(cpu, array_size(threads_count(cpu->threads) * values_of(run.rows, 0, run.depth), sizeof(float)),
                    &run.workspaces, error));
    cpu_run_rows(cpu, divide_up(columns, PACK_STRIPS * F32_STRIP), PACK_STRIPS * F32_STRIP * run.depth,
                 pack_some_strips, &run);
    threads_run(cpu->threads, run.row_tiles * divide_up(columns, TILE_COLUMNS), multiply_tile, &run);
    return OK;
}
