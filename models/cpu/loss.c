#include <math.h>

#include "models/cpu/cpu.h"

struct cross_entropy_run {
    const struct cross_entropy *o;
    double *losses; /* [rows] */
};

static void cross_entropy_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct cross_entropy_run *run = operation;
    const struct cross_entropy *o = run->o;
    size_t classes = o->logits.columns;
    float share = o->weight / (float)o->logits.rows, uniform = o->smoothing / (float)classes;
    for (size_t i = first; i < last; i++) {
        const float *z = row_of(o->logits, i);
        size_t label = (size_t)o->labels[i];
        double log_sum = cpu->vector->log_sum_exp(classes, z);
        double mean = (double)cpu->vector->sum(classes, z) / (double)classes;
        double s = (double)o->smoothing;
        run->losses[i] = log_sum - (1.0 - s) * (double)z[label] - s * mean;
        if (o->dlogits.data == NULL)
            continue;
        float *dz = row_of(o->dlogits, i);
        for (size_t c = 0; c < classes; c++)
            dz[c] += share * ((float)exp((double)z[c] - log_sum) - uniform);
        dz[label] -= share * (1.0f - o->smoothing);
    }
}

status cpu_cross_entropy(struct backend *backend, const struct cross_entropy *o, struct error *error)
{
    struct cpu *cpu = cpu_of(backend);
    struct arena_mark mark = arena_mark(&cpu->scratch);
    struct cross_entropy_run run = {.o = o};
    void *memory;
    TRY(cpu_scratch(cpu, o->logits.rows * sizeof *run.losses, &memory, error));
    run.losses = memory;
    cpu_run_rows(cpu, o->logits.rows, 8 * o->logits.columns, cross_entropy_rows, &run);
    double total = 0;
    for (size_t i = 0; i < o->logits.rows; i++)
        total += run.losses[i];
    *o->loss += (float)((double)o->weight * total / (double)o->logits.rows);
    arena_release(&cpu->scratch, mark);
    return OK;
}

static void predict_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct predict *o = operation;
    for (size_t i = first; i < last; i++) {
        const float *z = row_of(o->logits, i);
        size_t best = 0;
        for (size_t c = 1; c < o->logits.columns; c++)
            if (z[c] > z[best])
                best = c;
        o->best[i] = cpu->vector->finite(o->logits.columns, z) ? (int32_t)best : -1;
    }
}

status cpu_predict(struct backend *backend, const struct predict *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->logits.rows, o->logits.columns, predict_rows, o);
    return OK;
}

static void squared_error_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    (void)cpu;
    const struct squared_error *o = operation;
    for (size_t i = first; i < last; i++) {
        const float *x = row_of(o->x, i), *y = row_of(o->y, i);
        double total = 0;
        for (size_t j = 0; j < o->x.columns; j++) {
            float difference = x[j] - y[j];
            total += (double)difference * (double)difference;
            if (o->dx.data != NULL)
                row_of(o->dx, i)[j] = o->scale * 2.0f * difference;
        }
        o->errors[i] = (float)(total / (double)o->x.columns);
    }
}

status cpu_squared_error(struct backend *backend, const struct squared_error *o, struct error *error)
{
    (void)error;
    cpu_run_rows(cpu_of(backend), o->x.rows, o->x.columns, squared_error_rows, o);
    return OK;
}
