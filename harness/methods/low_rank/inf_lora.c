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
#include <stdlib.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/train/services/layer_pass.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "share_first", 0, 1, "0.98",
                  "share of the energy of a layer's inputs that is protected after the first task"),
    OPTION_NUMBER(REAL, "share_last", 0, 1, "1", "share of the energy that is protected towards the last task"),
    OPTION_NUMBER(INTEGER, "pass_batches", 0, 1e9, "0",
                  "training batches of a pass over a task's images; 0: as many as they fill"),
    {0}};

static size_t batches(const struct method_run *run, const struct task *task)
{
    return method_whole(run, "pass_batches");
}

static status protect(struct method_run *run, const struct task *task, const struct layer_pass *pass,
                      struct error *error)
{
    struct designed *s = run->state;
    if (task == NULL)
        return OK;
    double first = options_real(run->options, "share_first"), last = options_real(run->options, "share_last"),
           share = first + (last - first) * (double)task->index / (double)run->data->task_count;
    for (size_t i = 0; i < pass->count; i++) {
        TRY(stop_check(run->model->stop, "inputs of layers were decomposed", error));
        TRY(subspace_extend(&s->spaces[i], pass->list[i].values, s->spaces[i].n, s->spaces[i].n, share, error));
    }
    return OK;
}

/* A of every matrix of a layer, from its covariance, which is overwritten. */
static status design(struct deltas *d, const struct subspace *space, const struct layer_sum *layer, size_t task,
                     struct error *error)
{
    size_t n = space->n, rank = d->settings.rank;
    SCOPED(svd_free) struct svd f = {0};
    OWNED float *a = xmalloc(array_size(rank, n * sizeof *a));
    subspace_remove(space, layer->values, n);
    TRY(svd_create(&f, layer->values, n, n, error));
    for (size_t r = 0; r < rank; r++)
        for (size_t k = 0; k < n; k++)
            a[r * n + k] = r < n ? (float)(f.u[k * n + r] / sqrt(3)) : 0;
    for (size_t i = 0; i < d->count; i++)
        if (d->list[i].linear == layer->linear)
            TRY(deltas_write(d, &d->list[i], DELTA_A, task, a, error));
    return OK;
}

static status start(struct method_run *run, const struct task *task, const struct layer_pass *pass, struct error *error)
{
    const struct designed *s = run->state;
    for (size_t i = 0; i < pass->count; i++) {
        TRY(stop_check(run->model->stop, "inputs of layers were decomposed", error));
        TRY(design(run->model->deltas, &s->spaces[i], &pass->list[i], task->index, error));
    }
    return OK;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    static const struct design rule = {.sets = 1,
                                       .inputs = LAYER_COVARIANCE,
                                       .starts = LAYER_COVARIANCE,
                                       .batches = batches,
                                       .protect = protect,
                                       .start = start};
    return designed_begin_task(run, task, resumed, &rule, error);
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return designed_keep(run, "inf_lora", serializer, error);
}

const struct method method_inf_lora = {
    .name = "inf_lora",
    .source = "Liang & Li, CVPR 2024",
    .formula = "W + scale · Σ_{i≤t} B_i A_i, task t trains B_t; A_t: the first singular vectors of the covariance "
               "of the layer's inputs outside the space of earlier tasks' inputs, / √3; loss = cross-entropy",
    .options = options,
    .counts_tasks = true, /* the share goes from first to last over all of them */
    .state_size = sizeof(struct designed),
    .trains = GROUP_DELTAS,
    .open = designed_open,
    .close = designed_close,
    .begin_task = begin_task,
    .keep = keep};
