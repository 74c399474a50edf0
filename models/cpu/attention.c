#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "models/cpu/cpu.h"

struct attention_run {
    struct cpu *cpu;
    size_t positions, width, heads, columns; /* columns: of a head */
    size_t workspace_values, scratch_values; /* of a worker: for f32_run, and of all with the matrices behind */
    float scale;                             /* 1/√columns */
    bool causal;
    const bool *asked; /* as for cpu_seen_keys */
    const float *qkv, *dout;
    float *out, *dqkv, *scratch;
};

struct head {
    const float *query, *key, *value;
    size_t stride;
};

static bool is_finite_at(struct matrix m, size_t row, size_t column)
{
    if (m.type == TENSOR_F32)
        return isfinite(row_of(m, row)[column]);
    return (((const uint16_t *)m.data)[row * m.stride + column] & 0x7f80) != 0x7f80;
}

static bool is_finite_row(const struct cpu *cpu, struct matrix m, size_t row)
{
    if (m.type == TENSOR_F32)
        return cpu->vector->finite(m.columns, row_of(m, row));
    const uint16_t *values = (const uint16_t *)m.data + row * m.stride;
    int16_t largest = 0; /* magnitude; a signed maximum is one instruction everywhere */
    for (size_t j = 0; j < m.columns; j++) {
        int16_t magnitude = (int16_t)(values[j] & 0x7fff);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest < 0x7f80;
}

void *cpu_without_infinite(const struct cpu *cpu, struct matrix *m)
{
    struct matrix from = *m;
    size_t row = 0, size = tensor_type_size(from.type);
    while (row < from.rows && is_finite_row(cpu, from, row))
        row++;
    if (row == from.rows)
        return NULL;
    m->data = xcalloc(from.rows * from.stride, size); /* as far apart: oneDNN's kernels are chosen by that */
    for (size_t i = 0; i < from.rows; i++)
        for (size_t j = 0; j < from.columns; j++)
            if (is_finite_at(from, i, j))
                memcpy((char *)m->data + (i * from.stride + j) * size,
                       (const char *)from.data + (i * from.stride + j) * size, size);
    return m->data;
}

void cpu_show_infinite(struct matrix x, bool before, struct matrix out)
{
    enum { BF16_NAN = 0x7fc0 };
    for (size_t i = 0; i < x.rows; i++)
        for (size_t j = 0; j < x.columns; j++)
            for (size_t k = before ? 0 : i; !is_finite_at(x, i, j) && k < (before ? i + 1 : x.rows); k++)
                if (out.type == TENSOR_F32)
                    row_of(out, k)[j] = NAN;
                else
                    ((uint16_t *)out.data)[k * out.stride + j] = BF16_NAN;
}

static struct matrix rows_of_head(const struct attention_run *run, const float *first, size_t stride)
{
    struct matrix m = matrix_rows((float *)first, run->positions, run->columns);
    m.stride = stride;
    return m;
}

static struct head head_of(const struct attention_run *run, size_t job)
{
    size_t sample = job / run->heads, column = job % run->heads * run->columns;
    const float *base = run->qkv + sample * run->positions * 3 * run->width + column;
    return (struct head){base, base + run->width, base + 2 * run->width, 3 * run->width};
}

/* p [L, L] = softmax(q kᵀ / √columns), each row over the keys that it sees. oneDNN's kernels differ in the last bit from one
 * number of positions to another, and a prompt must not know how long the others of its batch are. */
static void probabilities(const struct attention_run *run, const struct head *head, size_t sample, float *workspace,
                          float *p)
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
            workspace);
    for (size_t i = 0; i < n; i++) {
        size_t seen = cpu_seen_keys(run->causal, run->asked, n, sample, i);
        run->cpu->vector->softmax(seen, run->scale, p + i * n, p + i * n);
        memset(p + i * n + seen, 0, (n - seen) * sizeof *p);
    }
}

