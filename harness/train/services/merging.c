#include "harness/train/services/merging.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "adapters/routers/router.h"
#include "adapters/statistics.h"
#include "core/alloc.h"

/* --- The mean of the loss --- */

enum { SUM, COUNT, ONE, SUMS };

status loss_mean_open(struct loss_mean *mean, const struct model *model, struct arena *arena, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, TENSOR_F32, "sums of the loss", 1, (size_t[]){SUMS}, error));
    mean->sums = memory.data;
    return loss_mean_clear(mean, model, error);
}

status loss_mean_clear(const struct loss_mean *mean, const struct model *model, struct error *error)
{
    const float empty[SUMS] = {[ONE] = 1};
    return model->backend->ops->upload(model->backend, mean->sums, empty, sizeof empty, error);
}

static status add(const struct loss_mean *mean, const struct model *model, const float *value, int to,
                  struct error *error)
{
    return model->backend->ops->multiply(model->backend,
                                         &(struct multiply){.n = 1,
                                                            .a = value,
                                                            .b = mean->sums + ONE,
                                                            .out = mean->sums + to,
                                                            .accumulate = true,
                                                            .guard = model->guard},
                                         error);
}

status loss_mean_add(const struct loss_mean *mean, const struct model *model, struct error *error)
{
    TRY(add(mean, model, model->loss, SUM, error));
    return add(mean, model, mean->sums + ONE, COUNT, error);
}

status loss_mean_take(const struct loss_mean *mean, const struct model *model, double *loss, struct error *error)
{
    float sums[SUMS];
    TRY(model->backend->ops->download(model->backend, sums, mean->sums, sizeof sums, error));
    *loss = sums[COUNT] > 0 ? (double)sums[SUM] / (double)sums[COUNT] : (double)NAN;
    return loss_mean_clear(mean, model, error);
}

status loss_mean_keep(const struct loss_mean *mean, const char *name, const struct serializer *serializer,
                      struct error *error)
{
    return serializer_device(serializer, name, SAFETENSOR_F32, SUMS, mean->sums, error);
}

/* --- Effects of merges ---
 *
 * How often the merged expert is chosen in the EFFECT_WINDOW iterations that follow (fewer where the task ends), the mean
 * loss before and after, and the distance of the merged expert's function from its sources'. The measurement does not
 * change any result. Losses and selection counts are copied on the device when a window ends, and read at the next merge
 * or at the end of the task, so that iterations without a merge wait for nothing. The effects read are added to
 * run->effects. */

/* A merge whose window is open, or closed but not read yet. The struct has no padding, so it is saved as it is. */
struct watched {
    uint64_t iteration, tower, block, position, target;
    int64_t chosen, choices; /* of the target, and of all experts of the block, when it was merged */
    double loss_before, distance;
};

/* Device memory for the ends of windows, indexed by (iteration of the merge) mod EFFECT_WINDOW. A slot is read before
 * the next merge that uses it. */
struct merge_effects {
    float *losses;           /* [EFFECT_WINDOW], iteration i at i mod EFFECT_WINDOW */
    float *after;            /* [EFFECT_WINDOW, EFFECT_WINDOW]: losses at the end of a window */
    int32_t *counts[TOWERS]; /* [EFFECT_WINDOW, blocks · E] */
    size_t all[TOWERS];      /* blocks · E */
    size_t experts;
    int32_t *host[TOWERS]; /* host [2 · blocks · E] */
    size_t count;
    struct watched *watched; /* in the order of their iterations */
};

static status take(struct arena *arena, const struct model *model, enum tensor_type type, size_t n, void **data,
                   struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, type, "effects of merges", 1, &n, error));
    *data = memory.data;
    return model->backend->ops->zero(model->backend, memory.data, tensor_bytes(&memory), error);
}

/* Losses of earlier iterations without this analysis are unknown, not 0. */
static status forget_losses(const struct merge_effects *m, const struct model *model, struct error *error)
{
    float losses[EFFECT_WINDOW];
    for (size_t i = 0; i < EFFECT_WINDOW; i++)
        losses[i] = NAN;
    return model->backend->ops->upload(model->backend, m->losses, losses, sizeof losses, error);
}

