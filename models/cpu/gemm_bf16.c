/* Matrix products in bf16. Operands are rounded and packed first, by all threads; then tiles are multiplied. As no value
 * depends on its tile (kernels.h), tiles are as large as caches like them. */
#include <assert.h>

#include "models/cpu/cpu.h"

enum { TILE_ROWS = 128, TILE_COLUMNS = 512, PACK_ROWS = 64 };

static status take(struct cpu *cpu, size_t count, size_t size, void *memory, struct error *error)
{
    return cpu_scratch(cpu, array_size(count, size), memory, error);
}

struct left {
    const uint16_t *data;
    size_t stride;
};

/* Both operands of a product, packed; depth: padded. */
struct factors {
    struct left left;
    const uint32_t *right;
    size_t depth;
};

/* A tile of the product: c = left · right, or += it, in rows of TILE_COLUMNS. */
static void multiply(const struct cpu *cpu, const struct factors *f, const struct tile *tile, bool accumulate, float *c)
{
    cpu->bf16->multiply(&(struct bf16_product){.m = tile->rows,
                                               .n = bf16_padded(tile->columns, BF16_SIDE),
                                               .k = f->depth,
                                               .a = f->left.data + tile->row * f->left.stride,
                                               .lda = f->left.stride,
                                               .b = f->right + tile->column * (f->depth / 2),
                                               .c = c,
                                               .ldc = TILE_COLUMNS,
                                               .accumulate = accumulate});
}

struct operand {
    struct matrix matrix;
    bool transpose;
    uint16_t *left;
    uint32_t *right;
    size_t depth; /* padded */
};

static void pack_left_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct operand *o = operation;
    size_t rows = o->transpose ? o->matrix.columns : o->matrix.rows, from = first * PACK_ROWS,
           to = smaller(last * PACK_ROWS, rows);
    bf16_pack_left(cpu, o->matrix, o->transpose, from, to - from, o->left + from * o->depth, o->depth);
}

/* A matrix that is stored as it is read is not copied. */
static status prepare_left(struct cpu *cpu, struct matrix a, bool transpose, struct left *left, struct error *error)
{
    size_t rows = transpose ? a.columns : a.rows, depth = transpose ? a.rows : a.columns;
    if (a.type == TENSOR_BF16 && !transpose && depth % BF16_DEPTH == 0) {
        *left = (struct left){a.data, a.stride};
        return OK;
    }
    struct operand o = {a, transpose, .depth = bf16_padded(depth, BF16_DEPTH)};
    TRY(take(cpu, rows * o.depth, sizeof *o.left, &o.left, error));
    cpu_run_rows(cpu, divide_up(rows, PACK_ROWS), PACK_ROWS * depth, pack_left_rows, &o);
    *left = (struct left){o.left, o.depth};
    return OK;
}

enum { PACK_STRIPS = 4 };

static void pack_right_strips(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct operand *o = operation;
    size_t columns = o->transpose ? o->matrix.rows : o->matrix.columns, strips = divide_up(columns, BF16_SIDE);
    bf16_pack_right(cpu, o->matrix, o->transpose, first * PACK_STRIPS, smaller(last * PACK_STRIPS, strips), o->right);
}

static status prepare_right(struct cpu *cpu, const struct gemm *g, const uint32_t **right, struct error *error)
{
    size_t columns = g->out.columns, depth = g->transpose_b ? g->b.columns : g->b.rows;
    struct operand o = {g->b, g->transpose_b, .depth = bf16_padded(depth, BF16_DEPTH)};
    size_t pairs = bf16_padded(columns, BF16_SIDE) * (o.depth / 2);
    *right = g->frozen_b ? cpu_weights_find(&cpu->weights, g->b, g->transpose_b) : NULL;
    if (*right != NULL)
        return OK;
    if (g->frozen_b)
        o.right = cpu_weights_add(&cpu->weights, g->b, g->transpose_b, pairs);
    if (o.right == NULL)
        TRY(take(cpu, pairs, sizeof *o.right, &o.right, error));
    cpu_run_rows(cpu, divide_up(columns, PACK_STRIPS * BF16_SIDE), PACK_STRIPS * BF16_SIDE * depth, pack_right_strips,
                 &o);
    *right = o.right;
    return OK;
}

