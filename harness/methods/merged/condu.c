/* ConDU (Gao et al., ICLR 2026, arXiv 2503.10705): every task is trained from the initial weights; the changes of the
 * earlier tasks are rebuilt from the unified one and unified anew with the task's (services/merged.h). Several models
 * answer: an image of a task that is given and trained goes through its rebuilt model. For any other image the scores of the
 * initial model and of the `votes` tasks' that are nearest to it are averaged; a task is as near as the nearest of its
 * class prototypes, by the cosine of the initial model's image features:
 *
 *     prototype_c = (mean of the normalised features of c's training images + features of c's name) / 2, normalised
 *
 * The public code (zhangzicong518/ConDU, 7fd32cf) evaluates the initial model after the first task, where this is the
 * task's; it takes randomly cropped images for the prototypes, and a name's features without normalising their mean over the
 * templates. The weights that are saved are θ_0 + unified, without the masks. */
#include "harness/methods/methods.h"
#include "harness/train/services/merged.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/class_features.h"
#include "harness/train/image_pass.h"
#include "models/clip/cost.h"

enum task_choice { TASK_AUTO, TASK_GIVEN, TASK_UNKNOWN };

static const struct option options[] = {
    MERGED_TRAIN,
    OPTION_ONE_OF("task", "auto|given|unknown", "auto",
                  "whether the data name the task of a test image, if it was trained; auto: where it is compared with "
                  "the classes of its task alone"),
    OPTION_NUMBER(INTEGER, "votes", 0, SETTINGS_TASKS, "4",
                  "tasks whose models answer with the initial one where none is given"),
    {0}};

struct condu {
    struct merged merged; /* θ_0 and θ_t; its rule keeps nothing */
    struct unified unified;
    float *prototypes; /* [classes of all tasks, embed] */
    size_t shown;      /* the model that `delta` rebuilds: task + 1; 0: θ_0 + unified */
};

/* --- Unifying --- */

/* The earlier tasks' as rebuilt, then the one of the task that was trained. */
static void read_change(const void *context, size_t task, size_t first, size_t count, float *out)
{
    const struct condu *s = context;
    if (task < (size_t)s->merged.tasks)
        unified_rebuild(&s->unified, task, first, count, out);
    for (size_t i = 0; task == (size_t)s->merged.tasks && i < count; i++)
        out[i] = merged_change(&s->merged, first + i);
}

static status add(struct method_run *run, struct error *error)
{
    struct condu *s = run->state;
    const struct merged *m = &s->merged;
    OWNED size_t *ends = xmalloc(array_size(m->tensors + 1, sizeof *ends));
    for (size_t k = 0; k < m->tensors; k++)
        ends[k] = m->tensor[k].first + m->tensor[k].parameter->size;
    return unified_fit(&s->unified, (size_t)m->tasks + 1, ends, m->tensors, read_change, s, error);
}

static void delta(const struct merged *m, size_t first, size_t n, float *out)
{
    const struct condu *s = (const struct condu *)m;
    if (s->shown > 0)
        unified_rebuild(&s->unified, s->shown - 1, first, n, out);
    else
        memcpy(out, s->unified.values + first, n * sizeof *out);
}

/* --- Prototypes --- */

/* to += weight · row / ‖row‖ */
static void add_normalised(float *to, const float *row, size_t width, double weight)
{
    double square = 0;
    for (size_t k = 0; k < width; k++)
        square += (double)row[k] * (double)row[k];
    for (size_t k = 0; k < width && square > 0; k++)
        to[k] += (float)(weight * (double)row[k] / sqrt(square));
}

