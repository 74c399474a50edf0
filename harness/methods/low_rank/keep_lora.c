/* KeepLoRA (Luo et al., "KeepLoRA: Continual Learning with Residual Gradient Adaptation", ICLR 2026, arXiv 2601.19659): low-rank
 * deltas with a fixed A, in directions of the task's gradient that neither the pre-trained weight nor the inputs of earlier
 * tasks use. Per matrix:
 *
 *     before the first task   U = the weight's first left singular vectors, of a share weight_share_* of its energy
 *     before each task        A, B = the first vectors of the gradient without U (keep_lora.h), the mean over a pass; the start
 *                             scale · Bᵀ A is subtracted from W, so that the model computes as before, and B is trained
 *     after each task         U grows by the inputs F of the layer until it covers feature_share of their energy
 *
 * Followed from the public code (MaolinLuo/KeepLoRA, MTIL/) where the paper leaves it open: the vectors of a weight are those on
 * the side of its outputs, so that matrices are square; F is a mean over the batches of a pass, position by position, not over
 * their products; passes take the full batches of an epoch. What differs: the code decomposes the gradient at random,
 * approximately; its prompts have 77 positions, here as many as the longest of the task needs; in the last block, inputs of the
 * output are those of the tokens that become features, the others having no effect; rows of A for which the gradient has no
 * direction left outside U are 0, where the code's may lie in U; its learning rate follows OneCycleLR.
 *
 * A task has two sets of rows: the start with −B, which is merged, and those that are trained. */
#include "harness/methods/low_rank/keep_lora.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/train/services/layer_pass.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "weight_share_image", 0.001, 1, "0.85",
                  "share of the energy of a weight of the image tower that is protected"),
    OPTION_NUMBER(REAL, "weight_share_text", 0.001, 1, "0.2",
                  "share of the energy of a weight of the text tower that is protected"),
    OPTION_NUMBER(REAL, "feature_share", 0.001, 1, "0.99",
                  "share of the energy of a layer's inputs that is protected after a task"),
    {0}};

/* --- The arithmetic of a matrix --- */

status keep_lora_start(const struct subspace *space, const double *gradient, size_t out, size_t in, size_t rank,
                       float *a, float *b, struct error *error)
{
    SCOPED(svd_free) struct svd f = {0};
    size_t k = in < out ? in : out;
    OWNED double *g = xmalloc(array_size(in, out * sizeof *g));
    double squares = 0;
    for (size_t i = 0; i < in * out; i++) {
        g[i] = gradient[i % out * in + i / out];
        squares += g[i] * g[i];
    }
    subspace_remove(space, g, out);
    TRY(svd_create(&f, g, in, out, error));
    for (size_t r = 0; r < rank; r++) {
        bool there = r < k && f.s[r] > 1e-6 * sqrt(squares); /* the rest is rounding of f32, or lies in U */
        for (size_t i = 0; i < in; i++)
            a[r * in + i] = there ? (float)f.u[i * k + r] : 0;
        for (size_t j = 0; j < out; j++)
            b[r * out + j] = there ? (float)(f.s[r] * f.vt[r * out + j]) : 0;
    }
    return OK;
}

/* F Fᵀ = Q diag(s²) Qᵀ, and F' = Q diag(s) */
status keep_lora_inputs(double *products, size_t n, struct error *error)
{
    SCOPED(svd_free) struct svd f = {0};
    TRY(svd_create(&f, products, n, n, error));
    for (size_t i = 0; i < n * n; i++)
        products[i] = f.u[i] * sqrt(f.s[i % n]);
    return OK;
}

/* --- State --- */

static status check(const struct settings *settings, struct error *error)
{
    const unsigned mlp = 1U << DELTA_FC | 1U << DELTA_PROJ;
    return settings->delta.matrices & mlp
               ? error_set(error, ERROR_ARGUMENT,
                           "suite: delta.matrices: keep_lora needs square matrices; leave out fc and proj")
               : OK;
}

static status open_state(struct method_run *run, struct error *error)
{
    struct designed *s = run->state;
    const struct deltas *d = run->model->deltas;
    *s = (struct designed){.count = d->count, .spaces = xcalloc(d->count, sizeof *s->spaces)};
    for (size_t i = 0; i < d->count; i++)
        s->spaces[i].n = d->list[i].in;
    return OK;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return designed_keep(run, "keep_lora", serializer, error);
}

/* --- Tasks --- */

