/* MINGLE (Qiu et al., "Mixture of Null-Space Gated Low-Rank Experts for Test-Time Continual Model Merging", NeurIPS 2025, arXiv
 * 2505.11883): every task has an expert, a low-rank delta that is trained alone on the initial weights, and a linear gate of the token:
 *
 *     W + scale · Σ_{i≤t} (w_i · x + b_i) B_i A_i
 *
 * After its training an expert is separated from the sum of the earlier ones (mingle.h), and its gate is trained, from w ~ N(0, 0.01²)
 * and b = 0, to make the mixture answer as the expert alone: loss = mean −Σ softmax(alone / 2) log softmax(mixture / 2) over the classes
 * of the task, by Adam. The gradients of w lose their parts along the subspace of earlier tasks' inputs, the less the more they lie
 * there; it grows by the first `directions` singular vectors of the inputs' covariance with each task.
 *
 * The public code (zihuanqiu/MINGLE, 928ed62) adapts to the test: its gates and subspaces see unlabelled test images, five per class;
 * here they see the task's training images, without their labels, in training batches, and nothing is adapted in a test. There the
 * experts are cut from fine-tuned weights of the image tower by singular values, here they are trained as deltas, in the towers of
 * `delta`; their rank is delta.rank − 1, as the gate has the last row. There a gate's value is the mean over all tokens of a batch, so
 * that an answer depends on its batch; here each token has its own. There the gates' teacher is the fine-tuned model; here it is the
 * expert after its separation. Its line that would also take the diagonal from what an expert shares with the earlier ones changes a
 * copy, and is not followed. */
#include "harness/methods/low_rank/mingle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/rng.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"
#include "harness/train/batches.h"
#include "harness/train/guard.h"
#include "models/clip/cost.h"

static const struct option options[] = {
    OPTION_NUMBER(
        INTEGER, "gate_iterations", 1, 1e9, "50",
        "iterations of a task that train its gates, after those of its expert, and batches that show its directions"),
    OPTION_NUMBER(REAL, "gate_rate", 0, 1e3, "1e-4", "learning rate of the gates"),
    OPTION_NUMBER(INTEGER, "directions", 0, 4096, "3",
                  "directions of a task's inputs that the gates of later tasks avoid, in each layer"),
    OPTION_NUMBER(REAL, "relaxation", 0, 1e6, "1",
                  "factor of how much less a direction is avoided where gradients lie along it; 0: never less"),
    OPTION_NUMBER(REAL, "gate_memory", 0, 1, "0.99",
                  "factor of the running mean of how much gradients lie along a direction"),
    {0}};

/* --- One matrix --- */

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(double *to, const double *row, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++)
        to[i] += factor * row[i];
}

void mingle_constrain(const struct subspace *space, const struct gate_constraint *constraint, double *interference,
                      double *gradient)
{
    size_t rank = (size_t)space->rank, n = space->n;
    double norm = sqrt(dot(gradient, gradient, n)) + 1e-12;
    for (size_t k = 0; k < rank; k++) { /* orthonormal, so that one after the other is all at once */
        const double *u = space->basis + k * n;
        double along = dot(gradient, u, n);
        interference[k] = constraint->memory * interference[k] + (1 - constraint->memory) * fabs(along) / norm;
        add(gradient, u, n, -exp(-constraint->relaxation * interference[k]) * along);
    }
}

status mingle_extend(struct subspace *space, const double *matrix, size_t count, struct error *error)
{
    size_t n = space->n;
    OWNED double *copy = xmalloc(array_size(n, n * sizeof *copy));
    SCOPED(svd_free) struct svd f = {0};
    memcpy(copy, matrix, n * n * sizeof *copy);
    TRY(svd_create(&f, copy, n, n, error));
    for (size_t i = 0; i < count && i < n; i++) {
        space->basis = xrealloc(space->basis, array_size((size_t)space->rank + 1, n * sizeof *space->basis));
        double *u = space->basis + (size_t)space->rank * n;
        for (size_t r = 0; r < n; r++)
            u[r] = f.u[r * n + i];
        subspace_remove(space, u, 1);
        bool outside = sqrt(dot(u, u, n)) > 1e-6; /* else rounding */
        subspace_remove(space, u, 1);
        linear_unit(u, n);
        space->rank += outside;
    }
    return OK;
}

