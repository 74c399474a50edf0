#include <math.h>

#include "models/cpu/cpu.h"

/* loss += weight · Σ values / divisor */
static void add_loss(size_t n, const double *values, double divisor, float weight, float *loss)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += values[i];
    *loss += (float)((double)weight * total / divisor);
}

static size_t highest(size_t n, const float *x)
{
    size_t best = 0;
    for (size_t c = 1; c < n; c++)
        if (x[c] > x[best])
            best = c;
    return best;
}

struct cross_entropy_run {
    const struct cross_entropy *o;
    double *losses, *right; /* [rows]; right: 1 or 0 */
};

static void cross_entropy_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct cross_entropy_run *run = operation;
    const struct cross_entropy *o = run->o;
    size_t classes = o->logits.columns;
    float share = o->weight / (float)o->logits.rows, uniform = o->smoothing / (float)classes;
    for (size_t i = first; i < last; i++) {
        const float *z = row_of(o->logits, i);
        size_t label = (size_t)o->labels[i], other = o->others != NULL ? (size_t)o->others[i] : label;
        float part = o->others != NULL ? o->shares[i] : 1.0f;
        double right = (double)part * (double)z[label] + (1.0 - (double)part) * (double)z[other];
        double lse = cpu->vector->log_sum_exp(classes, z);
        double mean = (double)cpu->vector->sum(classes, z) / (double)classes;
        double s = (double)o->smoothing;
        run->losses[i] = lse - (1.0 - s) * right - s * mean;
        run->right[i] = highest(classes, z) == (part < 0.5f ? other : label);
        if (o->dlogits.data == NULL)
            continue;
        float *dz = row_of(o->dlogits, i);
        for (size_t c = 0; c < classes; c++)
            dz[c] += share * ((float)exp((double)z[c] - lse) - uniform);
        dz[label] -= share * (1.0f - o->smoothing) * part;
        dz[other] -= share * (1.0f - o->smoothing) * (1.0f - part);
    }
}

status cpu_cross_entropy(struct cpu *cpu, const struct cross_entropy *o, struct error *error)
{
    struct cross_entropy_run run = {.o = o};
    TRY(cpu_scratch(cpu, 2 * o->logits.rows * sizeof *run.losses, &run.losses, error));
    run.right = run.losses + o->logits.rows;
    cpu_run_rows(cpu, o->logits.rows, 8 * o->logits.columns, cross_entropy_rows, &run);
    add_loss(o->logits.rows, run.losses, (double)o->logits.rows, o->weight, o->loss);
    if (o->right != NULL) {
        add_loss(o->logits.rows, run.right, 1, 1, o->right);
        o->right[1] += (float)o->logits.rows;
    }
    return OK;
}

struct soft_run {
    const struct soft_cross_entropy *o;
    double *losses; /* [rows] */
    float *scratch; /* [rows, 2, columns]: both rows divided by the temperature */
};

static void soft_cross_entropy_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct soft_run *run = operation;
    const struct soft_cross_entropy *o = run->o;
    size_t columns = o->logits.columns;
    float share = o->weight / ((float)o->logits.rows * o->temperature);
    for (size_t i = first; i < last; i++) {
        float *z = run->scratch + 2 * i * columns, *t = z + columns;
        cpu->vector->scale(columns, 1.0f / o->temperature, row_of(o->logits, i), z);
        cpu->vector->scale(columns, 1.0f / o->temperature, row_of(o->targets, i), t);
        double log_z = cpu->vector->log_sum_exp(columns, z), log_t = cpu->vector->log_sum_exp(columns, t), loss = 0;
        float *dz = o->dlogits.data != NULL ? row_of(o->dlogits, i) : NULL;
        for (size_t c = 0; c < columns; c++) {
            double target = exp((double)t[c] - log_t);
            loss -= target * ((double)z[c] - log_z);
            if (dz != NULL)
                dz[c] += share * (float)(exp((double)z[c] - log_z) - target);
        }
        run->losses[i] = loss;
    }
}

status cpu_soft_cross_entropy(struct cpu *cpu, const struct soft_cross_entropy *o, struct error *error)
{
    struct soft_run run = {.o = o};
    TRY(cpu_scratch(cpu, o->logits.rows * sizeof *run.losses, &run.losses, error));
    TRY(cpu_scratch(cpu, 2 * o->logits.rows * o->logits.columns * sizeof *run.scratch, &run.scratch, error));
    cpu_run_rows(cpu, o->logits.rows, 32 * o->logits.columns, soft_cross_entropy_rows, &run);
    add_loss(o->logits.rows, run.losses, (double)o->logits.rows, o->weight, o->loss);
    return OK;
}

enum { PENALTY_CHUNK = 1 << 12 }; /* values summed in one go, whatever the number of threads */

struct penalty_run {
    const struct penalty *o;
    double *sums; /* [chunks] */
};

static void penalty_chunks(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct penalty_run *run = operation;
    const struct penalty *o = run->o;
    for (size_t chunk = first; chunk < last; chunk++) {
        size_t end = (chunk + 1) * PENALTY_CHUNK < o->n ? (chunk + 1) * PENALTY_CHUNK : o->n;
        double total = 0;
        for (size_t i = chunk * PENALTY_CHUNK; i < end; i++) {
            float importance = o->importance != NULL ? o->importance[i] : 1, moved = o->values[i] - o->anchor[i];
            total += (double)importance * (double)moved * (double)moved;
            o->gradients[i] += 2 * o->strength * importance * moved;
        }
        run->sums[chunk] = total;
    }
}

status cpu_penalty(struct cpu *cpu, const struct penalty *o, struct error *error)
{
    struct penalty_run run = {.o = o};
    size_t chunks = (o->n + PENALTY_CHUNK - 1) / PENALTY_CHUNK;
    TRY(cpu_scratch(cpu, chunks * sizeof *run.sums, &run.sums, error));
    cpu_run_rows(cpu, chunks, PENALTY_CHUNK, penalty_chunks, &run);
    add_loss(chunks, run.sums, 1, o->strength, o->loss);
    return OK;
}

CPU_ROWS(argmax, o->x.rows, o->x.columns)
{
    for (size_t i = first; i < last; i++) {
        const float *x = row_of(o->x, i);
        o->out[i] = cpu->vector->finite(o->x.columns, x) ? (int32_t)highest(o->x.columns, x) : -1;
    }
}

CPU_ROWS(squared_error, o->x.rows, o->x.columns)
{
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
