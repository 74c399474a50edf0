/* Attention over learned keys and values beside a sample's own (struct prefix_attention): they are few, so every query takes
 * them by plain loops. */
#include <assert.h>
#include <math.h>

#include "models/cpu/cpu.h"

enum { COLUMNS = 128 }; /* of a head, at most */

/* One head of one query. */
struct head {
    const struct prefix_operands *o;
    size_t index;         /* of the query among all that are asked for */
    size_t column, count; /* the head's columns */
    size_t row;           /* of qkv */
    const float *key;     /* [n, width] from the head's columns on */
    const float *value;   /* likewise */
    float scale, weight;
    float widened[COLUMNS];
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
static bool find_head(const struct cpu *cpu, struct head *head, const struct prefix_operands *o, size_t index,
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
static void probabilities(const struct cpu *cpu, const struct head *head, float *p)
{
    const struct prefix_operands *o = head->o;
    for (size_t j = 0; j < o->length; j++)
        p[j] = cpu->vector->dot(head->count, head->query, head->key + j * o->width);
    cpu->vector->softmax(o->length, head->scale, p, p);
}

/* to += scale · Σ_j weights_j rows_j, on the head's columns of a row */
static void add_weighted(const struct cpu *cpu, const struct head *head, const float *weights, const float *rows,
                         float scale, struct matrix to, size_t row)
{
    float sum[COLUMNS] = {0};
    for (size_t j = 0; j < head->o->length; j++)
        cpu->vector->axpy(head->count, weights[j], rows + j * head->o->width, sum);
    cpu_add_row(cpu, scale, matrix_rows(sum, 1, head->count), 0, matrix_columns(to, head->column, head->count), row);
}

static void attend_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct prefix_attention *o = operation;
    float p[PREFIX_LENGTH];
    struct head head;
    for (size_t i = first; i < last; i++)
        for (size_t h = 0; h < o->prefix.heads; h++)
            if (find_head(cpu, &head, &o->prefix, i, h)) {
                probabilities(cpu, &head, p);
                add_weighted(cpu, &head, p, head.value, head.weight, results_of(&o->prefix, o->out), i);
            }
}

static size_t cost_of_query(const struct prefix_operands *o)
{
    return 2 * o->length * o->width;
}

static void check(const struct prefix_operands *o)
{
    assert(o->length > 0 && o->length <= PREFIX_LENGTH && o->width % o->heads == 0 && o->width / o->heads <= COLUMNS);
    (void)o;
}

status cpu_prefix_attention(struct backend *backend, const struct prefix_attention *o, struct error *error)
{
    (void)error;
    check(&o->prefix);
    return cpu_run_rows(cpu_of(backend), o->prefix.batch * queries_of(&o->prefix), cost_of_query(&o->prefix),
                        attend_rows, o);
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
    struct head head;
    float widened[COLUMNS];
    for (size_t i = first; i < last; i++)
        for (size_t h = 0; h < o->heads; h++) {
            float *p = s->weights + (i * o->heads + h) * o->length, *ds = s->scores + (i * o->heads + h) * o->length;
            if (!find_head(cpu, &head, o, i, h))
                continue;
            const float *dout = cpu_floats(cpu, results_of(o, s->o->dout), i, head.column, head.count, widened);
            probabilities(cpu, &head, p);
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
    struct head head;
    float widened[COLUMNS];
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

status cpu_prefix_attention_backward(struct backend *backend, const struct prefix_attention_backward *o,
                                     struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    const struct prefix_operands *prefix = &o->prefix;
    size_t queries = prefix->batch * queries_of(prefix), n = queries * prefix->heads * prefix->length;
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct slopes slopes = {.o = o};
    check(prefix);
    TRY(cpu_scratch(cpu, 2 * n * sizeof(float), &slopes.weights, error));
    slopes.scores = slopes.weights + n;
    cpu_run_rows(cpu, queries, 2 * cost_of_query(prefix), slope_rows, &slopes);
    if (o->dvalues != NULL)
        cpu_run_rows(cpu, prefix->heads * prefix->length, 2 * queries * prefix->width / prefix->heads, gradient_rows,
                     &slopes);
    arena_release(&cpu->scratch, mark);
    return OK;
}
