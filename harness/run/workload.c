#include "harness/run/workload.h"

#include <math.h>

#include "harness/heads/class_features.h"
#include "harness/heads/model.h"
#include "harness/scenario/data.h"
#include "harness/selectors/selector.h"
#include "models/clip/cost.h"

/* --- Training --- */

/* What a training step goes through. */
struct step {
    const struct clip_dimensions *n;
    struct cost_experts experts;
    size_t images, texts, positions;
};

static struct step step_of(const struct run *run, const struct task *task)
{
    const struct model *model = &run->model;
    struct step step = {.n = &model->clip->dimensions,
                        .experts = adapters_cost(&model->clip->dimensions, &model->settings.adapter),
                        .images = task->settings.batch};
    model->head->texts(model, task, &step.texts, &step.positions);
    return step;
}

static double step_bytes(const struct step *s, enum precision precision)
{
    return (double)cost_step_bytes(s->n, s->images, s->texts, s->positions, &s->experts, precision);
}

static double adapter_step(const struct step *s)
{
    return cost_adapter_step(s->n, s->images, s->texts, s->positions, &s->experts);
}

/* Forward, and back to activations and weights; of deltas, whose products are small, to activations. */
static double passes_of(const struct run *run, enum tower tower)
{
    bool weights = run->model.groups & (tower == TOWER_IMAGE ? GROUP_IMAGE_TOWER : GROUP_TEXT_TOWER);
    return weights ? 3.0 : deltas_in_tower(run->model.deltas, tower) ? 2.0 : 1.0;
}

double workload_iteration(const struct run *run, const struct task *task)
{
    unsigned groups = run->model.groups;
    if (groups == GROUPS_NONE)
        return 0;
    struct step s = step_of(run, task);
    double images = cost_images(s.n, s.images), texts = cost_texts(s.n, s.texts, s.positions);
    if (groups & GROUP_ADAPTERS && !(groups & GROUPS_TOWERS))
        return adapter_step(&s);
    if (groups & GROUP_PREFIXES) /* forward, and back through frozen weights */
        return 2.0 * (images + texts);
    return (groups & GROUP_ADAPTERS ? 3.0 * cost_image_experts(s.n, s.images, &s.experts) : 0) +
           passes_of(run, TOWER_IMAGE) * images + passes_of(run, TOWER_TEXT) * texts;
}

static struct method_cost method_cost(const struct run *run)
{
    struct method_cost own = {0};
    if (run->model.settings.method->cost != NULL)
        run->model.settings.method->cost(&run->method, &own);
    return own;
}

/* A method's work besides iterations is divided evenly among tasks. */
double workload_training(const struct run *run, const struct task *task)
{
    return (double)task->settings.iterations * workload_iteration(run, task) +
           method_cost(run).operations / (double)(run->data.task_count - joint_first(&run->data, 0));
}

/* Of the scores of blocks: their steps and batches, with adapters in all of them. */
static double scoring(const struct run *run)
{
    struct adapter_settings everywhere = run->model.settings.adapter;
    size_t most = 2 * everywhere.score_steps;
    double operations = 0;
    if (!(run->model.groups & GROUP_ADAPTERS) || everywhere.place.blocks.rule != BLOCKS_BY_SCORE)
        return 0;
    everywhere.place.blocks = (struct block_choice){.rule = BLOCKS_ALL};
    for (size_t k = 0; k < run->data.task_count; k++) {
        size_t iterations = run->data.tasks[k].settings.iterations;
        struct step step = step_of(run, &run->data.tasks[k]);
        step.experts = adapters_cost(step.n, &everywhere);
        operations += (double)(most < iterations ? most : iterations) * adapter_step(&step);
    }
    return operations;
}

/* --- Selectors --- */