/* On the leader; needs NEEDS_PROBES. */
static status merge_effects_open(struct merge_effects **effects, const struct model *model, struct arena *arena,
                                 struct error *error)
{
    struct merge_effects *m = *effects = xcalloc(1, sizeof *m);
    TRY(take(arena, model, TENSOR_F32, EFFECT_WINDOW, (void **)&m->losses, error));
    TRY(forget_losses(m, model, error));
    TRY(take(arena, model, TENSOR_F32, EFFECT_WINDOW * EFFECT_WINDOW, (void **)&m->after, error));
    m->experts = model->adapters->settings.experts;
    for (int t = 0; t < TOWERS; t++) {
        m->all[t] = adapters_counts(model->adapters, (enum tower)t).n;
        TRY(take(arena, model, TENSOR_I32, EFFECT_WINDOW * m->all[t], (void **)&m->counts[t], error));
        m->host[t] = xmalloc(array_size(2 * m->all[t], sizeof *m->host[t]));
    }
    return OK;
}

static void merge_effects_close(struct merge_effects *m)
{
    if (m == NULL)
        return;
    for (int t = 0; t < TOWERS; t++)
        free(m->host[t]);
    free(m->watched);
    free(m);
}

static bool ends_now(const struct merge_effects *m, size_t iteration)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->watched[i].iteration + EFFECT_WINDOW == iteration)
            return true;
    return false;
}

static status merge_effects_step(const struct merge_effects *m, const struct model *model, size_t iteration,
                                 struct error *error)
{
    struct backend *backend = model->backend;
    if (m == NULL)
        return OK;
    size_t slot = iteration % EFFECT_WINDOW;
    TRY(backend->ops->copy(backend, m->losses + slot, model->loss, sizeof *m->losses, error));
    if (!ends_now(m, iteration))
        return OK;
    TRY(backend->ops->copy(backend, m->after + slot * EFFECT_WINDOW, m->losses, EFFECT_WINDOW * sizeof *m->losses,
                           error));
    for (int t = 0; t < TOWERS; t++)
        if (m->all[t] > 0)
            TRY(backend->ops->copy(backend, m->counts[t] + slot * m->all[t],
                                   adapters_counts(model->adapters, (enum tower)t).counts,
                                   m->all[t] * sizeof *m->counts[t], error));
    return OK;
}

/* The mean over the n iterations up to `last`; NAN: none had a finite loss. */
static double mean_loss(const float losses[EFFECT_WINDOW], size_t last, size_t n)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        double loss = (double)losses[(last - i) % EFFECT_WINDOW];
        sum += isfinite(loss) ? loss : 0;
        count += isfinite(loss) ? 1 : 0;
    }
    return count > 0 ? sum / count : (double)NAN;
}

static int64_t choices_of(const struct merge_effects *m, size_t tower, size_t block)
{
    int64_t choices = 0;
    for (size_t i = 0; i < m->experts; i++)
        choices += m->host[tower][block * m->experts + i];
    return choices;
}

static void report(struct merge_effects *m, struct method_run *run, const struct watched *w, size_t known, size_t last,
                   const float *losses)
{
    size_t iterations = last - w->iteration;
    GROW(run->effects.effects, run->effects.count);
    run->effects.effects[run->effects.count++] =
        (struct merge_effect){.tower = (enum tower)w->tower,
                              .block = w->block,
                              .position = w->position,
                              .iteration = w->iteration,
                              .known = known,
                              .iterations = iterations,
                              .chosen = m->host[w->tower][w->block * m->experts + w->target] - w->chosen,
                              .choices = choices_of(m, w->tower, w->block) - w->choices,
                              .loss_before = w->loss_before,
                              .loss_after = mean_loss(losses, last, iterations),
                              .distance = w->distance};
}

