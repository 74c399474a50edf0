#include <math.h>
#include <string.h>

#include "models/cpu/cpu.h"

struct attention_run {
    struct cpu *cpu;
    size_t positions, width, heads, columns; /* columns: of a head */
    size_t room_values, scratch_values;      /* of a worker: for f32_run, and of all with the matrices behind */
    float scale;                             /* 1/√columns */
    bool causal;
    const float *qkv, *dout;
    float *out, *dqkv, *scratch;
};

struct head {
    const float *query, *key, *value;
    size_t stride;
};

static struct head head_of(const struct attention_run *run, size_t job)
{
    size_t sample = job / run->heads, column = job % run->heads * run->columns;
    const float *base = run->qkv + sample * run->positions * 3 * run->width + column;
    return (struct head){base, base + run->width, base + 2 * run->width, 3 * run->width};
}

/* p [L, L] = softmax(q kᵀ / √columns), row i over positions 0 … i when causal. oneDNN's kernels differ in the last bit from one
 * number of positions to another, and a prompt must not know how long the others of its batch are. */
static void probabilities(const struct attention_run *run, const struct head *head, float *room, float *p)
{
    size_t n = run->positions;
    f32_run(run->cpu,
            &(struct product){.a = head->query,
                              .b = head->key,
                              .c = p,
                              .m = n,
                              .n = n,
                              .k = run->columns,
                              .lda = head->stride,
                              .ldb = head->stride,
                              .ldc = n,
                              .transpose_b = true,
                              .scale = 1.0f},
            room);
    for (size_t i = 0; i < n; i++) {
        size_t seen = run->causal ? i + 1 : n;
        run->cpu->vector->softmax(seen, run->scale, p + i * n, p + i * n);
        memset(p + i * n + seen, 0, (n - seen) * sizeof *p);
    }
}

static void attend(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    struct head head = head_of(run, job);
    size_t n = run->positions, sample = job / run->heads, column = job % run->heads * run->columns;
    float *room = run->scratch + worker * run->scratch_values, *p = room + run->room_values;
    probabilities(run, &head, room, p);
    f32_run(run->cpu,
            &(struct product){.a = p,
                              .b = head.value,
                              .c = run->out + sample * n * run->width + column,
                              .m = n,
                              .n = run->columns,
                              .k = n,
                              .lda = n,
                              .ldb = head.stride,
                              .ldc = run->width,
                              .scale = 1.0f},
            room);
}

static void attend_backward(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    struct head head = head_of(run, job);
    size_t n = run->positions, sample = job / run->heads, column = job % run->heads * run->columns;
    const float *dout = run->dout + sample * n * run->width + column;
    float *dquery = run->dqkv + (head.query - run->qkv), *dkey = dquery + run->width, *dvalue = dkey + run->width;
    float *room = run->scratch + worker * run->scratch_values, *p = room + run->room_values, *dp = p + n * n;
    probabilities(run, &head, room, p);
    product_run(run->cpu, &(struct product){.a = p,
                                            .b = dout,
                                            .c = dvalue,
                                            .m = n,
                                            .n = run->columns,
                                            .k = n,
                                            .lda = n,
                                            .ldb = run->width,
                                            .ldc = head.stride,
                                            .transpose_a = true,
                                            .scale = 1.0f});
    product_run(run->cpu, &(struct product){.a = dout,
                                            .b = head.value,
                                            .c = dp,
                                            .m = n,
                                            .n = n,
                                            .k = run->columns,
                                            .lda = run->width,
                                            .ldb = head.stride,
                                            .ldc = n,
                                            .transpose_b = true,
                                            .scale = 1.0f});
    for (size_t i = 0; i < n; i++)
        run->cpu->vector->softmax_backward(n, run->scale, p + i * n, dp + i * n, dp + i * n);
    product_run(run->cpu, &(struct product){.a = dp,
                                            .b = head.key,
                                            .c = dquery,
                                            .m = n,
                                            .n = run->columns,
                                            .k = n,
                                            .lda = n,
                                            .ldb = head.stride,
                                            .ldc = head.stride,
                                            .scale = 1.0f});
    product_run(run->cpu, &(struct product){.a = dp,
                                            .b = head.query,
                                            .c = dkey,
                                            .m = n,
                                            .n = run->columns,
                                            .k = n,
                                            .lda = n,
                                            .ldb = head.stride,
                                            .ldc = head.stride,
                                            .transpose_a = true,
                                            .scale = 1.0f});
}

