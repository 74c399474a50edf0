/* SEED (Rypeść et al., "Divide and not forget: Ensemble of selectively trained experts in Continual Learning", ICLR 2024, arXiv
 * 2401.10191): `experts` image towers, and every task trains one. An expert has a Gaussian N(μ, Σ) of its features for each class
 * that came since its first task (services/gaussians.h), of the training images and the same mirrored.
 *
 *     task t < experts    expert t, which starts as expert 0 after its first task;  loss = CE
 *     later               the expert with the greatest mean KL(N_a ‖ N_b) over pairs a, b of the task's classes, in Gaussians made
 *                         before the training: where they overlap least;  loss = (1 − alpha) · CE + alpha · mean (f − f_before)²
 *     score of class c    mean over the experts that know c of softmax over the classes they know of log N(f; μ, Σ) / temperature
 *
 * f are the features of the task's images, before a linear layer of the task's classes that is dropped after it. With shared_blocks n
 * the embedding and the first n blocks of all experts are one, trained in the first task and frozen then; the paper counts
 * convolutions of a ResNet.
 *
 * The public code (grypesc/SEED, 538dcc1) has a schedule of its own, with fewer epochs, for the later tasks, where this has the
 * suite's; layers that start at random, not at 0; float32 for the Gaussians, whose ridge, once raised, stays so for the classes that
 * follow. shrinkage is not there: 64 features of a ResNet are fewer than images of a class, those of a transformer are not.
 *
 * Tasks that were not trained have no classes: with evaluation.label_space: task all of theirs score 0. The weights that are saved
 * are those of the expert that was trained last; all experts are in the resume file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/train/image_pass.h"
#include "harness/train/services/gaussians.h"
#include "harness/train/trainer.h"
#include "models/clip/cost.h"
#include "models/vit.h"

enum { EXPERTS_MOST = 64 };

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "experts", 1, EXPERTS_MOST, "5", "number of image towers, at most one per task"),
    OPTION_NUMBER(INTEGER, "shared_blocks", 0, CLIP_BLOCKS_MOST, "0",
                  "first blocks that all experts share, with the embedding; 0: nothing"),
    OPTION_NUMBER(REAL, "alpha", 0, 1, "0.99", "share of the distillation of features in the loss of later tasks"),
    OPTION_NUMBER(REAL, "temperature", 1e-3, 1e6, "3", "temperature of the softmax of log-likelihoods"),
    OPTION_NUMBER(REAL, "ridge", 1e-30, 1e6, "1e-8",
                  "least addition to the variances of a class, tenfold until it is enough"),
    OPTION_NUMBER(REAL, "shrinkage", 0, 1, "0", "share of the mean variance in a class's covariance"),
    {0}};

struct expert {
    float *values;    /* of the tower, on the host */
    float *gaussians; /* of the classes since its first task, [gaussian_values] each */
};

struct state {
    struct expert experts[EXPERTS_MOST];
    int32_t count, current, tasks; /* experts that were trained; the one of the task; tasks learned */
    size_t shown;                  /* the expert that answers */
    struct gaussian_rule rule;
    struct threads *pool;
    struct clip *before; /* the expert as it was */
    const float *ones;   /* device [batch], of the task */
};

static struct parameters *tower_of(const struct method_run *run)
{
    return run->model->clip->parameters;
}

static size_t most_experts(const struct method_run *run)
{
    size_t most = method_whole(run, "experts");
    return most < run->data->task_count ? most : run->data->task_count;
}

/* Number of the first class of a task; of all classes for the one after the last. */
static size_t first_class(const struct method_run *run, size_t task)
{
    return task < run->data->task_count ? data_first_class(run->data, &run->data->tasks[task]) : run->data->class_count;
}

static status show(struct method_run *run, size_t expert, struct error *error)
{
    struct state *s = run->state;
    struct backend *backend = run->model->backend;
    s->shown = expert;
    return backend->ops->upload(backend, parameters_write_all(tower_of(run)), s->experts[expert].values,
                                tower_of(run)->values_count * sizeof(float), error);
}

static void *take(size_t count, size_t size)
{
    return xcalloc(array_size(count, size) + 1, 1);
}

/* --- Gaussians --- */

static status fit_class(const struct state *s, const struct frozen_rows *rows, size_t class, float *gaussian,
                        struct error *error)
{
    OWNED float *own = take(rows->n, rows->width * sizeof *own);
    size_t n = frozen_rows_of_class(rows, class, own);
    return n > 0 ? gaussian_fit(gaussian, &s->rule, own, n, s->pool, error)
                 : error_set(error, ERROR_ARGUMENT,
                             "method.name: seed learns a class from its training images, but one has none");
}

