/* CoDyRA (Lu et al., "Adaptive Rank, Reduced Forgetting: Knowledge Retention in Continual Learning Vision-Language Models with Dynamic
 * Rank-Selective LoRA", ICLR 2026, arXiv 2412.01004). Task t trains a delta whose rows r have importances m_r; after it the delta is
 * merged into the weights, less the rows whose importance has become 0:
 *
 *     W + scale · Σ_{i<t} B_i A_i + scale · B_t diag(m) A_t,   m ~ N(0, 1) and B = 0 at the start
 *     after every update behind the dense iterations:  m ← sign(m) · max(|m| − κ, 0)
 *
 * κ rises from 0 to `sparsity` in `levels` even steps over the iterations that are not dense, as in the public code
 * (Artificer-AI-Lab/CoDyRA, c1691e4). There is no sparsity there at all where these iterations are fewer than the levels; here each
 * then has a level, and the last ones are not reached. What of the code is not followed: an importance between κ and 2 κ becomes 0
 * at once, since its lines see each other's results; a second loss of prompts against the images of the batch, where this has the
 * images' cross-entropy, as the other methods of a table; β₂ = 0.9999 in AdamW. */
#include "harness/methods/low_rank/co_dy_ra.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "sparsity", 0, 1e3, "0.005", "last threshold of the importances of a delta's rows; 0: none"),
    OPTION_NUMBER(REAL, "dense_share", 0, 1, "0.5",
                  "share of a task's iterations, the first ones, without a threshold"),
    OPTION_NUMBER(INTEGER, "levels", 2, 1e6, "50", "steps in which the threshold rises, the first of them 0"),
    {0}};

double co_dy_ra_threshold(const struct sparsity_rule *rule, size_t iteration, size_t iterations)
{
    double dense = rule->dense * (double)iterations,
           step = fmax(1, floor(((double)iterations - dense) / (double)rule->levels)), before = (double)iteration - 1;
    if (before <= dense)
        return 0;
    double rises = floor(before / step) - ceil(dense / step) + 1, last = (double)rule->levels - 1;
    return rule->most * fmin(rises, last) / last;
}

float co_dy_ra_shrink(float importance, float threshold)
{
    float left = fabsf(importance) - threshold;
    return copysignf(left < 0 ? 0 : left, importance); /* fmaxf would hide NaN */
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    TRY(deltas_begin_task(run->model->deltas, task->index, task->index, DELTA_A | DELTA_B | DELTA_MAGNITUDE, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

static status shrink(struct deltas *d, const struct delta_entry *e, size_t task, float threshold, float *importances,
                     struct error *error)
{
    TRY(deltas_read(d, e, DELTA_MAGNITUDE, task, importances, error));
    for (size_t r = 0; r < d->settings.rank; r++)
        importances[r] = co_dy_ra_shrink(importances[r], threshold);
    return deltas_write(d, e, DELTA_MAGNITUDE, task, importances, error);
}

/* Not after an update that was left out (training.on_nan). */
static status after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct deltas *d = run->model->deltas;
    struct backend *backend = run->model->backend;
    struct step_guard guard;
    const struct sparsity_rule rule = {.most = options_real(run->options, "sparsity"),
                                       .dense = options_real(run->options, "dense_share"),
                                       .levels = method_whole(run, "levels")};
    float threshold = (float)co_dy_ra_threshold(&rule, iteration, task->settings.iterations);
    if (!(threshold > 0))
        return OK;
    TRY(backend->ops->download(backend, &guard, run->model->guard, sizeof guard, error));
    if (guard.skip)
        return OK;
    OWNED float *importances = xmalloc(array_size(d->settings.rank, sizeof *importances));
    for (size_t i = 0; i < d->count; i++)
        TRY(shrink(d, &d->list[i], task->index, threshold, importances, error));
    return OK;
}

/* B's rows take their importances, which become 1: the merged product is what was trained. Returns the rows left. */
static status fold(struct deltas *d, const struct delta_entry *e, size_t task, size_t *left, struct error *error)
{
    size_t rank = d->settings.rank;
    OWNED float *importances = xmalloc(array_size(rank, sizeof *importances)),
                *b = xmalloc(array_size(rank, e->out * sizeof *b));
    TRY(deltas_read(d, e, DELTA_MAGNITUDE, task, importances, error));
    TRY(deltas_read(d, e, DELTA_B, task, b, error));
    for (size_t r = 0; r < rank; r++) {
        *left += importances[r] != 0;
        for (size_t o = 0; o < e->out; o++)
            b[r * e->out + o] *= importances[r];
        importances[r] = 1;
    }
    TRY(deltas_write(d, e, DELTA_B, task, b, error));
    return deltas_write(d, e, DELTA_MAGNITUDE, task, importances, error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct deltas *d = run->model->deltas;
    size_t left = 0;
    for (size_t i = 0; i < d->count; i++)
        TRY(fold(d, &d->list[i], task->index, &left, error));
    log_debug(run->model->log, "%zu of %zu ranks are left", left, d->count * d->settings.rank);
    return OK;
}

const struct method method_co_dy_ra = {
    .name = "co_dy_ra",
    .source = "CoDyRA, ICLR 2026",
    .formula = "W + scale · (Σ_{i<t} B_i A_i + B_t diag(m) A_t), task t trains B_t, A_t and m; after the first "
               "dense_share of its iterations each update is followed by m ← sign(m) · max(|m| − κ, 0), κ rising to "
               "sparsity; loss = cross-entropy",
    .options = options,
    .gate = &gate_importance,
    .trains = GROUP_DELTAS,
    .begin_task = begin_task,
    .after_step = after_step,
    .end_task = end_task};