static void write_row(const struct cpu *cpu, struct matrix m, size_t row, size_t column, size_t n, const float *c)
{
    cpu_write(cpu, m, cpu_is_far(m), row, column, n, c);
}

/* c = activation(c), or c ⊙ its gradient at x */
static void activate(const struct cpu *cpu, const struct gemm *g, size_t n, const float *x, float *c)
{
    if (g->activation == ACTIVATION_QUICK_GELU && g->backward)
        cpu->bf16->quick_gelu_backward(n, x, c, c);
    else if (g->activation == ACTIVATION_QUICK_GELU)
        cpu->bf16->quick_gelu(n, c, c);
    else if (g->backward)
        cpu->vector->activate_backward(g->activation, n, x, c, c);
    else if (g->activation != ACTIVATION_NONE)
        cpu->vector->activate(g->activation, n, c, c);
}

/* One row of a tile: c [n] → out, and before. */
static void finish_row(const struct cpu *cpu, const struct gemm *g, size_t row, size_t column, size_t n, float *c)
{
    const struct vector_kernels *vector = cpu->vector;
    float buffer[TILE_COLUMNS];
    if (g->scale != 0 && g->scale != 1)
        vector->scale(n, g->scale, c, c);
    if (g->bias != NULL)
        vector->add(n, c, (const float *)g->bias + column, c);
    if (g->addend.data != NULL)
        vector->add(n, c, cpu_floats(cpu, g->addend, row, column, n, buffer), c);
    if (!g->backward && g->before.data != NULL)
        write_row(cpu, g->before, row, column, n, c);
    activate(cpu, g, n, g->backward ? cpu_floats(cpu, g->before, row, column, n, buffer) : NULL, c);
    if (g->accumulate)
        vector->add(n, c, cpu_floats(cpu, g->out, row, column, n, buffer), c);
    write_row(cpu, g->out, row, column, n, c);
}

struct gemm_run {
    struct cpu *cpu;
    const struct gemm *gemm;
    struct factors factors, *terms;
    size_t rows, row_tiles; /* rows of a tile */
    float *workspaces;      /* one tile's sums for each worker */
};

/* Whether all terms begin and end with strips. */
bool cpu_adds_terms(const struct gemm *g)
{
    for (size_t i = 0; i < g->terms_count; i++)
        if ((g->terms[i].first | g->terms[i].b.columns) % BF16_SIDE != 0)
            return false;
    return true;
}

/* The smaller factor, which B of a delta is, is scaled ahead of rounding. */
static status prepare_terms(struct gemm_run *run, struct error *error)
{
    const struct gemm *g = run->gemm;
    TRY(take(run->cpu, g->terms_count, sizeof *run->terms, &run->terms, error));
    for (size_t i = 0; i < g->terms_count; i++) {
        const struct gemm_term *t = &g->terms[i];
        struct matrix b = matrix_rows(NULL, t->b.rows, t->b.columns);
        TRY(take(run->cpu, b.rows * b.columns, sizeof(float), &b.data, error));
        for (size_t r = 0; r < b.rows; r++)
            run->cpu->vector->scale(b.columns, t->scale, row_of(t->b, r), row_of(b, r));
        run->terms[i].depth = bf16_padded(b.rows, BF16_DEPTH);
        TRY(prepare_left(run->cpu, t->a, false, &run->terms[i].left, error));
        TRY(prepare_right(run->cpu, &(struct gemm){.b = b, .out = b}, &run->terms[i].right, error));
    }
    return OK;
}

static void add_terms(const struct gemm_run *run, const struct tile *tile, float *c)
{
    for (size_t i = 0; i < run->gemm->terms_count; i++) {
        size_t from = run->gemm->terms[i].first, first = larger(from, tile->column),
               last = smaller(from + run->gemm->terms[i].b.columns, tile->column + tile->columns);
        if (first < last)
            multiply(run->cpu, &run->terms[i], &(struct tile){tile->row, first - from, tile->rows, last - first}, true,
                     c + (first - tile->column));
    }
}

