/* Attention in bf16: the matrices of a head's products are rounded, softmax is in f32. A head's scores are computed BLOCK
 * rows at a time, which stay in the first-level cache until they are rounded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/cpu/cpu.h"

enum { BLOCK = BF16_DEPTH };

struct attention_run {
    struct cpu *cpu;
    size_t positions, width, heads, columns; /* columns: of a head */
    size_t side, depth;                      /* positions, as padded for columns and for depths */
    size_t columns_depth;                    /* columns, as padded for depths */
    float scale;                             /* 1/√columns */
    bool causal;
    const bool *asked;                  /* as for cpu_seen_keys */
    struct matrix qkv, out, dout, dqkv; /* all samples */
    bool far;                           /* what is written (cpu.h) */
    size_t workspace_bytes;
    uint8_t *workspaces;
};

/* Buffers of one worker. */
enum { RIGHT_OPERANDS = 3 };
struct workspace {
    float *scores, *gradients; /* [BLOCK, depth]; gradients also holds transposed values, [side, BLOCK] */
    float *narrow;             /* [BLOCK, columns_depth] */
    uint16_t *left;            /* [BLOCK, columns_depth] */
    uint16_t *p, *dscores;     /* [BLOCK, depth] the left operands of products */
    uint16_t *dout_transposed, *query_transposed; /* [columns, depth] */
    uint32_t *right[RIGHT_OPERANDS];
    uint32_t *p_right, *dscores_right; /* [depth, side] of all rows */
};

static void *lay_next(uint8_t *workspaces, size_t *at, size_t count, size_t size)
{
    void *workspace = workspaces != NULL ? workspaces + *at : NULL;
    *at += bf16_padded(count * size, 64);
    return workspace;
}

/* Its parts from `workspaces` on, or nothing of it where that is NULL; returns how many bytes they take. */
static size_t lay_out(const struct attention_run *run, bool backward, uint8_t *workspaces, struct workspace *workspace)
{
    size_t at = 0, block = BLOCK * run->depth, wide = larger(run->depth, run->columns_depth),
           transposed = backward ? run->columns * run->depth : 0, pairs = backward ? run->depth / 2 * run->side : 0;
    workspace->scores = lay_next(workspaces, &at, block, sizeof(float));
    workspace->gradients = lay_next(workspaces, &at, backward ? block : 0, sizeof(float));
    workspace->narrow = lay_next(workspaces, &at, BLOCK * run->columns_depth, sizeof(float));
    workspace->left = lay_next(workspaces, &at, BLOCK * run->columns_depth, sizeof(uint16_t));
    workspace->p = lay_next(workspaces, &at, block, sizeof(uint16_t));
    workspace->dscores = lay_next(workspaces, &at, backward ? block : 0, sizeof(uint16_t));
    workspace->dout_transposed = lay_next(workspaces, &at, transposed, sizeof(uint16_t));
    workspace->query_transposed = lay_next(workspaces, &at, transposed, sizeof(uint16_t));
    for (size_t i = 0; i < RIGHT_OPERANDS; i++)
        workspace->right[i] =
            lay_next(workspaces, &at, larger(run->side, run->columns_depth) * wide / 2, sizeof(uint32_t));
    workspace->p_right = lay_next(workspaces, &at, pairs, sizeof(uint32_t));
    workspace->dscores_right = lay_next(workspaces, &at, pairs, sizeof(uint32_t));
    return at;
}

static struct workspace workspace_of(const struct attention_run *run, size_t worker)
{
    struct workspace workspace;
    lay_out(run, run->dout.data != NULL, run->workspaces + worker * run->workspace_bytes, &workspace);
    return workspace;
}

static struct matrix bf16_rows(const void *data, size_t rows, size_t columns)
{
    struct matrix m = matrix_rows((void *)data, rows, columns);
    m.type = TENSOR_BF16;
    return m;
}

/* Of all samples; parts: 3 of qkv and its gradient, 1 of the others. */
static struct matrix all_rows(const struct attention_operands *o, const void *data, size_t parts)
{
    return bf16_rows(data, o->batch * o->positions, parts * o->width);
}

static struct matrix rows_from(struct matrix m, size_t first, size_t count)
{
    m.data = (char *)m.data + first * m.stride * tensor_type_size(m.type);
    m.rows = count;
    return m;
}

/* Packs op(b) as the right operand of products into its own buffer. */
static const uint32_t *prepare_right(const struct attention_run *run, struct matrix b, bool transpose, uint32_t *to)
{
    size_t columns = transpose ? b.rows : b.columns;
    bf16_pack_right(run->cpu, b, transpose, 0, bf16_padded(columns, BF16_SIDE) / BF16_SIDE, to);
    return to;
}

/* c [rows of a, n as padded] = a b, b [columns of a, n] as prepared; a as it is where its depth is whole, or by way of the
 * workspace */
