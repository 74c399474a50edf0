/* Attention in bf16: the four matrices of a head's products are rounded, softmax is in f32. */
#include <math.h>
#include <string.h>

#include "models/cpu/cpu.h"

struct attention_run {
    struct cpu *cpu;
    size_t positions, width, heads, columns; /* columns: of a head */
    size_t side, depth;                      /* positions, as padded for columns and for depths */
    float scale;                             /* 1/√columns */
    bool causal;
    struct matrix qkv, out, dout, dqkv; /* all samples */
    size_t room_bytes;
    uint8_t *rooms;
};

/* Of one worker. */
struct room {
    float *p, *dp, *narrow; /* [side, side] twice, [side, columns as padded] */
    uint16_t *left;         /* the left operand of a product */
    uint32_t *right;
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t padded_columns(const struct attention_run *run)
{
    return bf16_padded(run->columns, BF16_DEPTH);
}

static struct room room_of(const struct attention_run *run, size_t worker)
{
    struct room room;
    uint8_t *at = run->rooms + worker * run->room_bytes;
    size_t squares = run->side * run->side;
    room.p = (float *)at;
    room.dp = room.p + squares;
    room.narrow = room.dp + squares;
    room.left = (uint16_t *)(room.narrow + run->side * padded_columns(run));
    room.right = (uint32_t *)(room.left + run->side * larger(run->depth, padded_columns(run)));
    return room;
}

static size_t room_bytes(const struct attention_run *run)
{
    size_t columns = padded_columns(run), wide = larger(run->depth, columns);
    size_t floats = 2 * run->side * run->side + run->side * columns;
    return bf16_padded(floats * sizeof(float) + run->side * wide * sizeof(uint16_t) +
                           wide / 2 * larger(run->side, columns) * sizeof(uint32_t),
                       64);
}

/* c [m, n] = op(a) op(b) */
struct operands {
    struct matrix a, b;
    bool transpose_a, transpose_b;
};

static void multiply(const struct attention_run *run, const struct room *room, const struct operands *o, float *c,
                     size_t ldc)
{
    const struct vector_kernels *vector = run->cpu->vector;
    size_t m = o->transpose_a ? o->a.columns : o->a.rows, n = o->transpose_b ? o->b.rows : o->b.columns,
           depth = bf16_padded(o->transpose_a ? o->a.rows : o->a.columns, BF16_DEPTH);
    const uint16_t *a = o->a.data;
    size_t lda = o->a.stride;
    if (o->a.type != TENSOR_BF16 || o->transpose_a || o->a.columns != depth) {
        bf16_pack_left(vector, o->a, o->transpose_a, 0, m, room->left, depth);
        a = room->left;
        lda = depth;
    }
    bf16_pack_right(vector, o->b, o->transpose_b, 0, bf16_padded(n, BF16_SIDE) / BF16_SIDE, room->right);
    run->cpu->bf16->multiply(&(struct bf16_product){
        .m = m, .n = bf16_padded(n, BF16_SIDE), .k = depth, .a = a, .lda = lda, .b = room->right, .c = c, .ldc = ldc});
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

/* p [L, L] of rows `side` apart */
static struct matrix square(const struct attention_run *run, float *p)
{
    struct matrix m = matrix_rows(p, run->positions, run->positions);
    m.stride = run->side;
    return m;
}

/* p = softmax(q kᵀ / √columns), row i over positions 0 … i when causal */
static void probabilities(const struct attention_run *run, const struct room *room, const struct head *head)
{
    size_t n = run->positions;
    multiply(run, room, &(struct operands){head->query, head->key, false, true}, room->p, run->side);
    for (size_t i = 0; i < n; i++) {
        float *p = room->p + i * run->side;
        size_t seen = run->causal ? i + 1 : n;
        run->cpu->vector->softmax(seen, run->scale, p, p);
        memset(p + seen, 0, (n - seen) * sizeof *p);
    }
}

/* out [L, columns] = op(a) b, by way of the room */
static void multiply_into(const struct attention_run *run, const struct room *room, struct matrix a, bool transpose,
                          struct matrix b, struct matrix out)
{
    size_t stride = padded_columns(run);
    multiply(run, room, &(struct operands){a, b, transpose, false}, room->narrow, stride);
    for (size_t i = 0; i < run->positions; i++) {
        if (out.type == TENSOR_F32)
            memcpy(row_of(out, i), room->narrow + i * stride, run->columns * sizeof(float));
        else
            cpu_store(run->cpu, out, i, 0, run->columns, room->narrow + i * stride);
    }
}

static void attend(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    struct head head = heads_of(run, run->qkv, job);
    struct room room = room_of(run, worker);
    probabilities(run, &room, &head);
    multiply_into(run, &room, square(run, room.p), false, head.value, head_of(run, run->out, job, 0));
}

static void attend_backward(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    struct head head = heads_of(run, run->qkv, job), gradient = heads_of(run, run->dqkv, job);
    struct matrix dout = head_of(run, run->dout, job, 0);
    struct room room = room_of(run, worker);
    struct matrix p = square(run, room.p), dp = square(run, room.dp);
    probabilities(run, &room, &head);
    multiply_into(run, &room, p, true, dout, gradient.value);
    multiply(run, &room, &(struct operands){dout, head.value, false, true}, room.dp, run->side);
    for (size_t i = 0; i < run->positions; i++)
        run->cpu->vector->softmax_backward(run->positions, run->scale, row_of(p, i), row_of(dp, i), row_of(dp, i));
    multiply_into(run, &room, dp, false, head.key, gradient.query);
    multiply_into(run, &room, dp, true, head.query, gradient.key);
}

static status run_heads(struct attention_run *run, size_t batch, threads_job job, struct error *error)
{
    struct arena_mark mark = arena_mark(&run->cpu->scratch);
    run->columns = run->width / run->heads;
    run->side = bf16_padded(run->positions, BF16_SIDE);
    run->depth = bf16_padded(run->positions, BF16_DEPTH);
    run->scale = 1.0f / sqrtf((float)run->columns);
    run->room_bytes = room_bytes(run);
    void *memory;
    TRY(cpu_scratch(run->cpu, threads_count(run->cpu->threads) * run->room_bytes, &memory, error));
    run->rooms = memory;
    threads_run(run->cpu->threads, batch * run->heads, job, run);
    arena_release(&run->cpu->scratch, mark);
    return OK;
}

static struct matrix rows_of_type(enum tensor_type type, const void *data, size_t rows, size_t columns)
{
    struct matrix m = matrix_rows((void *)data, rows, columns);
    m.type = type;
    return m;
}

status cpu_attention_bf16(struct cpu *cpu, const struct attention *o, struct error *error)
{
    size_t rows = o->batch * o->positions;
    struct attention_run run = {.cpu = cpu,
                                .positions = o->positions,
                                .width = o->width,
                                .heads = o->heads,
                                .causal = o->causal,
                                .qkv = rows_of_type(o->type, o->qkv, rows, 3 * o->width),
                                .out = rows_of_type(o->type, o->out, rows, o->width)};
    return run_heads(&run, o->batch, attend, error);
}

status cpu_attention_backward_bf16(struct cpu *cpu, const struct attention_backward *o, struct error *error)
{
    size_t rows = o->batch * o->positions;
    struct attention_run run = {.cpu = cpu,
                                .positions = o->positions,
                                .width = o->width,
                                .heads = o->heads,
                                .causal = o->causal,
                                .qkv = rows_of_type(o->type, o->qkv, rows, 3 * o->width),
                                .dout = rows_of_type(o->type, o->dout, rows, o->width),
                                .dqkv = rows_of_type(o->type, o->dqkv, rows, 3 * o->width)};
    return run_heads(&run, o->batch, attend_backward, error);
}