static void multiply_tile(void *context, size_t job, size_t worker)
{
    const struct gemm_run *run = context;
    const struct gemm *g = run->gemm;
    struct tile tile = {.row = job % run->row_tiles * run->rows, .column = job / run->row_tiles * TILE_COLUMNS};
    tile.rows = smaller(g->out.rows - tile.row, run->rows);
    tile.columns = smaller(g->out.columns - tile.column, TILE_COLUMNS);
    float *c = run->workspaces + worker * TILE_ROWS * TILE_COLUMNS;
    multiply(run->cpu, &run->factors, &tile, false, c);
    add_terms(run, &tile, c);
    for (size_t i = 0; i < tile.rows; i++)
        finish_row(run->cpu, g, tile.row + i, tile.column, tile.columns, c + i * TILE_COLUMNS);
    run->cpu->bf16->fence();
}

/* Lower tiles where there would be too few to share out evenly. */
static size_t rows_of_tiles(const struct cpu *cpu, struct matrix out)
{
    enum { EACH = 8, LOWEST = 32 };
    size_t rows = TILE_ROWS, columns = divide_up(out.columns, TILE_COLUMNS), threads = threads_count(cpu->threads);
    while (threads > 1 && rows > LOWEST && divide_up(out.rows, rows) * columns < EACH * threads)
        rows /= 2;
    return rows;
}

static status take_workspaces(struct cpu *cpu, float **workspaces, struct error *error)
{
    return take(cpu, threads_count(cpu->threads) * TILE_ROWS * TILE_COLUMNS, sizeof **workspaces, workspaces, error);
}

status cpu_gemm_bf16(struct cpu *cpu, const struct gemm *g, struct error *error)
{
    size_t depth = g->transpose_a ? g->a.rows : g->a.columns;
    struct gemm_run run = {
        .cpu = cpu, .gemm = g, .factors.depth = bf16_padded(depth, BF16_DEPTH), .rows = rows_of_tiles(cpu, g->out)};
    run.row_tiles = divide_up(g->out.rows, run.rows);
    assert(depth == (g->transpose_b ? g->b.columns : g->b.rows));
    assert(g->out.rows == (g->transpose_a ? g->a.columns : g->a.rows));
    assert(g->out.columns == (g->transpose_b ? g->b.rows : g->b.columns));
    TRY(prepare_left(cpu, g->a, g->transpose_a, &run.factors.left, error));
    TRY(prepare_right(cpu, g, &run.factors.right, error));
    if (g->terms_count > 0)
        TRY(prepare_terms(&run, error));
    TRY(take_workspaces(cpu, &run.workspaces, error));
    threads_run(cpu->threads, run.row_tiles * divide_up(g->out.columns, TILE_COLUMNS), multiply_tile, &run);
    return OK;
}

/* --- Products grouped by expert --- */

/* An expert that has rows. */
struct group {
    size_t index, first, rows;
    size_t depth; /* of GROUPED_WEIGHTS: rows of those before it, as padded */
};

struct group_job {
    size_t group, piece; /* rows of the product, or columns to pack, from piece · TILE_ROWS on */
};

struct grouped_run {
    struct cpu *cpu;
    const struct grouped_gemm *gemm;
    struct group *groups;
    struct group_job *jobs;
    size_t count, depth;
    size_t m, n; /* rows and columns of a group's product in GROUPED_WEIGHTS */
    struct left left;
    uint16_t *transposed;
    uint32_t *right;
    float *workspaces;
};