static void attend(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    struct head head = head_of(run, job);
    size_t n = run->positions, sample = job / run->heads, column = job % run->heads * run->columns;
    float *workspace = run->scratch + worker * run->scratch_values, *p = workspace + run->workspace_values;
    struct matrix all = rows_of_head(run, head.value, head.stride), value = all,
                  out = rows_of_head(run, run->out + sample * n * run->width + column, run->width);
    OWNED void *copy = run->causal ? cpu_without_infinite(run->cpu, &value) : NULL;
    probabilities(run, &head, sample, workspace, p);
    f32_run(run->cpu,
            &(struct product){.a = p,
                              .b = value.data,
                              .c = out.data,
                              .m = n,
                              .n = run->columns,
                              .k = n,
                              .lda = n,
                              .ldb = value.stride,
                              .ldc = out.stride,
                              .scale = 1.0f},
            workspace);
    if (copy != NULL)
        cpu_show_infinite(all, false, out);
}

/* c = w x or wᵀ x of a head, w [L, L] */
static void multiply(const struct attention_run *run, const float *w, bool transpose, struct matrix x, struct matrix c)
{
    product_run(run->cpu, &(struct product){.a = w,
                                            .b = x.data,
                                            .c = c.data,
                                            .m = run->positions,
                                            .n = run->columns,
                                            .k = run->positions,
                                            .lda = run->positions,
                                            .ldb = x.stride,
                                            .ldc = c.stride,
                                            .transpose_a = transpose,
                                            .scale = 1.0f});
}

/* ds = p ⊙ (dp − Σ p dp) / √columns, in place of dp */
static void score_gradients(const struct attention_run *run, size_t sample, const float *p, float *dp)
{
    for (size_t i = 0, n = run->positions; i < n; i++, p += n, dp += n) {
        size_t seen = cpu_seen_keys(run->causal, run->asked, n, sample, i), rest = (n - seen) * sizeof *dp;
        memset(dp + seen, 0, rest);
        run->cpu->vector->softmax_backward(n, run->scale, p, dp, dp);
        memset(dp + seen, 0, rest);
    }
}

static void attend_backward(void *context, size_t job, size_t worker)
{
    const struct attention_run *run = context;
    const struct cpu *cpu = run->cpu;
    struct head head = head_of(run, job);
    size_t n = run->positions, sample = job / run->heads, column = job % run->heads * run->columns;
    struct matrix all = rows_of_head(run, run->dout + sample * n * run->width + column, run->width), dout = all,
                  query = rows_of_head(run, head.query, head.stride), key = rows_of_head(run, head.key, head.stride),
                  dquery = rows_of_head(run, run->dqkv + (head.query - run->qkv), head.stride), dkey = dquery,
                  dvalue = dquery;
    float *workspace = run->scratch + worker * run->scratch_values, *p = workspace + run->workspace_values,
          *dp = p + n * n;
    bool masked = run->causal || run->asked != NULL;
    void *copies[] = {masked ? cpu_without_infinite(cpu, &query) : NULL,
                      masked ? cpu_without_infinite(cpu, &key) : NULL,
                      run->causal ? cpu_without_infinite(cpu, &dout) : NULL};
    dkey.data = (float *)dquery.data + run->width;
    dvalue.data = (float *)dkey.data + run->width;
    probabilities(run, &head, sample, workspace, p);
    multiply(run, p, true, dout, dvalue);
    if (copies[2] != NULL)
        cpu_show_infinite(all, true, dvalue);
    product_run(run->cpu, &(struct product){.a = all.data,
                                            .b = head.value,
                                            .c = dp,
                                            .m = n,
                                            .n = n,
                                            .k = run->columns,
                                            .lda = all.stride,
                                            .ldb = head.stride,
                                            .ldc = n,
                                            .transpose_b = true,
                                            .scale = 1.0f});
    score_gradients(run, sample, p, dp);
    multiply(run, dp, false, key, dquery);
    multiply(run, dp, true, query, dkey);
    for (size_t i = 0; i < 3; i++)
        free(copies[i]);
}