static size_t effective_rank(const double *s, size_t n)
{
    double sum = 0, entropy = 0;
    for (size_t i = 0; i < n; i++)
        sum += s[i];
    for (size_t i = 0; i < n; i++)
        entropy -= s[i] > 0 ? s[i] / sum * log(s[i] / sum) : 0;
    return sum > 0 ? (size_t)exp(entropy) : 0;
}

status mingle_separate(double *change, double *merged, size_t out, size_t in, struct error *error)
{
    size_t k = out < in ? out : in;
    SCOPED(svd_free) struct svd f = {0};
    TRY(svd_create(&f, merged, out, in, error));
    size_t shared = effective_rank(f.s, k);
    OWNED double *row = xmalloc(array_size(in, sizeof *row)), *lost = xcalloc(array_size(shared + 1, in), sizeof *lost);
    for (size_t i = 0; i < shared; i++) {
        memset(row, 0, in * sizeof *row);
        for (size_t o = 0; o < out; o++)
            add(row, change + o * in, in, f.u[o * k + i]);
        for (size_t j = 0; j < shared; j++)
            add(lost + i * in, f.vt + j * in, in, dot(row, f.vt + j * in, in));
    }
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < shared; i++)
            add(change + o * in, lost + i * in, in, -f.u[o * k + i]);
    return OK;
}

/* --- Experts --- */

enum { ALONE = 1, MIXTURE = 0 };

static status use(struct method_run *run, size_t task, int alone, unsigned parts, struct error *error)
{
    struct deltas *d = run->model->deltas;
    d->settings.gate_numbers[BY_INPUT_ALONE] = (float)alone;
    return deltas_use(d, task, alone ? task : 0, parts, error);
}

static size_t rank_of(const struct deltas *d)
{
    return d->settings.rank - 1; /* of an expert */
}

/* sum [out, in] += Bᵀ A of an expert */
static status add_expert(const struct deltas *d, const struct delta_entry *e, size_t task, double *sum,
                         struct error *error)
{
    size_t rank = d->settings.rank;
    OWNED float *a = xmalloc(array_size(rank, e->in * sizeof *a)), *b = xmalloc(array_size(rank, e->out * sizeof *b));
    TRY(deltas_read(d, e, DELTA_A, task, a, error));
    TRY(deltas_read(d, e, DELTA_B, task, b, error));
    for (size_t r = 0; r < rank_of(d); r++)
        for (size_t o = 0; o < e->out; o++)
            for (size_t i = 0; i < e->in; i++)
                sum[o * e->in + i] += (double)b[r * e->out + o] * (double)a[r * e->in + i];
    return OK;
}

/* A and B of an expert from the first singular values of change [out, in], which is overwritten; behind them the start of its gate. */
static status write_expert(const struct method_run *run, size_t entry, size_t task, double *change, struct error *error)
{
    struct deltas *d = run->model->deltas;
    const struct delta_entry *e = &d->list[entry];
    size_t rank = d->settings.rank, last = rank - 1, k = e->out < e->in ? e->out : e->in;
    OWNED float *a = xcalloc(array_size(rank, e->in), sizeof *a), *b = xcalloc(array_size(rank, e->out), sizeof *b);
    struct rng rng = rng_make(run->model->seed, RNG_ROUTER_NOISE, (uint32_t)task, (uint32_t)entry);
    SCOPED(svd_free) struct svd f = {0};
    TRY(svd_create(&f, change, e->out, e->in, error));
    for (size_t r = 0; r < last && r < k; r++) {
        for (size_t i = 0; i < e->in; i++)
            a[r * e->in + i] = (float)(f.s[r] * f.vt[r * e->in + i]);
        for (size_t o = 0; o < e->out; o++)
            b[r * e->out + o] = (float)f.u[o * k + r];
    }
    for (size_t i = 0; i < e->in; i++)
        a[last * e->in + i] = 0.01f * rng_normal(&rng, i);
    TRY(deltas_write(d, e, DELTA_A, task, a, error));
    return deltas_write(d, e, DELTA_B, task, b, error);
}

static status make_expert(struct method_run *run, size_t entry, size_t task, struct error *error)
{
    const struct deltas *d = run->model->deltas;
    const struct delta_entry *e = &d->list[entry];
    size_t n = array_size(e->out, e->in);
    OWNED double *change = xcalloc(n, sizeof *change), *merged = xcalloc(n, sizeof *merged);
    TRY(add_expert(d, e, task, change, error));
    for (size_t t = 0; t < task; t++)
        TRY(add_expert(d, e, t, merged, error));
    if (task > 0)
        TRY(mingle_separate(change, merged, e->out, e->in, error));
    return write_expert(run, entry, task, change, error);
}