static status run_heads(struct attention_run *run, size_t batch, size_t matrices, threads_job job, struct error *error)
{
    struct arena_mark mark = arena_mark(&run->cpu->scratch);
    run->columns = run->width / run->heads;
    run->scale = 1.0f / sqrtf((float)run->columns);
    run->room_values = f32_room(run->cpu, run->positions, run->columns);
    run->scratch_values = run->room_values + (matrices * run->positions * run->positions + 15) / 16 * 16;
    void *memory;
    TRY(cpu_scratch(run->cpu, threads_count(run->cpu->threads) * run->scratch_values * sizeof(float), &memory, error));
    run->scratch = memory;
    threads_run(run->cpu->threads, batch * run->heads, job, run);
    arena_release(&run->cpu->scratch, mark);
    return products_finish(run->cpu, error);
}

static status attention_of_all(struct cpu *cpu, const struct attention *o, struct error *error)
{
    if (o->type == TENSOR_BF16)
        return cpu_attention_bf16(cpu, o, error);
    struct attention_run run = {.cpu = cpu,
                                .positions = o->positions,
                                .width = o->width,
                                .heads = o->heads,
                                .causal = o->causal,
                                .qkv = o->qkv,
                                .out = o->out};
    return run_heads(&run, o->batch, 1, attend, error);
}

static status attention_backward_of_all(struct cpu *cpu, const struct attention_backward *o, struct error *error)
{
    if (o->type == TENSOR_BF16)
        return cpu_attention_backward_bf16(cpu, o, error);
    struct attention_run run = {.cpu = cpu,
                                .positions = o->positions,
                                .width = o->width,
                                .heads = o->heads,
                                .causal = o->causal,
                                .qkv = o->qkv,
                                .dout = o->dout,
                                .dqkv = o->dqkv};
    return run_heads(&run, o->batch, 2, attend_backward, error);
}

/* In scratch memory: a row of every position. */
static status take_all(struct cpu *cpu, size_t rows, size_t width, enum tensor_type type, struct matrix *all,
                       struct error *error)
{
    *all = matrix_rows(NULL, rows, width);
    all->type = type;
    return cpu_scratch(cpu, rows * width * tensor_type_size(type), &all->data, error);
}

static struct matrix chosen_rows(const void *values, size_t rows, size_t width, enum tensor_type type)
{
    struct matrix m = matrix_rows((void *)values, rows, width);
    m.type = type;
    return m;
}

/* Chosen rows are those of the whole: a product of few rows could round otherwise. */
status cpu_attention(struct backend *backend, const struct attention *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    if (o->rows == NULL)
        return attention_of_all(cpu, o, error);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct attention whole = *o;
    struct matrix all;
    TRY(take_all(cpu, o->batch * o->positions, o->width, o->type, &all, error));
    whole.out = all.data;
    TRY(attention_of_all(cpu, &whole, error));
    TRY(cpu_gather_rows(
        backend,
        &(struct gather_rows){
            .x = all, .out = chosen_rows(o->out, o->batch * o->rows_per_sample, o->width, o->type), .rows = o->rows},
        error));
    arena_release(&cpu->scratch, mark);
    return OK;
}

status cpu_attention_backward(struct backend *backend, const struct attention_backward *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    if (o->rows == NULL)
        return attention_backward_of_all(cpu, o, error);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct attention_backward whole = *o;
    struct matrix all;
    TRY(take_all(cpu, o->batch * o->positions, o->width, o->type, &all, error));
    memset(all.data, 0, all.rows * o->width * tensor_type_size(o->type));
    TRY(cpu_scatter_rows(
        backend,
        &(struct scatter_rows){
            .x = chosen_rows(o->dout, o->batch * o->rows_per_sample, o->width, o->type), .out = all, .rows = o->rows},
        error));
    whole.dout = all.data;
    TRY(attention_backward_of_all(cpu, &whole, error));
    arena_release(&cpu->scratch, mark);
    return OK;
}