static status run_heads(struct attention_run *run, const struct attention_operands *o, size_t matrices, threads_job job,
                        struct error *error)
{
    run->positions = o->positions;
    run->width = o->width;
    run->heads = o->heads;
    run->causal = o->causal;
    run->qkv = o->qkv;
    run->columns = run->width / run->heads;
    run->scale = 1.0f / sqrtf((float)run->columns);
    run->workspace_values = f32_workspace(run->cpu, run->positions, run->columns);
    run->scratch_values = run->workspace_values + (matrices * run->positions * run->positions + 15) / 16 * 16;
    TRY(cpu_scratch(run->cpu, threads_count(run->cpu->threads) * run->scratch_values * sizeof(float), &run->scratch,
                    error));
    threads_run(run->cpu->threads, o->batch * run->heads, job, run);
    return products_finish(run->cpu, error);
}

static status attention_of_all(struct cpu *cpu, const struct attention *o, struct error *error)
{
    if (o->operands.type == TENSOR_BF16)
        return cpu_attention_bf16(cpu, o, error);
    struct attention_run run = {.cpu = cpu, .out = o->out};
    return run_heads(&run, &o->operands, 1, attend, error);
}

static status attention_backward_of_all(struct cpu *cpu, const struct attention_backward *o, const bool *asked,
                                        struct error *error)
{
    if (o->operands.type == TENSOR_BF16)
        return cpu_attention_backward_bf16(cpu, o, asked, error);
    struct attention_run run = {.cpu = cpu, .asked = asked, .dout = o->dout, .dqkv = o->dqkv};
    return run_heads(&run, &o->operands, 2, attend_backward, error);
}

/* In scratch memory: a row of every position. */
static status take_all(struct cpu *cpu, const struct attention_operands *o, struct matrix *all, struct error *error)
{
    *all = matrix_rows(NULL, o->batch * o->positions, o->width);
    all->type = o->type;
    return cpu_scratch(cpu, all->rows * o->width * tensor_type_size(o->type), &all->data, error);
}

static struct matrix chosen_rows(const struct attention_operands *o, const void *values)
{
    struct matrix m = matrix_rows((void *)values, o->batch * o->rows_per_sample, o->width);
    m.type = o->type;
    return m;
}

/* Chosen rows are those of the whole: a product of few rows could round otherwise. */
status cpu_attention(struct cpu *cpu, const struct attention *o, struct error *error)
{
    const int32_t *rows = o->operands.rows;
    if (rows == NULL)
        return attention_of_all(cpu, o, error);
    struct attention whole = *o;
    struct matrix all, out = chosen_rows(&o->operands, o->out);
    TRY(take_all(cpu, &o->operands, &all, error));
    whole.out = all.data;
    TRY(attention_of_all(cpu, &whole, error));
    return cpu_gather_rows(cpu, &(struct gather_rows){.x = all, .out = out, .rows = rows}, error);
}

status cpu_attention_backward(struct cpu *cpu, const struct attention_backward *o, struct error *error)
{
    const int32_t *rows = o->operands.rows;
    if (rows == NULL)
        return attention_backward_of_all(cpu, o, NULL, error);
    struct attention_backward whole = *o;
    struct matrix all, dout = chosen_rows(&o->operands, o->dout);
    bool *asked;
    TRY(take_all(cpu, &o->operands, &all, error));
    memset(all.data, 0, all.rows * all.columns * tensor_type_size(all.type));
    TRY(cpu_scatter_rows(cpu, &(struct scatter_rows){.x = dout, .out = all, .rows = rows}, error));
    TRY(cpu_scratch(cpu, all.rows * sizeof *asked, &asked, error));
    memset(asked, 0, all.rows * sizeof *asked);
    for (size_t i = 0; i < dout.rows; i++)
        asked[rows[i]] = true;
    whole.dout = all.data;
    return attention_backward_of_all(cpu, &whole, asked, error);
}

