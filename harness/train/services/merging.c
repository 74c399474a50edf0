#include "harness/train/services/merging.h"

#include <stdlib.h>

#include "adapters/merge/policies.h"
#include "adapters/routers/router.h"
#include "adapters/statistics.h"
#include "core/alloc.h"

/* An iteration that is left out takes back its selection counts, but not what its forward pass added to the others; and
 * nobody knows in time that the averaging of experts has to be left out with it. */
static status check_skipping(const struct method_run *run, struct error *error)
{
    enum { OF_FORWARD = NEEDS_PAIR_COUNTS | NEEDS_NEXT_COUNTS | NEEDS_PROBES | NEEDS_SIMILARITY };
    const struct merge_plan *plan = &run->model->settings.merge;
    bool after_steps = plan->policy->after_step != NULL, refused = after_steps || merge_needs(plan) & OF_FORWARD;
    for (size_t k = 0; refused && k < run->data->task_count; k++)
        if (run->data->tasks[k].settings.on_nan == ON_NAN_SKIP)
            return error_set(error, ERROR_ARGUMENT,
                             "training.on_nan=skip: merge policy %s with combiner %s %s every iteration, also of those "
                             "left out; set training.on_nan=stop",
                             plan->policy->name, plan->combiner->name,
                             after_steps ? "changes the experts after" : "looks at statistics of");
    return OK;
}

/* Equal groups go to the experts in their order, so that the last ones never get any of fewer samples. */
static status check_groups(const struct model *model, const struct task *task, struct error *error)
{
    const struct adapter_settings *s = &model->settings.adapter;
    size_t share = task->settings.batch / (model->settings.gpus > 1 ? model->settings.gpus : 1), texts, positions;
    model->head->texts(model, task, &texts, &positions);
    bool images = adapters_in_tower(model->adapters, TOWER_IMAGE) && share < s->experts,
         prompts = adapters_in_tower(model->adapters, TOWER_TEXT) && texts < s->experts;
    if (!images && !prompts)
        return OK;
    return error_set(
        error, ERROR_ARGUMENT,
        "%s: adapter.router %s cuts %zu %s into equal groups for %zu experts, so that the last of them would "
        "never train; lower adapter.experts, or set adapter.routing=per_token%s",
        task->settings.name, s->router->name, images ? share : texts, images ? "images of a batch" : "class prompts",
        s->experts, images ? "" : " or adapter.towers=image");
}

static status check_partitions(const struct method_run *run, struct error *error)
{
    const struct adapter_settings *s = &run->model->settings.adapter;
    for (size_t k = 0; router_kind_of(s)->averages && s->routing == ROUTING_PER_SAMPLE && k < run->data->task_count;
         k++)
        TRY(check_groups(run->model, &run->data->tasks[k], error));
    return OK;
}

static struct merge_call make_call(const struct method_run *run, const struct task *task, size_t iteration)
{
    const struct model *model = run->model;
    size_t before = 0, all = 0;
    for (size_t k = 0; k < run->data->task_count; k++) {
        before += k < task->index ? run->data->tasks[k].settings.iterations : 0;
        all += run->data->tasks[k].settings.iterations;
    }
    return (struct merge_call){.moment = iteration > 0 ? MERGE_AFTER_STEP : MERGE_AFTER_TASK,
                               .iteration = iteration,
                               .iterations = task->settings.iterations,
                               .before = before,
                               .all = all,
                               .epoch_length = task->settings.epoch_length,
                               .more = task->settings.iterations - task->settings.schedule_end,
                               .options = model->settings.merge.policy_options,
                               .rng = rng_make(model->seed, RNG_POLICY, (uint32_t)task->index, (uint32_t)iteration),
                               .state = ((struct merging *)run->state)->policy};
}

static status check_tasks(const struct method_run *run, struct error *error)
{
    const struct model *model = run->model;
    const struct merge_policy *policy = model->settings.merge.policy;
    for (size_t k = 0; policy->check != NULL && k < run->data->task_count; k++) {
        struct merge_call call = make_call(run, &run->data->tasks[k], 0);
        if (policy->check(&call, error) != OK)
            return error_context(error, "%s", run->data->tasks[k].settings.name);
    }
    return OK;
}

