/* SD-LoRA (Wu et al., ICLR 2025, arXiv 2501.13198): a delta is a direction and a magnitude. Task t trains the direction of its own
 * delta, and the magnitudes of all deltas so far:
 *
 *     W + scale · (Σ_{i<t} m_i B_i A_i / (‖B_i‖ ‖A_i‖) + m_t B_t A_t),  ‖·‖ the Frobenius norm
 *
 * After a task its A and B are divided by their norms and its magnitude is multiplied by them, so that the model stays what it was.
 * The public code starts all magnitudes at 0.8 again in every task, with directions of norm 1, and has one magnitude per task for
 * all matrices together; here each matrix has its own, as in the paper's equations of a layer. */
#include <math.h>
#include <stdlib.h>

#include "adapters/deltas.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "magnitude", 1e-3, 1e3, "0.8", "magnitude with which a task's delta starts"), {0}};

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct deltas *d = run->model->deltas;
    float start = (float)options_real(run->options, "magnitude");
    TRY(deltas_begin_task(d, task->index, 0, DELTA_A | DELTA_B | DELTA_MAGNITUDE, error));
    for (size_t i = 0; !resumed && i < d->count; i++)
        TRY(deltas_write(d, &d->list[i], DELTA_MAGNITUDE, task->index, &start, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

/* Divides a half by its norm, which multiplies the magnitude; 0 stays. */
static status divide(struct deltas *d, const struct delta_entry *e, enum delta_part half, size_t task, float *magnitude,
                     struct error *error)
{
    size_t n = d->settings.rank * (half == DELTA_A ? e->in : e->out);
    OWNED float *values = xmalloc(array_size(n, sizeof *values));
    double norm = 0;
    TRY(deltas_read(d, e, half, task, values, error));
    for (size_t i = 0; i < n; i++)
        norm += (double)values[i] * (double)values[i];
    norm = norm > 0 ? sqrt(norm) : 1;
    for (size_t i = 0; i < n; i++)
        values[i] = (float)((double)values[i] / norm);
    *magnitude = (float)((double)*magnitude * norm);
    return deltas_write(d, e, half, task, values, error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct deltas *d = run->model->deltas;
    for (size_t i = 0; i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        float magnitude;
        TRY(deltas_read(d, e, DELTA_MAGNITUDE, task->index, &magnitude, error));
        TRY(divide(d, e, DELTA_A, task->index, &magnitude, error));
        TRY(divide(d, e, DELTA_B, task->index, &magnitude, error));
        TRY(deltas_write(d, e, DELTA_MAGNITUDE, task->index, &magnitude, error));
    }
    return OK;
}

const struct method method_sd_lora = {
    .name = "sd_lora",
    .source = "Wu et al., ICLR 2025",
    .formula =
        "W + scale · Σ_{i≤t} m_i B_i A_i; task t trains A_t, B_t and all m_i; after it A_t and B_t have norm 1; loss = "
        "cross-entropy",
    .options = options,
    .gate = &gate_magnitude,
    .trains = GROUP_DELTAS,
    .begin_task = begin_task,
    .end_task = end_task};