double workload_selector(const struct run *run, const struct task *task)
{
    static const double alexnet = 1.4e9; /* of an image: 0.71 GMACs (torchvision) */
    const struct selector_settings *s = &run->model.settings.selector;
    const struct selector_kind *kind = s->kind;
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    if (!settings_select(&run->model.settings) || kind->route != ROUTE_BY_ERRORS || task->dataset == NULL)
        return 0;
    size_t all = dataset_size(task->dataset, SPLIT_TRAIN), held_out = all / 10, most = selector_most(s),
           used = all - held_out < most ? all - held_out : most;
    double rows = kind->before != NULL ? (double)(s->iterations * s->batch) : 0,
           step = 3 * 2 * 2.0 * (double)(n->image_width * s->code); /* an autoencoder's, per row */
    if (kind->features == FEATURES_PIXELS)
        return (rows + (double)held_out) * alexnet + rows * step;
    return cost_images(n, used + held_out) + rows * step;
}

/* --- Evaluation --- */

static double test_images(const struct run *run, size_t j)
{
    return (double)dataset_size(run->data.tasks[j].dataset, SPLIT_TEST);
}

/* The prompts of all templates. */
static double test_texts(const struct run *run, size_t j)
{
    size_t texts, positions;
    if (!run->model.head->of_texts)
        return 0;
    run->model.head->texts(&run->model, &run->data.tasks[j], &texts, &positions);
    return cost_texts(&run->model.clip->dimensions, class_prompts(&run->data.tasks[j]), positions);
}

double workload_zero_shot(const struct run *run, size_t j)
{
    if (!run->model.head->of_texts)
        return 0;
    return test_images(run, j) * cost_images(&run->model.clip->dimensions, 1) + test_texts(run, j);
}

/* Whether images of future tasks go through trained parameters, unlike through routers of their own tasks. */
static bool changes_later_tasks(const struct run *run)
{
    return run->model.groups & GROUPS_WEIGHTS || run->model.settings.adapter.tasks != run->data.task_count ||
           run->model.settings.selector.kind->route == ROUTE_ONE;
}

void workload_tested(const struct run *run, size_t checkpoint, size_t *first, size_t *end)
{
    bool alone = run->model.settings.method->alone, seen = run->model.settings.label_space == LABEL_SPACE_SEEN;
    *first = alone ? checkpoint : 0;
    *end = alone || seen ? checkpoint + 1 : run->data.task_count;
}

double workload_evaluation(const struct run *run, size_t checkpoint, size_t j)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    size_t first, end;
    workload_tested(run, checkpoint, &first, &end);
    bool kept = run->model.groups == GROUPS_NONE || (j > checkpoint && !changes_later_tasks(run));
    if (j < first || j >= end || kept)
        return 0;
    return test_images(run, j) *
               (cost_images(n, 1) + (run->model.groups & GROUP_ADAPTERS ? cost_image_experts(n, 1, &experts) : 0)) +
           test_texts(run, j);
}

/* --- The run --- */

static void add_task(const struct run *run, size_t k, double done[WORK_KINDS])
{
    const struct task *task = joint_or(&run->data, k);
    done[WORK_TRAINING] += workload_training(run, task);
    done[WORK_SELECTOR] += workload_selector(run, &run->data.tasks[k]);
    for (size_t j = 0; j < run->data.task_count; j++)
        done[WORK_EVALUATION] += workload_evaluation(run, k, j);
}

void workload_count(const struct run *run, size_t task, size_t iteration, struct progress_work *work)
{
    *work = (struct progress_work){0};
    for (size_t j = 0; j < run->data.task_count; j++)
        work->total[WORK_ZERO_SHOT] += workload_zero_shot(run, j);
    for (size_t k = joint_first(&run->data, 0); k < run->data.task_count; k++) {
        add_task(run, k, work->total);
        if (k < task)
            add_task(run, k, work->done);
    }
    if (task < run->data.task_count)
        work->done[WORK_TRAINING] += (double)iteration * workload_iteration(run, joint_or(&run->data, task));
}

/* --- Bytes --- */

