#include "harness/run/workload.h"

#include "harness/heads/class_features.h"
#include "harness/scenario/joint.h"
#include "harness/selectors/selectors.h"
#include "models/clip/cost.h"

/* --- Training --- */

/* Forward, and back to activations and weights; of deltas, whose products are small, to activations. */
static double passes_of(const struct run *run, enum tower tower)
{
    bool weights = run->model.groups & (tower == TOWER_IMAGE ? GROUP_IMAGE_TOWER : GROUP_TEXT_TOWER);
    return weights ? 3.0 : deltas_in_tower(run->model.deltas, tower) ? 2.0 : 1.0;
}

double workload_iteration(const struct run *run, const struct task *task)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    size_t texts, positions, batch = task->settings.batch;
    if (run->model.groups == GROUPS_NONE)
        return 0;
    run->model.head->texts(&run->model, task, &texts, &positions);
    if (run->model.groups & GROUP_ADAPTERS && !(run->model.groups & GROUPS_TOWERS))
        return cost_adapter_step(n, batch, texts, positions, &experts);
    if (run->model.groups & GROUP_PREFIXES) /* forward, and back through frozen weights */
        return 2.0 * (cost_images(n, batch) + cost_texts(n, texts, positions));
    return (run->model.groups & GROUP_ADAPTERS ? 3.0 * cost_image_experts(n, batch, &experts) : 0) +
           passes_of(run, TOWER_IMAGE) * cost_images(n, batch) +
           passes_of(run, TOWER_TEXT) * cost_texts(n, texts, positions);
}

/* A method's work besides iterations is divided evenly among tasks. */
double workload_training(const struct run *run, const struct task *task)
{
    struct method_cost own = {0};
    if (run->model.settings.method->cost != NULL)
        run->model.settings.method->cost(&run->method, &own);
    return (double)task->settings.iterations * workload_iteration(run, task) +
           own.operations / (double)(run->data.task_count - joint_first(&run->data, 0));
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