/* Of the task's classes in the features of the expert that is shown. */
static status fit_task(struct method_run *run, const struct task *task, float *gaussians, struct error *error)
{
    const struct state *s = run->state;
    SCOPED(frozen_rows_free) struct frozen_rows rows = {0};
    TRY(frozen_rows_read(&rows, run, task, error));
    TRY(frozen_rows_mirror(&rows, run, task, error));
    for (size_t c = rows.first; c < rows.classes; c++)
        TRY(fit_class(s, &rows, c, gaussians + (c - rows.first) * gaussian_values(rows.width), error));
    return threads_check(s->pool, "classes were learned", error);
}

/* The first of equal ones. */
static status choose(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    size_t classes = dataset_classes(task->dataset);
    OWNED float *gaussians = take(classes, gaussian_values(s->rule.width) * sizeof *gaussians);
    double best = -INFINITY;
    for (int32_t e = 0; e < s->count; e++) {
        TRY(show(run, (size_t)e, error));
        TRY(fit_task(run, task, gaussians, error));
        double apart = gaussian_mean_divergence(gaussians, classes, s->rule.width);
        if (apart > best) {
            best = apart;
            s->current = e;
        }
    }
    log_debug(run->model->log, "expert %d is trained", (int)s->current);
    return OK;
}

/* --- Training --- */

/* The flag of a tower that is not there is off. */
static status freeze_shared(struct method_run *run, bool frozen, struct error *error)
{
    struct parameters *group = tower_of(run);
    size_t blocks = method_whole(run, "shared_blocks");
    for (size_t i = 0; i < group->count; i++)
        if (clip_is_first(group->list[i].name, blocks))
            TRY(parameters_govern(group, &group->list[i], frozen ? CLIP_FLAG_TEXT : CLIP_FLAG_IMAGE, error));
    return OK;
}

static status open_experts(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    struct clip *clip = run->model->clip;
    struct vit_settings settings = vit_settings_of(clip);
    TRY(clip_check_first(clip, method_whole(run, "shared_blocks"), "method.shared_blocks", error));
    s->rule = (struct gaussian_rule){.width = model_feature_width(run->model),
                                     .ridge = options_real(run->options, "ridge"),
                                     .shrinkage = options_real(run->options, "shrinkage")};
    TRY(threads_create(&s->pool, run->model->settings.threads, error));
    return vit_create(&s->before, clip->backend, run->memory, &settings, PARAMETERS_FROZEN, error);
}

static void close_experts(struct method_run *run)
{
    struct state *s = run->state;
    for (size_t e = 0; e < EXPERTS_MOST; e++) {
        free(s->experts[e].values);
        free(s->experts[e].gaussians);
    }
    clip_destroy(s->before);
    threads_destroy(s->pool);
}

/* The expert of the task in the model, and a copy of it. */
static status take_expert(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    struct linear_head *head = run->model->head_state;
    struct backend *backend = run->model->backend;
    if (task->index >= most_experts(run))
        TRY(choose(run, task, error));
    else
        s->current = (int32_t)task->index;
    if (task->index > 0)
        TRY(show(run, task->index < most_experts(run) ? 0 : (size_t)s->current, error));
    TRY(backend->ops->zero(backend, parameters_write_all(head->parameters),
                           head->parameters->values_count * sizeof(float), error));
    return trained_groups_reset(run->model, error);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct state *s = run->state;
    struct backend *backend = run->model->backend;
    size_t batch = task->settings.batch;
    struct tensor ones;
    threads_obey(s->pool, run->model->stop);
    if (!resumed)
        TRY(take_expert(run, task, error));
    if (task->index >= most_experts(run))
        TRY(backend->ops->upload(backend, parameters_write_all(s->before->parameters), s->experts[s->current].values,
                                 s->before->parameters->values_count * sizeof(float), error));
    OWNED float *values = take(batch, sizeof *values);
    for (size_t i = 0; i < batch; i++)
        values[i] = 1;
    TRY(tensor_take(&ones, run->task_memory, TENSOR_F32, "ones", 1, &batch, error));
    TRY(backend->ops->upload(backend, ones.data, values, tensor_bytes(&ones), error));
    s->ones = ones.data;
    return freeze_shared(run, task->index > 0, error);
}