static status list_groups(struct grouped_run *run, struct error *error)
{
    const struct grouped_gemm *g = run->gemm;
    TRY(take(run->cpu, g->groups, sizeof *run->groups, &run->groups, error));
    for (size_t e = 0; e < g->groups; e++) {
        size_t first = (size_t)g->offsets[e] * g->rows_per_slot, last = (size_t)g->offsets[e + 1] * g->rows_per_slot;
        if (first == last || (g->kind == GROUPED_WEIGHTS && g->frozen != NULL && g->frozen[e]))
            continue;
        run->groups[run->count++] = (struct group){e, first, last - first, run->depth};
        run->depth += bf16_padded(last - first, BF16_DEPTH);
    }
    return OK;
}

/* A job for each piece of TILE_ROWS; size 0: the group's rows. */
static status run_pieces(struct grouped_run *run, size_t size, threads_job job, struct error *error)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < run->count; i++)
        count += divide_up(size > 0 ? size : run->groups[i].rows, TILE_ROWS);
    TRY(take(run->cpu, count, sizeof *run->jobs, &run->jobs, error));
    for (size_t i = 0; i < run->count; i++)
        for (size_t piece = 0; piece < divide_up(size > 0 ? size : run->groups[i].rows, TILE_ROWS); piece++)
            run->jobs[at++] = (struct group_job){i, piece};
    threads_run(run->cpu->threads, count, job, run);
    return OK;
}

/* --- by rows --- */

static size_t packed_weights(const struct grouped_gemm *g)
{
    return bf16_padded(g->out.columns, BF16_SIDE) * (bf16_padded(g->a.columns, BF16_DEPTH) / 2);
}

static void pack_group_weights(void *context, size_t job, size_t worker)
{
    const struct grouped_run *run = context;
    const struct grouped_gemm *g = run->gemm;
    struct group_job piece = run->jobs[job];
    size_t n = g->out.columns, k = g->a.columns;
    float *weights = (float *)g->b.data + run->groups[piece.group].index * n * k;
    enum { STRIPS = TILE_ROWS / BF16_SIDE };
    bf16_pack_right(run->cpu, g->transpose_b ? matrix_rows(weights, n, k) : matrix_rows(weights, k, n), g->transpose_b,
                    piece.piece * STRIPS, smaller((piece.piece + 1) * STRIPS, divide_up(n, BF16_SIDE)),
                    run->right + piece.group * packed_weights(g));
}

static void multiply_group_rows(void *context, size_t job, size_t worker)
{
    const struct grouped_run *run = context;
    const struct grouped_gemm *g = run->gemm;
    const struct group *group = &run->groups[run->jobs[job].group];
    size_t n = g->out.columns, from = run->jobs[job].piece * TILE_ROWS, rows = smaller(group->rows - from, TILE_ROWS);
    const struct factors factors = {run->left, run->right + run->jobs[job].group * packed_weights(g),
                                    bf16_padded(g->a.columns, BF16_DEPTH)};
    const float *bias = g->bias != NULL ? (const float *)g->bias + group->index * n : NULL;
    const struct gemm finish = {.bias = bias, .activation = g->activation, .out = g->out};
    float *c = run->workspaces + worker * TILE_ROWS * TILE_COLUMNS;
    for (size_t column = 0; column < n; column += TILE_COLUMNS) {
        const struct tile tile = {group->first + from, column, rows, smaller(n - column, TILE_COLUMNS)};
        multiply(run->cpu, &factors, &tile, false, c);
        for (size_t i = 0; i < rows; i++)
            finish_row(run->cpu, &finish, tile.row + i, column, tile.columns, c + i * TILE_COLUMNS);
    }
    run->cpu->bf16->fence();
}

static status multiply_rows(struct grouped_run *run, struct error *error)
{
    const struct grouped_gemm *g = run->gemm;
    struct cpu *cpu = run->cpu;
    struct matrix a = g->a;
    a.rows = smaller(a.rows, (size_t)g->offsets[g->groups] * g->rows_per_slot);
    TRY(prepare_left(cpu, a, false, &run->left, error));
    TRY(take(cpu, run->count * packed_weights(g), sizeof *run->right, &run->right, error));
    TRY(run_pieces(run, g->out.columns, pack_group_weights, error));
    return run_pieces(run, 0, multiply_group_rows, error);
}

/* --- of weights --- */