/* ---- learned keys and values beside a sample's own (struct prefix_attention): they are few, so every query takes them by plain
 * loops ---- */

enum { PREFIX_COLUMNS = 128 }; /* of a head, at most */

/* One head of one query. */
struct prefix_head {
    const struct prefix_operands *o;
    size_t index;         /* of the query among all that are asked for */
    size_t column, count; /* the head's columns */
    size_t row;           /* of qkv */
    const float *key;     /* [n, width] from the head's columns on */
    const float *value;   /* likewise */
    float scale, weight;
    float widened[PREFIX_COLUMNS];
    const float *query; /* [count] */
};

static size_t queries_of(const struct prefix_operands *o)
{
    return o->rows != NULL ? o->rows_per_sample : o->positions;
}

static struct matrix matrix_of_type(const struct prefix_operands *o, const void *data, size_t rows, size_t columns)
{
    struct matrix m = matrix_rows((void *)data, rows, columns);
    m.type = o->type;
    return m;
}

static struct matrix results_of(const struct prefix_operands *o, const void *data)
{
    return matrix_of_type(o, data, o->batch * queries_of(o), o->width);
}

static struct matrix qkv_of(const struct prefix_operands *o, const void *data)
{
    return matrix_of_type(o, data, o->batch * o->positions, 3 * o->width);
}

/* False: the query's sample has no router. */
static bool find_head(const struct cpu *cpu, struct prefix_head *head, const struct prefix_operands *o, size_t index,
                      size_t number)
{
    size_t sample = index / queries_of(o);
    if (o->router[sample] < 0)
        return false;
    head->o = o;
    head->index = index;
    head->count = o->width / o->heads;
    head->column = number * head->count;
    head->row = o->rows != NULL ? (size_t)o->rows[index] : index;
    head->key = o->values + (size_t)o->router[sample] * 2 * o->length * o->width + head->column;
    head->value = head->key + o->length * o->width;
    head->scale = 1.0f / sqrtf((float)head->count);
    head->weight = o->weights != NULL ? o->weights[sample] : 1;
    head->query = cpu_floats(cpu, qkv_of(o, o->qkv), head->row, head->column, head->count, head->widened);
    return true;
}

/* p [n] = softmax(scale · q Kᵀ) */
static void prefix_probabilities(const struct cpu *cpu, const struct prefix_head *head, float *p)
{
    const struct prefix_operands *o = head->o;
    for (size_t j = 0; j < o->length; j++)
        p[j] = cpu->vector->dot(head->count, head->query, head->key + j * o->width);
    cpu->vector->softmax(o->length, head->scale, p, p);
}

/* to += scale · Σ_j weights_j rows_j, on the head's columns of a row */
static void add_weighted(const struct cpu *cpu, const struct prefix_head *head, const float *weights, const float *rows,
                         float scale, struct matrix to, size_t row)
{
    float sum[PREFIX_COLUMNS] = {0};
    for (size_t j = 0; j < head->o->length; j++)
        cpu->vector->axpy(head->count, weights[j], rows + j * head->o->width, sum);
    cpu_add_row(cpu, scale, matrix_rows(sum, 1, head->count), 0, matrix_columns(to, head->column, head->count), row);
}

static void attend_to_prefix(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct prefix_attention *o = operation;
    float p[PREFIX_LENGTH];
    struct prefix_head head;
    for (size_t i = first; i < last; i++)
        for (size_t h = 0; h < o->prefix.heads; h++)
            if (find_head(cpu, &head, &o->prefix, i, h)) {
                prefix_probabilities(cpu, &head, p);
                add_weighted(cpu, &head, p, head.value, head.weight, results_of(&o->prefix, o->out), i);
            }
}