/* dfeatures += the gradient of weight · mean (features − old)², which joins the loss. */
static status distill(struct method_run *run, const struct tensor *features, const struct tensor *old, float weight,
                      const struct tensor *dfeatures, struct error *error)
{
    const struct state *s = run->state;
    struct backend *backend = run->model->backend;
    size_t n = features->shape[0], width = features->shape[1];
    struct tensor errors, gradient;
    TRY(tensor_take(&errors, run->step_memory, TENSOR_F32, "changes of features", 1, &n, error));
    TRY(tensor_take(&gradient, run->step_memory, TENSOR_F32, "their gradient", 2, features->shape, error));
    TRY(backend->ops->squared_error(backend,
                                    &(struct squared_error){.x = matrix_of(features),
                                                            .y = matrix_of(old),
                                                            .dx = matrix_of(&gradient),
                                                            .scale = weight / (float)(n * width),
                                                            .errors = errors.data},
                                    error));
    TRY(backend->ops->weighted_sum(backend,
                                   &(struct weighted_sum){.count = 2,
                                                          .n = n * width,
                                                          .inputs = {dfeatures->data, gradient.data},
                                                          .weights = {1, 1},
                                                          .out = dfeatures->data},
                                   error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_rows(errors.data, 1, n),
                                             .b = matrix_rows((float *)s->ones, n, 1),
                                             .exact = true,
                                             .scale = weight / (float)n,
                                             .accumulate = true,
                                             .out = matrix_rows(run->model->loss, 1, 1)},
                              error);
}