static status add_images(struct method_run *run, const struct task *task, float *sums, struct error *error)
{
    SCOPED(frozen_rows_free) struct frozen_rows rows = {0};
    OWNED size_t *counts = xcalloc(dataset_classes(task->dataset) + 1, sizeof *counts);
    TRY(frozen_rows_read(&rows, run, task, error));
    for (size_t i = 0; i < rows.n; i++)
        counts[(size_t)rows.labels[i] - rows.first]++;
    for (size_t i = 0; i < rows.n; i++) {
        size_t class = (size_t)rows.labels[i] - rows.first;
        add_normalised(sums + class * rows.width, rows.features + i * rows.width, rows.width,
                       1.0 / (double)counts[class]);
    }
    return OK;
}

/* The number of the first task's classes, of the first two's, … */
static size_t classes_of(const struct data *data, size_t tasks)
{
    size_t classes = 0;
    for (size_t k = 0; k < tasks; k++)
        classes += dataset_classes(data->tasks[k].dataset);
    return classes;
}

/* The model has its initial weights. */
static status learn_prototypes(struct method_run *run, const struct task *task, struct error *error)
{
    size_t embed = run->model->clip->dimensions.embed, classes = dataset_classes(task->dataset);
    const struct condu *s = run->state;
    OWNED float *sums = NULL;
    float *prototypes = s->prototypes + classes_of(run->data, task->index) * embed;
    TRY(class_features_host(run->model, task, &sums, error));
    TRY(add_images(run, task, sums, error));
    memset(prototypes, 0, classes * embed * sizeof *prototypes);
    for (size_t c = 0; c < classes; c++)
        add_normalised(prototypes + c * embed, sums + c * embed, embed, 1);
    return OK;
}

/* nearness [n, tasks so far]: of each task's nearest prototype, up to a positive factor per image */
static status find_nearness(struct method_run *run, const float *features, size_t n, float *nearness,
                            struct error *error)
{
    const struct condu *s = run->state;
    size_t embed = run->model->clip->dimensions.embed, tasks = s->unified.tasks, classes = classes_of(run->data, tasks);
    OWNED float *dots = xmalloc(array_size(n, classes * sizeof *dots));
    TRY(model_products(run->model, features, n, s->prototypes, classes, embed, dots, error));
    for (size_t t = 0; t < tasks; t++)
        for (size_t i = 0; i < n; i++) {
            const float *row = dots + i * classes;
            float *nearest = &nearness[i * tasks + t];
            *nearest = -INFINITY;
            for (size_t c = classes_of(run->data, t); c < classes_of(run->data, t + 1); c++)
                *nearest = fmaxf(*nearest, row[c]);
        }
    return OK;
}

/* --- Hooks --- */

static status open_models(struct method_run *run, struct error *error)
{
    static const struct merge_rule rule = {.add = add, .delta = delta};
    struct condu *s = run->state;
    TRY(merged_open(run, &rule, error));
    s->prototypes = xcalloc(classes_of(run->data, run->data->task_count),
                            run->model->clip->dimensions.embed * sizeof *s->prototypes);
    return unified_open(&s->unified, s->merged.n, error);
}

static void close_models(struct method_run *run)
{
    struct condu *s = run->state;
    unified_close(&s->unified);
    free(s->prototypes);
    merged_close(run);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    TRY(merged_end_task(run, task, error));
    TRY(merged_set(run, 0, NULL, error));
    return learn_prototypes(run, task, error);
}

static status evaluation_model(struct method_run *run, size_t model, struct error *error)
{
    struct condu *s = run->state;
    s->shown = model;
    return merged_set(run, 1, model > 0 ? delta : NULL, error);
}

static status evaluation_begin(struct method_run *run, struct error *error)
{
    struct condu *s = run->state;
    s->shown = 0;
    return merged_set(run, 1, delta, error);
}

static status evaluation_end(struct method_run *run, struct error *error)
{
    return merged_set(run, 0, NULL, error);
}

/* Where the classes of all tasks compete, a task that is given would tell part of the answer. */
static bool gives_tasks(const struct method_run *run)
{
    enum task_choice choice = (enum task_choice)options_choice(run->options, "task");
    return choice == TASK_GIVEN || (choice == TASK_AUTO && run->model->settings.label_space == LABEL_SPACE_TASK);
}