/* Reads the state at the end of a window, or the present state for a window that the end of the task cuts off. */
static status read_window(struct merge_effects *m, const struct model *model, size_t slot, bool present,
                          float losses[EFFECT_WINDOW], struct error *error)
{
    struct backend *backend = model->backend;
    TRY(backend->ops->download(backend, losses, present ? m->losses : m->after + slot * EFFECT_WINDOW,
                               EFFECT_WINDOW * sizeof *losses, error));
    for (int t = 0; t < TOWERS; t++)
        if (m->all[t] > 0)
            TRY(backend->ops->download(backend, m->host[t],
                                       present ? adapters_counts(model->adapters, (enum tower)t).counts
                                               : m->counts[t] + slot * m->all[t],
                                       m->all[t] * sizeof *m->host[t], error));
    return OK;
}

/* Reports the merges whose window ended by `iteration`; with `cut` also the others, whose windows end there. */
static status report_ended(struct merge_effects *m, struct method_run *run, size_t iteration, size_t known, bool cut,
                           struct error *error)
{
    float losses[EFFECT_WINDOW];
    size_t done = 0;
    for (uint64_t read = 0; done < m->count; done++) {
        const struct watched *w = &m->watched[done];
        bool whole = w->iteration + EFFECT_WINDOW <= iteration;
        if (!whole && !cut)
            break;
        uint64_t window = whole ? w->iteration + 1 : UINT64_MAX; /* windows that are cut off end together */
        if (read != window)
            TRY(read_window(m, run->model, w->iteration % EFFECT_WINDOW, !whole, losses, error));
        read = window;
        report(m, run, w, known, whole ? w->iteration + EFFECT_WINDOW : iteration, losses);
    }
    if (done > 0)
        memmove(m->watched, m->watched + done, (m->count - done) * sizeof *m->watched);
    m->count -= done;
    return OK;
}

/* The number of earlier changes of the same block, which is the change's position among the events. */
static size_t position_of(const struct expert_changes *changes, size_t first, size_t index)
{
    const struct expert_change *c = &changes->changes[index];
    size_t position = 0;
    for (size_t i = first; i < index; i++)
        position += changes->changes[i].tower == c->tower && changes->changes[i].merge.block == c->merge.block;
    return position;
}

static status watch(struct merge_effects *m, const struct method_run *run, size_t iteration, size_t first, size_t index,
                    double loss_before, struct arena *arena, struct error *error)
{
    const struct expert_change *c = &run->changes.changes[index];
    struct watched w = {.iteration = iteration,
                        .tower = (uint64_t)c->tower,
                        .block = c->merge.block,
                        .position = position_of(&run->changes, first, index),
                        .target = (uint64_t)c->merge.target,
                        .loss_before = loss_before};
    w.chosen = m->host[w.tower][w.block * m->experts + w.target];
    w.choices = choices_of(m, w.tower, w.block);
    TRY(statistics_distance(&run->model->adapters->towers[c->tower], &c->merge, arena, &w.distance, error));
    GROW(m->watched, m->count);
    m->watched[m->count++] = w;
    return OK;
}

/* Merges among run->changes from number `first` on. */
static status merge_effects_add(struct merge_effects *m, const struct method_run *run, size_t iteration, size_t first,
                                struct error *error)
{
    struct backend *backend = run->model->backend;
    float losses[EFFECT_WINDOW];
    struct arena arena;
    size_t merges = 0;
    for (size_t i = first; m != NULL && i < run->changes.count; i++)
        merges += run->changes.changes[i].kind == CHANGE_MERGE;
    if (merges == 0)
        return OK;
    TRY(read_window(m, run->model, 0, true, losses, error));
    double before = mean_loss(losses, iteration, iteration < EFFECT_WINDOW ? iteration : EFFECT_WINDOW);
    TRY(backend->ops->arena_create(backend, &arena, 0, "effects of merges", error));
    status result = OK;
    for (size_t i = first; i < run->changes.count; i++)
        if (run->changes.changes[i].kind == CHANGE_MERGE)
            NEXT(result, watch(m, run, iteration, first, i, before, &arena, error));
    backend->ops->arena_destroy(backend, &arena);
    return result;
}