status merging_open(struct method_run *run, struct error *error)
{
    struct model *model = run->model;
    struct merging *state = run->state;
    const struct merge_plan *plan = &model->settings.merge;
    if (model->adapters == NULL)
        return OK;
    TRY(check_skipping(run, error));
    TRY(check_partitions(run, error));
    TRY(check_tasks(run, error));
    bool analysis = plan->analysis && plan->policy->plan != NULL;
    TRY(adapters_collect(model->adapters, merge_needs(plan) | (analysis ? NEEDS_PROBES : 0), run->memory, error));
    if (analysis && model->work.rank == 0)
        TRY(merge_effects_open(&state->effects, model, run->memory, error));
    if (plan->schedule->needs_loss)
        TRY(loss_mean_open(&state->loss, model, run->memory, error));
    if (plan->policy->state_size == 0)
        return OK;
    state->policy = xcalloc(1, plan->policy->state_size);
    return OK;
}

void merging_close(struct method_run *run)
{
    struct merging *state = run->state;
    free(state->policy);
    merge_effects_close(state->effects);
}

status merging_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct model *model = run->model;
    struct merging *state = run->state;
    const struct merge_plan *plan = &model->settings.merge;
    if (!resumed && model->adapters != NULL) {
        TRY(adapters_begin_task(model->adapters, task->index, error));
        state->schedule = (struct schedule_state){0};
        merge_effects_begin_task(state->effects);
        if (plan->schedule->needs_loss)
            TRY(loss_mean_clear(&state->loss, model, error));
    }
    return OK;
}

static status is_due(struct method_run *run, const struct task *task, size_t iteration, bool *due, struct error *error)
{
    struct model *model = run->model;
    struct merging *state = run->state;
    const struct merge_plan *plan = &model->settings.merge;
    struct schedule_call call = {.iteration = iteration,
                                 .iterations = task->settings.iterations,
                                 .every = plan->every,
                                 .least_fall = plan->least_fall,
                                 .state = &state->schedule};
    *due = false;
    if (plan->schedule->needs_loss) {
        TRY(loss_mean_add(&state->loss, model, error));
        if (iteration % plan->every != 0)
            return OK;
        TRY(loss_mean_take(&state->loss, model, &call.loss, error));
    }
    *due = plan->schedule->due != NULL && plan->schedule->due(&call);
    return OK;
}

/* iteration: of the merge; 0 in the call stands for the end of the task. */
static status merge(struct method_run *run, const struct merge_call *call, size_t iteration, struct error *error)
{
    struct model *model = run->model;
    struct merging *state = run->state;
    size_t first = run->changes.count;
    TRY(merge_effects_look(state->effects, run, iteration, error));
    TRY(adapters_merge(model->adapters, &model->settings.merge, call, &run->changes, error));
    return merge_effects_add(state->effects, run, iteration, first, error);
}

status merging_after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct model *model = run->model;
    const struct merge_plan *plan = &model->settings.merge;
    const struct merge_call call = make_call(run, task, iteration);
    bool due;
    if (model->adapters == NULL)
        return OK;
    TRY(merge_effects_step(((struct merging *)run->state)->effects, model, iteration, error));
    if (plan->policy->after_step != NULL)
        return plan->policy->after_step(model->adapters, &call, error);
    TRY(is_due(run, task, iteration, &due, error));
    return due ? merge(run, &call, iteration, error) : OK;
}

status merging_end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct model *model = run->model;
    const struct merge_call call = make_call(run, task, 0);
    size_t iterations = task->settings.iterations;
    if (model->adapters == NULL)
        return OK;
    TRY(merge(run, &call, iterations, error));
    TRY(merge_effects_end_task(((struct merging *)run->state)->effects, run, iterations, error));
    return adapters_freeze(model->adapters, &model->settings.freeze, call.rng, &run->changes, error);
}

status merging_keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    enum { DOUBLES = sizeof(struct schedule_state) / sizeof(double) };
    const struct merge_plan *plan = &run->model->settings.merge;
    struct merging *state = run->state;
    if (run->model->adapters == NULL)
        return OK;
    if (plan->schedule->needs_loss) {
        TRY(serializer_host(serializer, "schedule.state", SAFETENSOR_F64, DOUBLES, &state->schedule, error));
        TRY(loss_mean_keep(&state->loss, "schedule.loss", serializer, error));
    }
    TRY(merge_effects_keep(state->effects, serializer, error));
    if (plan->policy->state_size == 0)
        return OK;
    return serializer_host(serializer, "merge.state", SAFETENSOR_U8, plan->policy->state_size, state->policy, error);
}