/* The `votes` nearest tasks of an image; ties: the earlier one. */
static void elect(const float *nearness, size_t tasks, size_t votes, uint8_t *elected)
{
    for (size_t v = 0; v < votes && v < tasks; v++) {
        size_t best = tasks;
        for (size_t t = 0; t < tasks; t++)
            if (!elected[t] && (best == tasks || nearness[t] > nearness[best]))
                best = t;
        elected[best] = 1;
    }
}

static status vote(struct method_run *run, const struct task *task, const float *features, size_t n, uint8_t *votes,
                   struct error *error)
{
    const struct condu *s = run->state;
    size_t tasks = s->unified.tasks, models = tasks + 1, most = method_whole(run, "votes");
    bool given = gives_tasks(run) && task->index < tasks;
    memset(votes, 0, n * models);
    for (size_t i = 0; i < n; i++)
        votes[i * models + (given ? 1 + task->index : 0)] = 1;
    if (given || features == NULL)
        return OK;
    OWNED float *nearness = xmalloc(array_size(n, tasks * sizeof *nearness));
    TRY(find_nearness(run, features, n, nearness, error));
    for (size_t i = 0; i < n; i++)
        elect(nearness + i * tasks, tasks, most, votes + i * models + 1);
    return OK;
}

/* Besides both models: the unified change, masks and prototypes; and the images that more than one model sees. */
static void cost(const struct method_run *run, struct method_cost *cost)
{
    const struct condu *s = run->state;
    const struct clip_dimensions *d = &run->model->clip->dimensions;
    size_t tasks = run->data->task_count, votes = method_whole(run, "votes");
    merged_cost(run, cost);
    cost->kept = (double)s->merged.n * (sizeof *s->unified.values + (double)tasks / 8) +
                 (double)classes_of(run->data, run->data->task_count) * (double)(d->embed * sizeof *s->prototypes);
    cost->memory += cost->kept;
    for (size_t k = 0; k < tasks; k++)
        for (size_t j = 0; j < tasks; j++) {
            size_t more = gives_tasks(run) && j <= k ? 0 : k + 1 < votes ? k + 1 : votes;
            cost->operations += (double)more * cost_images(d, dataset_size(run->data->tasks[j].dataset, SPLIT_TEST));
        }
    for (size_t j = 0; j < tasks; j++)
        cost->operations += cost_images(d, dataset_size(run->data->tasks[j].dataset, SPLIT_TRAIN));
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct condu *s = run->state;
    TRY(merged_keep(run, serializer, error));
    if (run->model->work.rank > 0 || s->merged.tasks == 0)
        return OK;
    size_t rows = classes_of(run->data, (size_t)s->merged.tasks);
    TRY(unified_keep(&s->unified, (size_t)s->merged.tasks, serializer, error));
    return serializer_host(serializer, "condu.prototypes", SAFETENSOR_F32, rows * run->model->clip->dimensions.embed,
                           s->prototypes, error);
}

const struct method method_condu = {
    .name = "condu",
    .source = "ConDU, ICLR 2026",
    .formula =
        "τ_t = θ_t − θ_0, θ_t trained from θ_0; u = s · max_t |τ_t| of sign s = sign Σ τ_t, per entry; task t is "
        "answered by θ_0 + r_t · [τ_t · s > 0] · u, others by the mean of θ_0 and the `votes` nearest tasks",
    .options = options,
    .state_size = sizeof(struct condu),
    .one_delta = true,
    .groups = merged_groups,
    .open = open_models,
    .close = close_models,
    .begin_task = merged_begin_task,
    .end_task = end_task,
    .evaluation_begin = evaluation_begin,
    .evaluation_model = evaluation_model,
    .evaluation_end = evaluation_end,
    .vote = vote,
    .cost = cost,
    .keep = keep};