/* An archive of a session with merge.analysis=no has none; restoring from it leaves no merges to measure. */
static status merge_effects_keep(struct merge_effects *m, const struct serializer *serializer, struct error *error)
{
    if (m == NULL || (!serializer->saving && !archive_has(serializer->archive, "effects.watched")))
        return OK;
    uint64_t count = m->count;
    TRY(serializer_host(serializer, "effects.count", SAFETENSOR_U64, 1, &count, error));
    for (m->count = serializer->saving ? count : 0; m->count < count; m->count++)
        GROW(m->watched, m->count);
    TRY(serializer_host(serializer, "effects.watched", SAFETENSOR_U8, count * sizeof *m->watched, m->watched, error));
    TRY(serializer_device(serializer, "effects.losses", SAFETENSOR_F32, EFFECT_WINDOW, m->losses, error));
    TRY(serializer_device(serializer, "effects.after", SAFETENSOR_F32, EFFECT_WINDOW * EFFECT_WINDOW, m->after, error));
    TRY(serializer_device(serializer, "effects.image", SAFETENSOR_I32, EFFECT_WINDOW * m->all[TOWER_IMAGE],
                          m->counts[TOWER_IMAGE], error));
    return serializer_device(serializer, "effects.text", SAFETENSOR_I32, EFFECT_WINDOW * m->all[TOWER_TEXT],
                             m->counts[TOWER_TEXT], error);
}

/* --- Merging --- */

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

static struct merge_call make_call(struct method_run *run, const struct task *task, size_t iteration)
{
    const struct model *model = run->model;
    size_t before = 0, all = 0;
    for (size_t k = 0; k < run->data->task_count; k++) {
        before += k < task->index ? run->data->tasks[k].settings.iterations : 0;
        all += run->data->tasks[k].settings.iterations;
    }
    struct merging *state = run->state;
    struct merge_call call = {.moment = iteration > 0 ? MERGE_AFTER_STEP : MERGE_AFTER_TASK,
                              .task = task->index,
                              .iteration = iteration,
                              .iterations = task->settings.iterations,
                              .before = before,
                              .all = all,
                              .epoch_length = task->settings.epoch_length,
                              .more = task->settings.iterations - task->settings.schedule_end,
                              .options = model->settings.merge.policy_options,
                              .rng = rng_make(model->seed, RNG_POLICY, (uint32_t)task->index, (uint32_t)iteration),
                              .state = state->policy,
                              .folder = model->folder,
                              .experts = model->settings.adapter.experts,
                              .program = &state->program,
                              .asking = &run->asking};
    for (int t = 0; model->adapters != NULL && t < TOWERS; t++)
        call.blocks[t] = adapters_in_tower(model->adapters, (enum tower)t) ? model->adapters->towers[t].blocks : 0;
    return call;
}

static status check_tasks(struct method_run *run, struct error *error)
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
    if (plan->policy->ask != NULL && model->settings.gpus > 1)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: run.gpus: merge policy %s asks one program, which cannot decide for %zu GPUs; leave run.gpus "
            "out",
            plan->policy->name, model->settings.gpus);
    TRY(check_skipping(run, error));
    TRY(check_partitions(run, error));
    TRY(check_tasks(run, error));
    bool analysis = plan->analysis && merge_policy_plans(plan->policy);
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
    if (state->program != NULL)
        run->model->settings.merge.policy->close(state->program);
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
        if (state->effects != NULL)
            state->effects->count = 0;
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
    if (state->effects != NULL)
        TRY(report_ended(state->effects, run, iteration, iteration, false, error));
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
    struct merging *state = run->state;
    const struct merge_call call = make_call(run, task, 0);
    size_t iterations = task->settings.iterations;
    if (model->adapters == NULL)
        return OK;
    TRY(merge(run, &call, iterations, error));
    if (state->effects != NULL)
        TRY(report_ended(state->effects, run, iterations, iterations + 1, true, error));
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
