#include <assert.h>
#include <string.h>

#include "models/cpu/cpu.h"
#include "models/gated_prefix.h"

enum { PIECE = 128 }; /* columns at a time */

static size_t rows_of(const struct gated_prefix_operands *o)
{
    return o->batch * gate_rows(o);
}

static struct matrix results_of(const struct gated_prefix_operands *o, const void *data)
{
    struct matrix m = matrix_rows((void *)data, rows_of(o), o->width);
    m.type = o->type;
    return m;
}

static void check(const struct gated_prefix_operands *o)
{
    assert(o->length > 0 && o->length <= PREFIX_LENGTH && o->width % o->heads == 0);
}

/* A piece of a head's columns, and where it begins in a row. */
static size_t next_piece(const struct gate *g, size_t done, size_t *column)
{
    *column = g->column + done;
    return smaller(g->columns - done, PIECE);
}

/* out += weight · (share · V + scale · (norm − 1) · residual) on the columns of a head */
static void add_head(const struct cpu *cpu, const struct gated_prefix *o, size_t row, const struct gate *g)
{
    const struct gated_prefix_operands *p = &o->prefix;
    float sum[PIECE];
    size_t column, n;
    for (size_t done = 0; done < g->columns; done += n) {
        n = next_piece(g, done, &column);
        memset(sum, 0, n * sizeof *sum);
        for (size_t j = 0; j < p->length; j++)
            cpu->vector->axpy(n, g->share[j], p->values + j * p->width + column, sum);
        if (g->norm > 1)
            cpu->vector->axpy(n, p->scale * (g->norm - 1), p->residual + row * p->width + column, sum);
        cpu_add_row(cpu, g->weight, matrix_rows(sum, 1, n), 0, matrix_columns(results_of(p, o->out), column, n), row);
    }
}

CPU_ROWS(gated_prefix, rows_of(&o->prefix), 2 * o->prefix.length * o->prefix.width)
{
    const struct gated_prefix_operands *p = &o->prefix;
    size_t all = p->heads * p->length, per_sample = gate_rows(p);
    struct gate gate;
    check(p);
    for (size_t i = first; i < last; i++) {
        for (size_t h = 0; h < p->heads; h++)
            if (gate_find(p, i, h, &gate))
                add_head(cpu, o, i, &gate);
        for (size_t k = 0; o->seen != NULL && i % per_sample == 0 && k < all; k++)
            o->seen[i / per_sample * all + k] = gate_score(p, i, k);
    }
}

/* shares [B · R, heads · n]: weight · share */
struct gate_slopes {
    const struct gated_prefix_backward *o;
    float *shares;
};

static void slope_head(const struct cpu *cpu, const struct gate_slopes *s, size_t row, const struct gate *g)
{
    const struct gated_prefix_operands *p = &s->o->prefix;
    size_t at = row * p->heads * p->length + g->first, column, n;
    float products[PREFIX_LENGTH] = {0}, residual = 0, widened[PIECE];
    for (size_t done = 0; done < g->columns; done += n) {
        n = next_piece(g, done, &column);
        const float *dout = cpu_floats(cpu, results_of(p, s->o->dout), row, column, n, widened);
        for (size_t j = 0; j < p->length; j++)
            products[j] += cpu->vector->dot(n, dout, p->values + j * p->width + column);
        residual += cpu->vector->dot(n, dout, p->residual + row * p->width + column);
        cpu->vector->scale(n, g->weight * p->scale * (g->norm - 1), dout, s->o->dresidual + row * p->width + column);
    }
    gate_slopes(p, g, products, residual, s->o->dscores + at);
    cpu->vector->scale(p->length, g->weight, g->share, s->shares + at);
}

static void slope_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct gate_slopes *s = operation;
    const struct gated_prefix_operands *p = &s->o->prefix;
    size_t all = p->heads * p->length, count = last - first;
    struct gate gate;
    memset(s->o->dscores + first * all, 0, count * all * sizeof(float));
    memset(s->o->dresidual + first * p->width, 0, count * p->width * sizeof(float));
    memset(s->shares + first * all, 0, count * all * sizeof(float));
    for (size_t i = first; i < last; i++)
        for (size_t h = 0; h < p->heads; h++)
            if (gate_find(p, i, h, &gate))
                slope_head(cpu, s, i, &gate);
}

/* A value's columns in pieces of its heads, over all rows in order, so that the sum does not depend on threads. */
static void value_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct gate_slopes *s = operation;
    const struct gated_prefix_operands *p = &s->o->prefix;
    size_t all = p->heads * p->length, heads = (size_t)p->used[0], columns = p->width / heads;
    float widened[PIECE];
    for (size_t job = first; job < last; job++)
        for (size_t h = 0; h < heads; h++)
            for (size_t done = 0, n; done < columns; done += n) {
                size_t column = h * columns + done;
                n = smaller(columns - done, PIECE);
                for (size_t i = 0; i < rows_of(p); i++)
                    cpu->vector->axpy(n, s->shares[i * all + h * p->length + job],
                                      cpu_floats(cpu, results_of(p, s->o->dout), i, column, n, widened),
                                      s->o->dvalues + job * p->width + column);
            }
}

/* The bias of one position, over all rows in order. */
static void bias_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct gate_slopes *s = operation;
    const struct gated_prefix_operands *p = &s->o->prefix;
    size_t all = p->heads * p->length;
    for (size_t position = first; position < last; position++)
        for (size_t i = 0; i < rows_of(p); i++)
            if (gate_position(p, i) == position)
                cpu->vector->axpy(all, 1, s->o->dscores + i * all, s->o->dbias + position * all);
}

status cpu_gated_prefix_backward(struct cpu *cpu, const struct gated_prefix_backward *o, struct error *error)
{
    const struct gated_prefix_operands *p = &o->prefix;
    size_t rows = rows_of(p), all = p->heads * p->length;
    struct gate_slopes slopes = {.o = o};
    check(p);
    TRY(cpu_scratch(cpu, rows * all * sizeof(float), &slopes.shares, error));
    cpu_run_rows(cpu, rows, 4 * p->length * p->width, slope_rows, &slopes);
    cpu_run_rows(cpu, p->length, rows * p->width, value_rows, &slopes);
    cpu_run_rows(cpu, p->positions, rows, bias_rows, &slopes);
    return OK;
}