static void multiply(const struct attention_run *run, const struct workspace *workspace, struct matrix a,
                     const uint32_t *b, size_t n, float *c, size_t ldc)
{
    size_t depth = bf16_padded(a.columns, BF16_DEPTH);
    if (a.columns != depth) {
        bf16_pack_left(run->cpu, a, false, 0, a.rows, workspace->left, depth);
        a = bf16_rows(workspace->left, a.rows, depth);
    }
    run->cpu->bf16->multiply(&(struct bf16_product){.m = a.rows,
                                                    .n = bf16_padded(n, BF16_SIDE),
                                                    .k = depth,
                                                    .a = a.data,
                                                    .lda = a.stride,
                                                    .b = b,
                                                    .c = c,
                                                    .ldc = ldc});
}

/* Columns column … of out = x, whose rows are `stride` apart, rounded */
static void store_columns(const struct attention_run *run, struct matrix out, size_t column, size_t columns,
                          const float *x, size_t stride)
{
    for (size_t i = 0; i < out.rows; i++, x += stride)
        cpu_write(run->cpu, out, run->far, i, column, columns, x);
}

/* out [rows, columns of a head] = a b, through the worker's buffer */
static void multiply_into(const struct attention_run *run, const struct workspace *workspace, struct matrix a,
                          const uint32_t *b, struct matrix out)
{
    multiply(run, workspace, a, b, run->columns, workspace->narrow, run->columns_depth);
    store_columns(run, out, 0, run->columns, workspace->narrow, run->columns_depth);
}

/* A sample's rows of a matrix [B · L, …], columns of one head from `first` on. */
static struct matrix head_of(const struct attention_run *run, struct matrix all, size_t job, size_t first)
{
    size_t sample = job / run->heads, column = first + job % run->heads * run->columns;
    struct matrix m = all;
    m.data = (char *)all.data + (sample * run->positions * all.stride + column) * tensor_type_size(all.type);
    m.rows = run->positions;
    m.columns = run->columns;
    return m;
}

struct head {
    struct matrix query, key, value;
};

static struct head heads_of(const struct attention_run *run, struct matrix qkv, size_t job)
{
    return (struct head){head_of(run, qkv, job, 0), head_of(run, qkv, job, run->width),
                         head_of(run, qkv, job, 2 * run->width)};
}

static size_t seen_by(const struct attention_run *run, size_t job, size_t row)
{
    return cpu_seen_keys(run->causal, run->asked, run->positions, job / run->heads, row);
}

/* Rows first … of p = softmax(q kᵀ / √columns), each over the keys that it sees; keys: kᵀ as prepared. The
 * exponentials stay in workspace->scores, the inverses of their sums go to `inverse`. */
static struct matrix probabilities(const struct attention_run *run, const struct workspace *workspace, size_t job,
                                   struct matrix query, const uint32_t *keys, size_t first, float inverse[BLOCK])
{
    size_t n = run->positions, rows = smaller(n - first, BLOCK), depth = run->depth;
    multiply(run, workspace, rows_from(query, first, rows), keys, n, workspace->scores, depth);
    for (size_t i = 0; i < rows; i++)
        inverse[i] = run->cpu->bf16->softmax(seen_by(run, job, first + i), depth, run->scale,
                                             workspace->scores + i * depth, workspace->p + i * depth);
    return bf16_rows(workspace->p, rows, depth);
}

static void attend(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    struct head head = heads_of(run, run->qkv, job);
    struct matrix out = head_of(run, run->out, job, 0), value = head.value;
    OWNED void *copy = run->causal ? cpu_without_infinite(run->cpu, &value) : NULL;
    struct workspace workspace = workspace_of(run, worker);
    const uint32_t *keys = prepare_right(run, head.key, true, workspace.right[0]),
                   *values = prepare_right(run, value, false, workspace.right[1]);
    float inverse[BLOCK];
    for (size_t i = 0; i < run->positions; i += BLOCK) {
        struct matrix p = probabilities(run, &workspace, job, head.query, keys, i, inverse);
        multiply_into(run, &workspace, p, values, rows_from(out, i, p.rows));
    }
    run->cpu->bf16->fence();
    if (copy != NULL)
        cpu_show_infinite(head.value, false, out);
}

/* A block's rows [rows ≤ BLOCK, depth] as depths first … of a right operand, zeros where there are none. */
static void keep_as_right(const struct attention_run *run, uint16_t *block, size_t rows, size_t first, uint32_t *right)
{
    size_t depth = run->depth;
    memset(block + rows * depth, 0, (BLOCK - rows) * depth * sizeof *block);
    for (size_t i = 0; i < BLOCK; i += 2)
        run->cpu->vector->pair(run->side, block + i * depth, block + (i + 1) * depth,
                               right + (first + i) / 2 * BF16_SIDE, depth / 2 * BF16_SIDE);
}

