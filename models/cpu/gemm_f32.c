/* Matrix products in f32 on a kernel of our own (f32.h). The right operand is packed first, by all threads; the left one
 * tile by tile. As no value depends on its tile, tiles are as large as caches like them. */
#include "models/cpu/cpu.h"

enum { TILE_ROWS = 112, LOWEST = 2 * F32_ROWS, TILE_COLUMNS = 512, PACK_STRIPS = 4 };

struct gemm_run {
    struct cpu *cpu;
    const struct gemm *gemm;
    bool accumulate;
    size_t depth, rows, row_tiles; /* rows of a tile */
    float *strips, *workspaces;    /* workspaces: one tile's panels for each worker */
};

static void pack_strips(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct gemm_run *run = operation;
    size_t strips = divide_up(run->gemm->out.columns, F32_STRIP);
    f32_pack_right(cpu, run->gemm->b, run->gemm->transpose_b, first * PACK_STRIPS, smaller(last * PACK_STRIPS, strips),
                   run->strips);
}

static size_t values_of_workspace(const struct gemm_run *run)
{
    return bf16_padded(run->rows, F32_ROWS) * f32_row_values(run->depth);
}

static void multiply_tile(void *context, size_t job, size_t worker)
{
    const struct gemm_run *run = context;
    const struct gemm *g = run->gemm;
    size_t row = job % run->row_tiles * run->rows, column = job / run->row_tiles * TILE_COLUMNS,
           rows = smaller(g->out.rows - row, run->rows), columns = smaller(g->out.columns - column, TILE_COLUMNS);
    float *panels = run->workspaces + worker * values_of_workspace(run);
    f32_pack_left(g->a, row, rows, panels);
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
    struct arena_mark mark = arena_mark(&cpu->scratch);
    size_t columns = g->out.columns;
    struct gemm_run run = {.cpu = cpu,
                           .gemm = g,
                           .accumulate = g->accumulate || (g->addend.data == g->out.data && g->addend.data != NULL),
                           .depth = g->a.columns,
                           .rows = rows_of_tiles(cpu, g->out, g->a.columns)};
    run.row_tiles = divide_up(g->out.rows, run.rows);
    TRY(cpu_scratch(cpu, array_size(bf16_padded(columns, F32_STRIP) * run.depth, sizeof(float)), &run.strips, error));
    TRY(cpu_scratch(cpu, array_size(threads_count(cpu->threads) * values_of_workspace(&run), sizeof(float)),
                    &run.workspaces, error));
    cpu_run_rows(cpu, divide_up(columns, PACK_STRIPS * F32_STRIP), PACK_STRIPS * F32_STRIP * run.depth, pack_strips,
                 &run);
    threads_run(cpu->threads, run.row_tiles * divide_up(columns, TILE_COLUMNS), multiply_tile, &run);
    arena_release(&cpu->scratch, mark);
    return OK;
}