/* --- Gates --- */

struct side {
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor features, units, norms, dunits, dfeatures;
};

/* Images and class prompts, in the memory of the step. */
static status encode(struct method_run *run, const struct batch *batch, enum tower tower, bool training,
                     struct side *side, struct error *error)
{
    struct model *model = run->model;
    struct backend *backend = model->backend;
    side->encoding = (struct encoding){.arena = run->step_memory,
                                       .training = training && deltas_in_tower(model->deltas, tower),
                                       .state = model->state};
    if (tower == TOWER_IMAGE)
        TRY(clip_encode_images(model->clip, &side->encoding, &batch->images, &side->pass, &side->features, error));
    else
        TRY(clip_encode_texts(model->clip, &side->encoding, &model->classes.texts, &side->pass, &side->features,
                              error));
    TRY(tensor_take(&side->units, run->step_memory, TENSOR_F32, "units", 2, side->features.shape, error));
    TRY(tensor_take(&side->norms, run->step_memory, TENSOR_F32, "norms", 1, side->features.shape, error));
    return backend->ops->normalize(
        backend,
        &(struct normalize){.x = matrix_of(&side->features), .y = matrix_of(&side->units), .norms = side->norms.data},
        error);
}

static status similarities(struct method_run *run, const struct batch *batch, bool training, struct side sides[TOWERS],
                           struct tensor *scores, struct error *error)
{
    struct backend *backend = run->model->backend;
    for (int t = 0; t < TOWERS; t++)
        TRY(encode(run, batch, (enum tower)t, training, &sides[t], error));
    TRY(tensor_take(scores, run->step_memory, TENSOR_F32, "similarities", 2,
                    (size_t[]){sides[TOWER_IMAGE].units.shape[0], sides[TOWER_TEXT].units.shape[0]}, error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_of(&sides[TOWER_IMAGE].units),
                                             .b = matrix_of(&sides[TOWER_TEXT].units),
                                             .transpose_b = true,
                                             .exact = true,
                                             .scale = run->model->logit_scale,
                                             .out = matrix_of(scores)},
                              error);
}

static status zeros_like(struct method_run *run, const struct tensor *like, struct tensor *zeros, struct error *error)
{
    struct backend *backend = run->model->backend;
    TRY(tensor_take(zeros, run->step_memory, TENSOR_F32, "gradient", 2, like->shape, error));
    return backend->ops->zero(backend, zeros->data, tensor_bytes(zeros), error);
}

static status backward(struct method_run *run, enum tower tower, struct side sides[TOWERS],
                       const struct tensor *dscores, struct error *error)
{
    struct backend *backend = run->model->backend;
    struct side *side = &sides[tower], *other = &sides[tower == TOWER_IMAGE ? TOWER_TEXT : TOWER_IMAGE];
    if (!side->encoding.training)
        return OK;
    TRY(zeros_like(run, &side->units, &side->dunits, error));
    TRY(zeros_like(run, &side->units, &side->dfeatures, error));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = matrix_of(dscores),
                                          .transpose_a = tower == TOWER_TEXT,
                                          .b = matrix_of(&other->units),
                                          .exact = true,
                                          .scale = run->model->logit_scale,
                                          .out = matrix_of(&side->dunits)},
                           error));
    TRY(backend->ops->normalize_backward(backend,
                                         &(struct normalize_backward){.y = matrix_of(&side->units),
                                                                      .dy = matrix_of(&side->dunits),
                                                                      .dx = matrix_of(&side->dfeatures),
                                                                      .norms = side->norms.data},
                                         error));
    return clip_encode_backward(run->model->clip, &side->encoding, &side->pass, &side->dfeatures, error);
}

/* Gradients of everything of the task in the mixture; model->loss is the loss. */
static status distill(struct method_run *run, size_t task, const struct batch *batch, struct error *error)
{
    struct model *model = run->model;
    struct side sides[TOWERS];
    struct tensor targets, scores, dscores;
    TRY(use(run, task, ALONE, 0, error));
    TRY(similarities(run, batch, false, sides, &targets, error));
    TRY(use(run, task, MIXTURE, DELTA_A | DELTA_B, error));
    TRY(similarities(run, batch, true, sides, &scores, error));
    TRY(zeros_like(run, &scores, &dscores, error));
    TRY(model->backend->ops->zero(model->backend, model->loss, sizeof *model->loss, error));
    TRY(model->backend->ops->soft_cross_entropy(model->backend,
                                                &(struct soft_cross_entropy){.logits = matrix_of(&scores),
                                                                             .targets = matrix_of(&targets),
                                                                             .dlogits = matrix_of(&dscores),
                                                                             .temperature = 2,
                                                                             .weight = 1,
                                                                             .loss = model->loss},
                                                error));
    TRY(backward(run, TOWER_IMAGE, sides, &dscores, error));
    return backward(run, TOWER_TEXT, sides, &dscores, error);
}

