/* Operations row by row: norms, activations, sums, gathers. */
#include <math.h>
#include <string.h>

#include "models/cpu/cpu.h"
#include "models/routing.h"

struct rows_run {
    struct cpu *cpu;
    rows_body body;
    const void *operation;
    size_t rows, chunk;
};

static void run_chunk(void *context, size_t job, size_t worker)
{
    (void)worker;
    const struct rows_run *run = context;
    size_t first = job * run->chunk, last = first + run->chunk < run->rows ? first + run->chunk : run->rows;
    run->body(run->cpu, run->operation, first, last);
}

void cpu_run_rows(struct cpu *cpu, size_t rows, size_t values_per_row, rows_body body, const void *operation)
{
    enum { WORTHWHILE = 1 << 15 }; /* values, some ten microseconds */
    size_t chunk = values_per_row < WORTHWHILE ? WORTHWHILE / (values_per_row > 0 ? values_per_row : 1) : 1;
    struct rows_run run = {cpu, body, operation, rows, chunk};
    threads_run(cpu->threads, (rows + chunk - 1) / chunk, run_chunk, &run);
}

static void layer_norm_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct layer_norm *o = operation;
    for (size_t i = first; i < last; i++) {
        float unused[2], *statistics = o->statistics != NULL ? (float *)o->statistics + 2 * i : unused;
        cpu->vector->layer_norm(o->x.columns, row_of(o->x, i), o->gain, o->bias, row_of(o->y, i), statistics);
    }
}

status cpu_layer_norm(struct backend *backend, const struct layer_norm *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->x.rows, o->x.columns, layer_norm_rows, o);
    return OK;
}

static void layer_norm_backward_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct layer_norm_backward *o = operation;
    for (size_t i = first; i < last; i++)
        cpu->vector->layer_norm_backward(o->x.columns, row_of(o->x, i), row_of(o->dy, i), o->gain,
                                         (const float *)o->statistics + 2 * i, row_of(o->dx, i));
}

/* Columns [16 · job, …): all rows in order, so that the sum does not depend on threads. */
static void layer_norm_gain_columns(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    (void)cpu;
    const struct layer_norm_backward *o = operation;
    float *dgain = o->dgain, *dbias = o->dbias;
    for (size_t i = 0; i < o->x.rows; i++) {
        const float *x = row_of(o->x, i), *dy = row_of(o->dy, i), *statistics = (const float *)o->statistics + 2 * i;
        for (size_t j = first * 16; j < last * 16 && j < o->x.columns; j++) {
            dgain[j] += dy[j] * ((x[j] - statistics[0]) * statistics[1]);
            dbias[j] += dy[j];
        }
    }
}

status cpu_layer_norm_backward(struct backend *backend, const struct layer_norm_backward *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->x.rows, o->x.columns, layer_norm_backward_rows, o);
    if (o->dgain != NULL)
        cpu_run_rows(cpu_of(backend), (o->x.columns + 15) / 16, o->x.rows * 16, layer_norm_gain_columns, o);
    return OK;
}

static void activate_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct activate *o = operation;
    for (size_t i = first; i < last; i++)
        cpu->vector->activate(o->activation, o->x.columns, row_of(o->x, i), row_of(o->out, i));
}

status cpu_activate(struct backend *backend, const struct activate *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->x.rows, o->x.columns, activate_rows, o);
    return OK;
}

static void activate_backward_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct activate_backward *o = operation;
    for (size_t i = first; i < last; i++)
        cpu->vector->activate_backward(o->activation, o->x.columns, row_of(o->x, i), row_of(o->dy, i),
                                       row_of(o->dx, i));
}

status cpu_activate_backward(struct backend *backend, const struct activate_backward *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->x.rows, o->x.columns, activate_backward_rows, o);
    return OK;
}

static size_t end_of(size_t positions, const int32_t *lengths, size_t b)
{
    return lengths != NULL ? (size_t)lengths[b] : positions;
}

status cpu_arange(struct backend *backend, const struct arange *o, struct error *error)
{
    (void)backend;
    (void)error;
    for (size_t i = 0; i < o->count; i++) {
        int32_t row = o->first + (int32_t)i * o->step;
        o->out[i] = o->lengths == NULL ? row : routing_own_row(row, (int32_t)o->positions, o->lengths);
    }
    return OK;
}