static status loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error)
{
    const struct state *s = run->state;
    struct model *model = run->model;
    struct encoding encoding, plain = {.arena = run->step_memory};
    struct tower_pass pass, other;
    struct tensor features, old;
    float share = (float)batch->count / (float)batch->total, alpha = (float)options_real(run->options, "alpha");
    struct head_batch scored = {.features = &features,
                                .labels = &batch->labels,
                                .smoothing = task->settings.smoothing,
                                .weight = share * (1 - alpha)};
    if (task->index < most_experts(run))
        return classification_loss(run, task, batch, error);
    if (batch->count == 0)
        return OK;
    TRY(clip_encode_images(s->before, &plain, &batch->images, &other, &old, error));
    trained_encoding(model, TOWER_IMAGE, model->routers, &encoding);
    encoding.first = batch->first;
    TRY(clip_encode_images(model->clip, &encoding, &batch->images, &pass, &features, error));
    TRY(model->head->loss(model, &model->classes, &scored, error));
    TRY(distill(run, &features, &old, share * alpha, &scored.dfeatures, error));
    return clip_encode_backward(model->clip, &encoding, &pass, &scored.dfeatures, error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    struct backend *backend = run->model->backend;
    struct expert *trained = &s->experts[s->current];
    size_t values = tower_of(run)->values_count, each = gaussian_values(s->rule.width);
    if (trained->values == NULL) {
        trained->values = take(values, sizeof *trained->values);
        s->count = s->current + 1;
    }
    TRY(backend->ops->download(backend, trained->values, tower_of(run)->values, values * sizeof(float), error));
    for (int32_t e = 0; e < s->count; e++) {
        size_t first = first_class(run, (size_t)e), before = first_class(run, task->index) - first,
               after = first_class(run, task->index + 1) - first;
        float **gaussians = &s->experts[e].gaussians;
        *gaussians = xrealloc(*gaussians, array_size(after, each * sizeof **gaussians));
        TRY(show(run, (size_t)e, error));
        TRY(fit_task(run, task, *gaussians + before * each, error));
    }
    s->tasks = (int32_t)task->index + 1;
    return show(run, (size_t)s->current, error);
}

/* --- Answers --- */

static status vote(struct method_run *run, const struct task *task, const float *features, size_t n, uint8_t *votes,
                   struct error *error)
{
    const struct state *s = run->state;
    size_t models = (size_t)s->tasks + 1;
    for (size_t i = 0; i < n * models; i++)
        votes[i] = i % models > 0 && i % models <= (size_t)s->count;
    return OK;
}

static status evaluation_model(struct method_run *run, size_t model, struct error *error)
{
    return show(run, model - 1, error);
}

static status evaluation_begin(struct method_run *run, struct error *error)
{
    const struct state *s = run->state;
    return show(run, (size_t)s->current, error);
}

/* Experts that know a class. */
static size_t knowing(const struct method_run *run, size_t class)
{
    const struct state *s = run->state;
    size_t experts = 0;
    while (experts < (size_t)s->count && first_class(run, experts) <= class)
        experts++;
    return experts;
}

/* Of the expert that is shown, which knows the columns from..end. */
static status scores(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                     float *out, struct error *error)
{
    const struct state *s = run->state;
    size_t column = frozen_classes_column(run, task), first = first_class(run, s->shown),
           learned = first_class(run, (size_t)s->tasks), from = first > column ? first - column : 0,
           end = learned > column ? learned - column : 0, each = gaussian_values(s->rule.width);
    end = end < classes ? end : classes;
    memset(out, 0, n * classes * sizeof *out);
    if (from >= end)
        return OK;
    OWNED double *shares = take(n, (end - from) * sizeof *shares);
    threads_obey(s->pool, run->model->stop);
    gaussian_posteriors(s->experts[s->shown].gaussians + (column + from - first) * each, end - from, s->rule.width,
                        options_real(run->options, "temperature"), features, n, s->pool, shares);
    for (size_t i = 0; i < n; i++)
        for (size_t c = from; c < end; c++)
            out[i * classes + c] = (float)(shares[i * (end - from) + c - from] / (double)knowing(run, column + c));
    return threads_check(s->pool, "experts scored images", error);
}

/* --- State --- */

/* Passes over training images to choose and to learn, and tests by more than one expert. */
static void cost(const struct method_run *run, struct method_cost *cost)
{
    const struct state *s = run->state;
    const struct clip_dimensions *d = &run->model->clip->dimensions;
    size_t experts = most_experts(run), tasks = run->data->task_count;
    *cost = (struct method_cost){.teachers = 1, .kept = (double)experts * 4 * (double)tower_of(run)->values_count};
    for (size_t e = 0; e < experts; e++)
        cost->kept +=
            4 * (double)gaussian_values(s->rule.width) * (double)(run->data->class_count - first_class(run, e));
    cost->memory = cost->kept;
    for (size_t k = 0; k < tasks; k++) {
        size_t now = k + 1 < experts ? k + 1 : experts;
        cost->operations += (double)(k < experts ? 2 * now : 4 * now) *
                            cost_images(d, dataset_size(run->data->tasks[k].dataset, SPLIT_TRAIN));
        for (size_t j = 0; j <= k; j++)
            cost->operations +=
                (double)(now - 1) * cost_images(d, dataset_size(run->data->tasks[j].dataset, SPLIT_TEST));
    }
}

static status keep_expert(struct method_run *run, size_t e, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    struct expert *expert = &s->experts[e];
    size_t values = tower_of(run)->values_count,
           gaussians = gaussian_values(s->rule.width) * (first_class(run, (size_t)s->tasks) - first_class(run, e));
    char name[2][32];
    snprintf(name[0], sizeof *name, "seed.values%zu", e);
    snprintf(name[1], sizeof *name, "seed.gaussians%zu", e);
    if (!serializer->saving) {
        expert->values = xrealloc(expert->values, array_size(values, sizeof *expert->values));
        expert->gaussians = xrealloc(expert->gaussians, array_size(gaussians, sizeof *expert->gaussians));
    }
    TRY(serializer_host(serializer, name[0], SAFETENSOR_F32, values, expert->values, error));
    return serializer_host(serializer, name[1], SAFETENSOR_F32, gaussians, expert->gaussians, error);
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    TRY(serializer_host(serializer, "seed.experts", SAFETENSOR_I32, 1, &s->count, error));
    TRY(serializer_host(serializer, "seed.current", SAFETENSOR_I32, 1, &s->current, error));
    TRY(serializer_host(serializer, "seed.tasks", SAFETENSOR_I32, 1, &s->tasks, error));
    for (int32_t e = 0; e < s->count; e++)
        TRY(keep_expert(run, (size_t)e, serializer, error));
    return OK;
}

const struct method method_seed = {.name = "seed",
                                   .source = "SEED, ICLR 2024",
                                   .formula = "a task trains one of `experts` towers, that of the greatest mean KL "
                                              "between the Gaussians of its classes; loss = (1 − alpha) "
                                              "· cross-entropy + alpha · mean (f − f_before)²; score = mean over "
                                              "experts of softmax of log N(f; μ, Σ) / temperature",
                                   .options = options,
                                   .counts_tasks = true, /* as many experts at most */
                                   .own_classes = true,
                                   .head = "linear",
                                   .loss_repeats = true,
                                   .state_size = sizeof(struct state),
                                   .trains = GROUP_IMAGE_TOWER | GROUP_HEAD,
                                   .open = open_experts,
                                   .close = close_experts,
                                   .begin_task = begin_task,
                                   .loss = loss,
                                   .end_task = end_task,
                                   .vote = vote,
                                   .evaluation_begin = evaluation_begin,
                                   .evaluation_model = evaluation_model,
                                   .scores = scores,
                                   .cost = cost,
                                   .keep = keep};