/* The gradients that are left are those of the task's gate: of w constrained, and of b. */
static status constrain(struct method_run *run, size_t entry, const struct subspace *space, double *interference,
                        struct error *error)
{
    struct deltas *d = run->model->deltas;
    struct backend *backend = run->model->backend;
    const struct delta_entry *e = &d->list[entry];
    const struct gate_constraint constraint = {.relaxation = options_real(run->options, "relaxation"),
                                               .memory = options_real(run->options, "gate_memory")};
    size_t last = rank_of(d);
    OWNED float *gradient = xmalloc(array_size(e->in, sizeof *gradient));
    float bias;
    OWNED double *g = xmalloc(array_size(e->in, sizeof *g));
    TRY(backend->ops->download(backend, gradient, e->delta->da + last * e->in, e->in * sizeof *gradient, error));
    TRY(backend->ops->download(backend, &bias, e->delta->db + last * e->out, sizeof bias, error));
    for (size_t i = 0; i < e->in; i++)
        g[i] = (double)gradient[i];
    mingle_constrain(space, &constraint, interference, g);
    for (size_t i = 0; i < e->in; i++)
        gradient[i] = (float)g[i];
    TRY(backend->ops->zero(backend, e->delta->da, last * e->in * sizeof *gradient, error));
    TRY(backend->ops->zero(backend, e->delta->db, (last + 1) * e->out * sizeof *gradient, error));
    TRY(backend->ops->upload(backend, e->delta->da + last * e->in, gradient, e->in * sizeof *gradient, error));
    return backend->ops->upload(backend, e->delta->db + last * e->out, &bias, sizeof bias, error);
}

/* interference: of the matrices one after the other, each as long as its layer's space has vectors */
static status gate_iteration(struct method_run *run, const struct task *task, struct batches *batches, size_t iteration,
                             double *interference, struct error *error)
{
    static const struct update_rule adam = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    const struct designed *s = run->state;
    struct model *model = run->model;
    const struct deltas *d = model->deltas;
    struct batch batch;
    TRY(stop_check(model->stop, "gates were trained", error));
    arena_reset(run->step_memory);
    TRY(batches_take(batches, &batch, error));
    TRY(model_set_step(model, task->index, iteration, options_real(run->options, "gate_rate"), error));
    TRY(distill(run, task->index, &batch, error));
    for (size_t i = 0, layer = 0; i < d->count; i++) {
        layer += i > 0 && d->list[i].linear != d->list[i - 1].linear;
        TRY(constrain(run, i, &s->spaces[layer], interference, error));
        interference += s->spaces[layer].rank;
    }
    TRY(parameters_step(d->parameters, model->state, &adam, error));
    batches_advance(batches);
    return OK;
}

/* By the leader alone, with whole batches. */
static status train_gates(struct method_run *run, const struct task *task, struct error *error)
{
    const struct designed *s = run->state;
    struct model *model = run->model;
    SCOPED(batches_close_at) struct batches *batches = NULL;
    size_t iterations = method_whole(run, "gate_iterations"), vectors = 0;
    for (size_t i = 0; i < s->count; i++)
        vectors += 3 * (size_t)s->spaces[i].rank; /* at most three matrices have it */
    TRY(parameters_reset(model->deltas->parameters, error));
    TRY(batches_open_whole(&batches, model, run->data, task, 0, iterations, error));
    OWNED double *interference = xcalloc(vectors + 1, sizeof *interference);
    for (size_t i = 0; i < iterations; i++)
        TRY(gate_iteration(run, task, batches, i, interference, error));
    if (guard_check(model, task, task->settings.iterations, error) == OK)
        return OK;
    return error_context(error, "method.gate_rate: %g, with which gates were trained, may be too high",
                         options_real(run->options, "gate_rate"));
}

/* --- Hooks --- */