static struct matrix rows_of_group(struct matrix m, const struct group *group)
{
    m.data = (char *)m.data + group->first * m.stride * tensor_type_size(m.type);
    m.rows = group->rows;
    return m;
}

static void pack_group_left(void *context, size_t job, size_t worker)
{
    const struct grouped_run *run = context;
    const struct group *group = &run->groups[run->jobs[job].group];
    size_t depth = bf16_padded(group->rows, BF16_DEPTH), from = run->jobs[job].piece * TILE_ROWS;
    bf16_pack_left(run->cpu, rows_of_group(run->gemm->a, group), true, from, smaller(run->m - from, TILE_ROWS),
                   run->transposed + group->depth * run->m + from * depth, depth);
}

static void pack_group_right(void *context, size_t job, size_t worker)
{
    enum { STRIPS = TILE_ROWS / BF16_SIDE };
    const struct grouped_run *run = context;
    const struct group *group = &run->groups[run->jobs[job].group];
    size_t piece = run->jobs[job].piece, padded = bf16_padded(run->n, BF16_SIDE);
    bf16_pack_right(run->cpu, rows_of_group(run->gemm->b, group), false, piece * STRIPS,
                    smaller((piece + 1) * STRIPS, padded / BF16_SIDE), run->right + group->depth / 2 * padded);
}

static void add_column_sums(const struct grouped_run *run, const struct group *group, size_t column, size_t n)
{
    float buffer[TILE_ROWS], *sums = (float *)run->gemm->column_sums + group->index * run->m + column;
    for (size_t i = 0; i < group->rows; i++)
        run->cpu->vector->axpy(n, 1.0f, cpu_floats(run->cpu, run->gemm->a, group->first + i, column, n, buffer), sums);
}

static void multiply_group_weights(void *context, size_t job, size_t worker)
{
    const struct grouped_run *run = context;
    const struct group *group = &run->groups[run->jobs[job].group];
    size_t depth = bf16_padded(group->rows, BF16_DEPTH), row = run->jobs[job].piece * TILE_ROWS,
           rows = smaller(run->m - row, TILE_ROWS);
    const struct factors factors = {{run->transposed + group->depth * run->m, depth},
                                    run->right + group->depth / 2 * bf16_padded(run->n, BF16_SIDE),
                                    depth};
    float *c = run->workspaces + worker * TILE_ROWS * TILE_COLUMNS,
          *out = (float *)run->gemm->out.data + (group->index * run->m + row) * run->n;
    for (size_t column = 0; column < run->n; column += TILE_COLUMNS) {
        const struct tile tile = {row, column, rows, smaller(run->n - column, TILE_COLUMNS)};
        multiply(run->cpu, &factors, &tile, false, c);
        for (size_t i = 0; i < rows; i++)
            run->cpu->vector->axpy(tile.columns, 1.0f, c + i * TILE_COLUMNS, out + i * run->n + column);
    }
    if (run->gemm->column_sums != NULL)
        add_column_sums(run, group, row, rows);
}

static status multiply_weights(struct grouped_run *run, struct error *error)
{
    struct cpu *cpu = run->cpu;
    run->m = run->gemm->a.columns;
    run->n = run->gemm->b.columns;
    TRY(take(cpu, run->depth * run->m, sizeof *run->transposed, &run->transposed, error));
    TRY(take(cpu, run->depth / 2 * bf16_padded(run->n, BF16_SIDE), sizeof *run->right, &run->right, error));
    TRY(run_pieces(run, run->n, pack_group_right, error));
    TRY(run_pieces(run, run->m, pack_group_left, error));
    return run_pieces(run, run->m, multiply_group_weights, error);
}

status cpu_grouped_gemm_bf16(struct cpu *cpu, const struct grouped_gemm *g, struct error *error)
{
    struct grouped_run run = {.cpu = cpu, .gemm = g};
    TRY(list_groups(&run, error));
    TRY(take_workspaces(cpu, &run.workspaces, error));
    return g->kind == GROUPED_ROWS ? multiply_rows(&run, error) : multiply_weights(&run, error);
}