static size_t cost_of_query(const struct prefix_operands *o)
{
    return 2 * o->length * o->width;
}

static void check_prefix(const struct prefix_operands *o)
{
    assert(o->length > 0 && o->length <= PREFIX_LENGTH && o->width % o->heads == 0 &&
           o->width / o->heads <= PREFIX_COLUMNS);
}

status cpu_prefix_attention(struct cpu *cpu, const struct prefix_attention *o, struct error *error)
{
    check_prefix(&o->prefix);
    return cpu_run_rows(cpu, o->prefix.batch * queries_of(&o->prefix), cost_of_query(&o->prefix), attend_to_prefix, o);
}

/* With [queries, heads, n] each: the weights of the values, and the gradients of the scores before their scale. */
struct slopes {
    const struct prefix_attention_backward *o;
    float *weights, *scores;
};

/* ds = scale · p ⊙ (dp − Σ p dp), dp = weight · V dout; dq += Σ_j ds_j K_j */
static void slope_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct slopes *s = operation;
    const struct prefix_operands *o = &s->o->prefix;
    struct prefix_head head;
    float widened[PREFIX_COLUMNS];
    for (size_t i = first; i < last; i++)
        for (size_t h = 0; h < o->heads; h++) {
            float *p = s->weights + (i * o->heads + h) * o->length, *ds = s->scores + (i * o->heads + h) * o->length;
            if (!find_head(cpu, &head, o, i, h))
                continue;
            const float *dout = cpu_floats(cpu, results_of(o, s->o->dout), i, head.column, head.count, widened);
            prefix_probabilities(cpu, &head, p);
            for (size_t j = 0; j < o->length; j++)
                ds[j] = head.weight * cpu->vector->dot(head.count, dout, head.value + j * o->width);
            cpu->vector->softmax_backward(o->length, head.scale, p, ds, ds);
            cpu->vector->scale(o->length, head.weight, p, p);
            add_weighted(cpu, &head, ds, head.key, 1, qkv_of(o, s->o->dqkv), head.row);
        }
}

/* Keys and values of one head and number, over all queries in order, so that the sum does not depend on threads. */
static void gradient_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct slopes *s = operation;
    const struct prefix_operands *o = &s->o->prefix;
    struct prefix_head head;
    float widened[PREFIX_COLUMNS];
    for (size_t job = first; job < last; job++) {
        size_t h = job / o->length, j = job % o->length;
        for (size_t i = 0; i < o->batch * queries_of(o); i++) {
            if (!find_head(cpu, &head, o, i, h))
                continue;
            size_t at = (i * o->heads + h) * o->length + j;
            float *dkey = s->o->dvalues + (head.key - o->values) + j * o->width, *dvalue = dkey + o->length * o->width;
            const float *dout = cpu_floats(cpu, results_of(o, s->o->dout), i, head.column, head.count, widened);
            cpu->vector->axpy(head.count, s->scores[at], head.query, dkey);
            cpu->vector->axpy(head.count, s->weights[at], dout, dvalue);
        }
    }
}

status cpu_prefix_attention_backward(struct cpu *cpu, const struct prefix_attention_backward *o, struct error *error)
{
    const struct prefix_operands *prefix = &o->prefix;
    size_t queries = prefix->batch * queries_of(prefix), n = queries * prefix->heads * prefix->length;
    struct slopes slopes = {.o = o};
    check_prefix(prefix);
    TRY(cpu_scratch(cpu, 2 * n * sizeof(float), &slopes.weights, error));
    slopes.scores = slopes.weights + n;
    cpu_run_rows(cpu, queries, 2 * cost_of_query(prefix), slope_rows, &slopes);
    if (o->dvalues != NULL)
        cpu_run_rows(cpu, prefix->heads * prefix->length, 2 * queries * prefix->width / prefix->heads, gradient_rows,
                     &slopes);
    return OK;
}