static size_t batches(const struct method_run *run, const struct task *task)
{
    size_t full = dataset_size(task->dataset, SPLIT_TRAIN) / task->settings.batch;
    return full > 0 ? full : 1;
}

static double *sum_of(const struct layer_pass *pass, const struct delta_entry *e)
{
    for (size_t i = 0; i < pass->count; i++)
        if (pass->list[i].linear == e->linear)
            return pass->list[i].values;
    return NULL;
}

static status protect_weights(struct method_run *run, struct error *error)
{
    struct designed *s = run->state;
    const struct deltas *d = run->model->deltas;
    for (size_t i = 0; i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        size_t n = array_size(e->out, e->in);
        double share = options_real(run->options, e->tower == TOWER_IMAGE ? "weight_share_image" : "weight_share_text");
        OWNED float *weight = xmalloc(array_size(n, sizeof *weight));
        OWNED double *wide = xmalloc(array_size(n, sizeof *wide));
        TRY(stop_check(run->model->stop, "weights were decomposed", error));
        TRY(deltas_read_weight(d, e, weight, error));
        for (size_t k = 0; k < n; k++)
            wide[k] = (double)weight[k];
        TRY(subspace_extend(&s->spaces[i], wide, e->out, e->in, share, error));
    }
    return OK;
}

static status protect(struct method_run *run, const struct task *task, const struct layer_pass *pass,
                      struct error *error)
{
    struct designed *s = run->state;
    const struct deltas *d = run->model->deltas;
    if (task == NULL)
        return protect_weights(run, error);
    for (size_t i = 0; i < pass->count; i++) {
        TRY(stop_check(run->model->stop, "inputs of layers were decomposed", error));
        TRY(keep_lora_inputs(pass->list[i].values, pass->list[i].columns, error));
    }
    for (size_t i = 0; i < d->count; i++) {
        TRY(stop_check(run->model->stop, "inputs of layers were decomposed", error));
        TRY(subspace_extend(&s->spaces[i], sum_of(pass, &d->list[i]), d->list[i].in, d->list[i].in,
                            options_real(run->options, "feature_share"), error));
    }
    return OK;
}

/* Both sets of the task's rows of a matrix. */
static status start_matrix(struct deltas *d, const struct delta_entry *e, const struct subspace *space,
                           const double *gradient, size_t task, struct error *error)
{
    size_t rank = d->settings.rank, n = array_size(rank, e->out);
    OWNED float *a = xmalloc(array_size(rank, e->in * sizeof *a)), *b = xmalloc(array_size(n, sizeof *b));
    TRY(keep_lora_start(space, gradient + e->delta->first * e->in, e->out, e->in, rank, a, b, error));
    for (size_t set = 2 * task; set < 2 * task + 2; set++)
        TRY(deltas_write(d, e, DELTA_A, set, a, error));
    TRY(deltas_write(d, e, DELTA_B, 2 * task + 1, b, error));
    for (size_t k = 0; k < n; k++)
        b[k] = -b[k];
    return deltas_write(d, e, DELTA_B, 2 * task, b, error);
}

/* The model is as it was: B of the task's rows is still 0. */
static status start(struct method_run *run, const struct task *task, const struct layer_pass *pass, struct error *error)
{
    const struct designed *s = run->state;
    struct deltas *d = run->model->deltas;
    for (size_t i = 0; i < d->count; i++) {
        TRY(stop_check(run->model->stop, "gradients were decomposed", error));
        TRY(start_matrix(d, &d->list[i], &s->spaces[i], sum_of(pass, &d->list[i]), task->index, error));
    }
    return OK;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    static const struct design rule = {.sets = 2,
                                       .inputs = LAYER_INPUTS,
                                       .starts = LAYER_GRADIENT,
                                       .batches = batches,
                                       .protect = protect,
                                       .start = start};
    return designed_begin_task(run, task, resumed, &rule, error);
}

const struct method method_keep_lora = {
    .name = "keep_lora",
    .source = "Luo et al., ICLR 2026",
    .formula = "W + scale · Σ_{i≤t} (B_i − start of B_i) A_i, task t trains B_t; A_t, start of B_t: the first "
               "vectors of the task's gradient outside U; U: those of the weight up to weight_share_image or "
               "weight_share_text and of each task's inputs up to feature_share; loss = cross-entropy",
    .options = options,
    .two_deltas = true,
    .state_size = sizeof(struct designed),
    .trains = GROUP_DELTAS,
    .check = check,
    .open = open_state,
    .close = designed_close,
    .begin_task = begin_task,
    .keep = keep};