/* Weights in bf16 beside those in f32: frozen ones of the run's model and of teachers, and on a GPU experts. */
static double copied_bytes(const struct run *run, size_t teachers)
{
    static const unsigned trained[TOWERS] = {GROUP_IMAGE_TOWER, GROUP_TEXT_TOWER};
    const struct model *model = &run->model;
    const struct clip_dimensions *n = &model->clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &model->settings.adapter);
    const struct cost_experts *above =
        model->groups & (GROUP_ADAPTERS | GROUP_DELTAS) ? &experts : NULL; /* gradients pass through the weights */
    size_t (*copied)(const struct clip_dimensions *, enum tower, const struct cost_experts *) =
        model->backend->asynchronous ? cost_rounded_bytes : cost_packed_bytes;
    double bytes = 0;
    if (model->backend->precision != PRECISION_BF16)
        return 0;
    for (int t = 0; t < TOWERS; t++)
        bytes += (double)(teachers * copied(n, (enum tower)t, NULL)) +
                 (model->groups & trained[t] ? 0 : (double)copied(n, (enum tower)t, above));
    if (model->groups & GROUP_ADAPTERS && model->backend->asynchronous)
        bytes += (double)adapters_rounded_bytes(n, &model->settings.adapter);
    return bytes;
}

/* The traffic of training, and the largest memory of a step or of an evaluation batch. */
static double add_steps(const struct run *run, struct estimate *estimate)
{
    const struct model *model = &run->model;
    const struct clip_dimensions *n = &model->clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &model->settings.adapter);
    double largest = (double)cost_evaluation_bytes(n, model->evaluation_batch, &experts);
    for (size_t k = joint_first(&run->data, 0); model->groups != GROUPS_NONE && k < run->data.task_count; k++) {
        const struct task *task = joint_or(&run->data, k);
        struct step step = step_of(run, task);
        largest = fmax(largest, step_bytes(&step, model->backend->precision));
        estimate->training_traffic += (double)task->settings.iterations * step_bytes(&step, PRECISION_F32);
    }
    return largest;
}

/* Memory and disk. A resume file within a task has the moments and the state of the method: a teacher, earlier weights. */
static void add_storage(const struct run *run, double largest, struct estimate *estimate)
{
    const struct settings *s = &run->model.settings;
    const struct method_cost own = method_cost(run);
    double trained = 4.0 * (double)trained_values(&run->model),
           weights = 4.0 * (double)cost_weights(&run->model.clip->dimensions), moments = s->one_moment ? 1 : 2,
           copies = run->model.groups == GROUPS_NONE ? 0 : 1 + moments, /* beside the values */
        kept = s->checkpoints == CHECKPOINTS_ALL ? (double)run->data.task_count : s->checkpoints == CHECKPOINTS_LAST,
           used = (double)run->model.memory.used;
    struct trained_group group; /* values beside those of the towers */
    for (size_t i = 0; trained_group_at(&run->model, i, &group); i++)
        if (group.parameters != run->model.clip->parameters)
            weights += 4.0 * (double)parameters_size(group.parameters);
    estimate->memory = used + own.memory + largest + copied_bytes(run, own.teachers);
    estimate->disk = trained * (kept + 1 + moments) + fmax(used - weights - copies * trained, 0) + own.kept;
}

struct estimate workload_estimate(const struct run *run)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    const struct cache_settings *cache = &run->model.settings.cache;
    struct progress_work work;
    struct estimate estimate = {0};
    workload_count(run, 0, 0, &work);
    estimate.training = scoring(run) + work.total[WORK_TRAINING];
    estimate.evaluation = work.total[WORK_ZERO_SHOT] + work.total[WORK_SELECTOR] + work.total[WORK_EVALUATION];
    estimate.evaluation_traffic =
        estimate.evaluation / cost_images(n, 1) * (double)cost_step_bytes(n, 1, 0, 0, &experts, PRECISION_F32);
    add_storage(run, add_steps(run, &estimate), &estimate);
    uint64_t limit =
        cache->memory_spare > 0 ? cache->memory_spare : cache->memory_limit; /* auto keeps half and spares half */
    estimate.cached_memory = cache->kind == CACHE_MEMORY ? (double)limit : 0;
    estimate.cached_disk = cache->kind == CACHE_DISK ? (double)cache->disk_limit : 0;
    return estimate;
}