status cpu_spread_positions(struct backend *backend, const struct spread_positions *o, struct error *error)
{
    (void)backend;
    (void)error;
    for (size_t b = 0; b < o->batch; b++)
        for (size_t l = 0; l < o->positions; l++)
            o->out[b * o->positions + l] = l < end_of(o->positions, o->lengths, b) ? o->value[b] : -1;
    return OK;
}

static void gather_some(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    (void)cpu;
    const struct gather_rows *o = operation;
    for (size_t i = first; i < last; i++)
        memcpy(row_of(o->out, i), row_of(o->x, (size_t)o->rows[i]), o->out.columns * sizeof(float));
}

status cpu_gather_rows(struct backend *backend, const struct gather_rows *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->out.rows, o->out.columns, gather_some, o);
    return OK;
}

static void scatter_some(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct scatter_rows *o = operation;
    for (size_t i = first; i < last; i++)
        cpu->vector->axpy(o->x.columns, 1.0f, row_of(o->x, i), row_of(o->out, (size_t)o->rows[i]));
}

status cpu_scatter_rows(struct backend *backend, const struct scatter_rows *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->x.rows, o->x.columns, scatter_some, o);
    return OK;
}

static void sum_columns(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct column_sum *o = operation;
    size_t from = first * 64, to = last * 64 < o->x.columns ? last * 64 : o->x.columns;
    for (size_t i = 0; i < o->x.rows; i++)
        cpu->vector->axpy(to - from, 1.0f, row_of(o->x, i) + from, (float *)o->out + from);
}

status cpu_column_sum(struct backend *backend, const struct column_sum *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), (o->x.columns + 63) / 64, o->x.rows * 64, sum_columns, o);
    return OK;
}

static void normalize_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct normalize *o = operation;
    for (size_t i = first; i < last; i++) {
        float norm = sqrtf(cpu->vector->dot(o->x.columns, row_of(o->x, i), row_of(o->x, i)));
        if (isinf(norm)) /* 1/∞ would make a row of zeros of it */
            norm = NAN;
        cpu->vector->scale(o->x.columns, norm != 0 ? 1.0f / norm : 0.0f, row_of(o->x, i), row_of(o->y, i));
        if (o->norms != NULL)
            ((float *)o->norms)[i] = norm;
    }
}

status cpu_normalize(struct backend *backend, const struct normalize *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->x.rows, o->x.columns, normalize_rows, o);
    return OK;
}

static void normalize_backward_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct normalize_backward *o = operation;
    size_t n = o->y.columns;
    for (size_t i = first; i < last; i++) {
        const float *y = row_of(o->y, i), *dy = row_of(o->dy, i);
        float norm = ((const float *)o->norms)[i], inverse = norm > 0 ? 1.0f / norm : 0.0f,
              along = cpu->vector->dot(n, y, dy);
        cpu->vector->axpy(n, inverse, dy, row_of(o->dx, i));
        cpu->vector->axpy(n, -inverse * along, y, row_of(o->dx, i));
    }
}

status cpu_normalize_backward(struct backend *backend, const struct normalize_backward *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->y.rows, o->y.columns, normalize_backward_rows, o);
    return OK;
}

static void mean_of_positions(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct mean_positions *o = operation;
    for (size_t b = first; b < last; b++) {
        const float *x = (const float *)o->x + b * o->positions * o->width;
        float *out = (float *)o->out + b * o->width;
        size_t end = end_of(o->positions, o->lengths, b);
        memset(out, 0, o->width * sizeof *out);
        for (size_t l = o->first; l < end; l++)
            cpu->vector->axpy(o->width, 1.0f, x + l * o->width, out);
        cpu->vector->scale(o->width, 1.0f / (float)(end - o->first), out, out);
    }
}

status cpu_mean_positions(struct backend *backend, const struct mean_positions *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->batch, o->positions * o->width, mean_of_positions, o);
    return OK;
}

static void spread_means(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct mean_positions_backward *o = operation;
    for (size_t b = first; b < last; b++) {
        const float *dout = (const float *)o->dout + b * o->width;
        float *dx = (float *)o->dx + b * o->positions * o->width;
        size_t end = end_of(o->positions, o->lengths, b);
        for (size_t l = o->first; l < end; l++)
            cpu->vector->axpy(o->width, 1.0f / (float)(end - o->first), dout, dx + l * o->width);
    }
}

status cpu_mean_positions_backward(struct backend *backend, const struct mean_positions_backward *o,
                                   struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->batch, o->positions * o->width, spread_means, o);
    return OK;
}