static status open_mingle(struct method_run *run, struct error *error)
{
    if (run->model->settings.one_moment)
        return error_set(
            error, ERROR_ARGUMENT,
            "method.name: mingle trains its gates by Adam; training.optimizer is sgd for all tasks, expected "
            "adamw or lamb");
    return designed_open(run, error);
}

/* Of the task before, in the batches that trained its gates; here, where all ranks do their shares. */
static status find_directions(struct method_run *run, const struct task *before, struct error *error)
{
    struct designed *s = run->state;
    SCOPED(layer_pass_free) struct layer_pass pass = {0};
    TRY(use(run, before->index, MIXTURE, 0, error));
    TRY(layer_pass_run(&pass, run, before, LAYER_COVARIANCE, method_whole(run, "gate_iterations"), error));
    for (size_t i = 0; i < pass.count; i++) {
        TRY(stop_check(run->model->stop, "inputs of layers were decomposed", error));
        TRY(mingle_extend(&s->spaces[i], pass.list[i].values, method_whole(run, "directions"), error));
    }
    return OK;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    if (!resumed && task->index > 0)
        TRY(find_directions(run, &run->data->tasks[task->index - 1], error));
    TRY(use(run, task->index, ALONE, DELTA_A | DELTA_B, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    for (size_t i = 0; i < run->model->deltas->count; i++) {
        TRY(stop_check(run->model->stop, "experts were made", error));
        TRY(make_expert(run, i, task->index, error));
    }
    TRY(train_gates(run, task, error));
    return use(run, task->index, MIXTURE, 0, error);
}

/* A run that goes on from a shorter one (--extend) tests without end_task. */
static status evaluation_begin(struct method_run *run, struct error *error)
{
    const struct deltas *d = run->model->deltas;
    return d->list[0].delta->rows > 0 ? use(run, d->task, MIXTURE, 0, error) : OK;
}

/* Bytes kept of directions, and of one task the operations on the host; memory is that of decompositions and covariances. */
static void host_cost(const struct method_run *run, struct method_cost *cost)
{
    const struct deltas *d = run->model->deltas;
    double directions = (double)options_integer(run->options, "directions"), tasks = (double)run->data->task_count,
           covariances = 0, most = 0;
    for (size_t i = 0; i < d->count; i++) {
        double in = (double)d->list[i].in, out = (double)d->list[i].out;
        cost->operations += 44 * in * out * fmin(in, out);
        most = fmax(most, 8 * (5 * in * out + 4 * in * in));
        if (i > 0 && d->list[i].linear == d->list[i - 1].linear)
            continue;
        cost->operations += 22 * in * in * in;
        cost->kept += 8 * fmin(tasks * directions, in) * in;
        covariances += 8 * in * in;
    }
    cost->memory = most + covariances + cost->kept;
}

/* An iteration of the gates goes forward alone, forward and back in the mixture; a batch that shows directions goes forward. */
static void cost(const struct method_run *run, struct method_cost *cost)
{
    const struct model *model = run->model;
    const struct clip_dimensions *dimensions = &model->clip->dimensions;
    double iterations = (double)options_integer(run->options, "gate_iterations");
    host_cost(run, cost);
    cost->operations *= (double)run->data->task_count;
    for (size_t t = 0; t < run->data->task_count; t++) {
        const struct task *task = &run->data->tasks[t];
        size_t texts, positions;
        model->head->texts(model, task, &texts, &positions);
        cost->operations += iterations * (deltas_in_tower(model->deltas, TOWER_IMAGE) ? 4 : 3) *
                                cost_images(dimensions, task->settings.batch) +
                            iterations * (deltas_in_tower(model->deltas, TOWER_TEXT) ? 4 : 3) *
                                cost_texts(dimensions, texts, positions);
    }
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return designed_keep(run, "mingle", serializer, error);
}

const struct method method_mingle = {
    .name = "mingle",
    .source = "MINGLE, NeurIPS 2025",
    .formula =
        "W + scale · Σ_{i≤t} (w_i · x + b_i) B_i A_i; task t trains B_t A_t alone by cross-entropy, separates it "
        "from Σ_{i<t} B_i A_i, and trains w_t, b_t for gate_iterations, outside earlier tasks' inputs, to answer "
        "as W + scale · B_t A_t",
    .options = options,
    .gate = &gate_by_input,
    .state_size = sizeof(struct designed),
    .trains = GROUP_DELTAS,
    .open = open_mingle,
    .close = designed_close,
    .begin_task = begin_task,
    .end_task = end_task,
    .evaluation_begin = evaluation_begin,
    .cost = cost,
    .keep = keep};
