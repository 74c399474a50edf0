/* InfLoRA (Liang & Li, CVPR 2024, arXiv 2404.00228). Before a task, A of every matrix is designed and then frozen, and B is trained
 * from 0; afterwards the delta is merged into the weight:
 *
 *     C = Σ x xᵀ over the inputs of the layer in a pass over the task's batches
 *     A = the first `rank` left singular vectors of C − U Uᵀ C, as rows, / √3
 *     after the task: U grows by the inputs of the trained model until it covers the share ε_t of C's energy
 *     ε_t = share_first + (share_last − share_first) · t / tasks
 *
 * The paper calls B what its code, like this one, calls A. The code keeps the complement of U where that is smaller (DualGPM), which
 * is the same subspace and rule. It takes the passes by ordinary training batches, as is done here, over an epoch each; the pass
 * that ends a task is made when the next one begins, on all ranks. The paper has an image tower alone; in a text tower the inputs
 * of padding count, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/svd.h"
#include "harness/heads/trained.h"
#include "harness/methods/methods.h"
#include "harness/train/services/layer_pass.h"
#include "harness/train/services/subspace.h"

static const struct option options[] = {
    {.name = "share_first",
     .type = OPTION_REAL,
     .minimum = 0,
     .maximum = 1,
     .fallback = "0.98",
     .help = "share of the energy of a layer's inputs that is protected after the first task"},
    {.name = "share_last",
     .type = OPTION_REAL,
     .minimum = 0,
     .maximum = 1,
     .fallback = "1",
     .help = "share of the energy that is protected towards the last task"},
    {.name = "pass_batches",
     .type = OPTION_INTEGER,
     .minimum = 0,
     .maximum = 1e9,
     .fallback = "0",
     .help = "training batches of a pass over a task's images; 0: as many as they fill"},
    {0}};

struct state {
    size_t layers;
    struct subspace *spaces; /* [layers], in the order of struct layer_pass */
};

static status open_state(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    const struct deltas *d = run->model->deltas;
    (void)error;
    s->spaces = xcalloc(d->count, sizeof *s->spaces);
    for (size_t i = 0; i < d->count; i++)
        if (i == 0 || d->list[i].linear != d->list[i - 1].linear)
            s->spaces[s->layers++].n = d->list[i].in;
    return OK;
}

static void close_state(struct method_run *run)
{
    struct state *s = run->state;
    for (size_t i = 0; i < s->layers; i++)
        subspace_free(&s->spaces[i]);
    free(s->spaces);
}

static status pass_of(struct layer_pass *pass, struct method_run *run, const struct task *task, struct error *error)
{
    return layer_pass_run(pass, run, task, LAYER_COVARIANCE, (size_t)options_integer(run->options, "pass_batches"),
                          error);
}

static status protect(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    double first = options_real(run->options, "share_first"), last = options_real(run->options, "share_last"),
           share = first + (last - first) * (double)task->index / (double)run->data->task_count;
    struct layer_pass pass;
    status result = OK;
    TRY(deltas_begin_task(run->model->deltas, task->index, task->index, 0, error));
    TRY(pass_of(&pass, run, task, error));
    for (size_t i = 0; result == OK && i < pass.count; i++)
        result = subspace_extend(&s->spaces[i], pass.list[i].values, s->spaces[i].n, s->spaces[i].n, share, error);
    layer_pass_free(&pass);
    return result;
}

/* A of every matrix of a layer, from its covariance, which is overwritten. */
static status design(struct deltas *d, const struct subspace *space, const struct layer_sum *layer, size_t task,
                     struct error *error)
{
    size_t n = space->n, rank = d->settings.rank;
    double *u = xmalloc(array_size(n, n * sizeof *u)), *s = xmalloc(n * sizeof *s),
           *vt = xmalloc(array_size(n, n * sizeof *vt));
    float *a = xmalloc(array_size(rank, n * sizeof *a));
    subspace_remove(space, layer->values, n);
    status result = svd(layer->values, n, n, u, s, vt, error);
    for (size_t r = 0; result == OK && r < rank; r++)
        for (size_t k = 0; k < n; k++)
            a[r * n + k] = r < n ? (float)(u[k * n + r] / sqrt(3)) : 0;
    for (size_t i = 0; result == OK && i < d->count; i++)
        if (d->list[i].linear == layer->linear)
            result = deltas_write(d, &d->list[i], DELTA_A, task, a, error);
    free(a);
    free(vt);
    free(s);
    free(u);
    return result;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct state *s = run->state;
    struct deltas *d = run->model->deltas;
    struct layer_pass pass;
    status result = OK;
    if (resumed)
        return deltas_begin_task(d, task->index, task->index, DELTA_B, error);
    if (task->index > 0)
        TRY(protect(run, &run->data->tasks[task->index - 1], error));
    TRY(deltas_begin_task(d, task->index, task->index, 0, error));
    TRY(pass_of(&pass, run, task, error));
    for (size_t i = 0; result == OK && i < pass.count; i++)
        result = design(d, &s->spaces[i], &pass.list[i], task->index, error);
    layer_pass_free(&pass);
    NEXT(result, deltas_begin_task(d, task->index, task->index, DELTA_B, error));
    NEXT(result, trained_groups_reset(run->model, error));
    return result;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    for (size_t i = 0; i < s->layers; i++) {
        char name[64];
        snprintf(name, sizeof name, "inf_lora.%zu", i);
        TRY(subspace_keep(&s->spaces[i], s->spaces[i].n, name, serializer, error));
    }
    return OK;
}

const struct method method_inf_lora = {
    .name = "inf_lora",
    .source = "Liang & Li, CVPR 2024",
    .formula =
        "W + scale · Σ_{i≤t} B_i A_i, of which task t trains B_t; A_t: the first singular vectors of the covariance "
        "of the layer's inputs outside the space of earlier tasks' inputs, / √3; loss = cross-entropy",
    .options = options,
    .state_size = sizeof(struct state),
    .groups = groups_deltas,
    .open = open_state,
    .close = close_state,
    .begin_task = begin_task,
    .keep = keep};