/* dq of the block at `first`, and what the products below need: p and the gradient of the scores */
static void attend_backward_block(const struct attention_run *run, const struct workspace *workspace, size_t job,
                                  const struct head *head, size_t first, struct matrix dquery, struct matrix dout)
{
    float inverse[BLOCK];
    size_t depth = run->depth;
    struct matrix p = probabilities(run, workspace, job, head->query, workspace->right[0], first, inverse);
    multiply(run, workspace, rows_from(dout, first, p.rows), workspace->right[1], run->positions, workspace->gradients,
             depth);
    for (size_t i = 0; i < p.rows; i++)
        run->cpu->bf16->softmax_backward(seen_by(run, job, first + i), depth, run->scale, inverse[i],
                                         workspace->scores + i * depth, workspace->gradients + i * depth,
                                         workspace->dscores + i * depth);
    multiply_into(run, workspace, bf16_rows(workspace->dscores, p.rows, depth), workspace->right[2],
                  rows_from(dquery, first, p.rows));
    keep_as_right(run, workspace->p, p.rows, first, workspace->p_right);
    keep_as_right(run, workspace->dscores, p.rows, first, workspace->dscores_right);
}

/* out [L, columns of a head] = rightᵀ a, as (aᵀ right)ᵀ; a_transposed: aᵀ */
static void multiply_transposed(const struct attention_run *run, const struct workspace *workspace,
                                const uint16_t *a_transposed, const uint32_t *right, struct matrix out)
{
    for (size_t column = 0; column < run->columns; column += BLOCK) {
        size_t columns = smaller(run->columns - column, BLOCK);
        struct matrix a = bf16_rows(a_transposed + column * run->depth, columns, run->depth);
        multiply(run, workspace, a, right, run->positions, workspace->scores, run->depth);
        for (size_t i = 0; i < columns; i += BF16_SIDE)
            run->cpu->vector->transpose(run->side, (const uint32_t *)workspace->scores + i * run->depth, run->depth,
                                        (uint32_t *)workspace->gradients + i, BLOCK);
        store_columns(run, out, column, columns, workspace->gradients, BLOCK);
    }
}

static void attend_backward(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    struct head head = heads_of(run, run->qkv, job), gradient = heads_of(run, run->dqkv, job);
    struct matrix dout = head_of(run, run->dout, job, 0), query = head.query, key = head.key, finite = dout;
    bool masked = run->causal || run->asked != NULL;
    void *copies[] = {masked ? cpu_without_infinite(run->cpu, &query) : NULL,
                      masked ? cpu_without_infinite(run->cpu, &key) : NULL,
                      run->causal ? cpu_without_infinite(run->cpu, &finite) : NULL};
    struct workspace workspace = workspace_of(run, worker);
    prepare_right(run, head.key, true, workspace.right[0]);
    prepare_right(run, head.value, true, workspace.right[1]);
    prepare_right(run, key, false, workspace.right[2]);
    bf16_pack_left(run->cpu, finite, true, 0, run->columns, workspace.dout_transposed, run->depth);
    bf16_pack_left(run->cpu, query, true, 0, run->columns, workspace.query_transposed, run->depth);
    for (size_t i = 0; i < run->positions; i += BLOCK)
        attend_backward_block(run, &workspace, job, &head, i, gradient.query, dout);
    multiply_transposed(run, &workspace, workspace.dout_transposed, workspace.p_right, gradient.value);
    multiply_transposed(run, &workspace, workspace.query_transposed, workspace.dscores_right, gradient.key);
    run->cpu->bf16->fence();
    if (copies[2] != NULL)
        cpu_show_infinite(dout, true, gradient.value);
    for (size_t i = 0; i < 3; i++)
        free(copies[i]);
}

static status run_heads(struct attention_run *run, const struct attention_operands *o, threads_job job,
                        struct error *error)
{
    bool backward = run->dout.data != NULL;
    run->positions = o->positions;
    run->width = o->width;
    run->heads = o->heads;
    run->causal = o->causal;
    run->qkv = all_rows(o, o->qkv, 3);
    run->columns = run->width / run->heads;
    run->side = bf16_padded(run->positions, BF16_SIDE);
    run->depth = bf16_padded(run->positions, BF16_DEPTH);
    run->scale = 1.0f / sqrtf((float)run->columns);
    run->far = cpu_is_far(backward ? run->dqkv : run->out);
    run->columns_depth = bf16_padded(run->columns, BF16_DEPTH);
    struct workspace unused;
    run->workspace_bytes = lay_out(run, backward, NULL, &unused);
    TRY(cpu_scratch(run->cpu, threads_count(run->cpu->threads) * run->workspace_bytes, &run->workspaces, error));
    threads_run(run->cpu->threads, o->batch * run->heads, job, run);
    return OK;
}

status cpu_attention_bf16(struct cpu *cpu, const struct attention *o, struct error *error)
{
    struct attention_run run = {.cpu = cpu, .out = all_rows(&o->operands, o->out, 1)};
    return run_heads(&run, &o->operands, attend, error);
}

status cpu_attention_backward_bf16(struct cpu *cpu, const struct attention_backward *o, const bool *asked,
                                   struct error *error)
{
    struct attention_run run = {.cpu = cpu,
                                .asked = asked,
                                .dout = all_rows(&o->operands, o->dout, 1),
                                .dqkv = all_rows(&o->operands, o->dqkv, 3)};
    return run_heads(&run, &o->operands, attend_backward, error);
}
