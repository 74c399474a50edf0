/* Mixture-of-experts adapters in sequence: MoE-Adapters (CVPR 2024) with merge policy none, Park's system with
 * most_used. */
#include <stdlib.h>

#include "adapters/merge/combine.h"
#include "adapters/statistics.h"
#include "harness/methods/methods.h"
#include "harness/run/experiment.h"

struct state {
    void *policy; /* state of the merge policy; NULL: none */
};

/* An iteration that is left out takes back its selection counts, but not what its forward pass added to the others. */
static status check_skipping(const struct experiment *e, struct error *error)
{
    enum { OF_FORWARD = NEEDS_PAIR_COUNTS | NEEDS_NEXT_COUNTS | NEEDS_PROBES | NEEDS_SIMILARITY };
    const struct merge_plan *plan = &e->settings.merge;
    for (size_t k = 0; merge_needs(plan) & OF_FORWARD && k < e->data.task_count; k++)
        if (e->data.tasks[k].settings.on_nan == ON_NAN_SKIP)
            return error_set(error, ERROR_ARGUMENT,
                             "training.on_nan=skip: merge policy %s with combiner %s looks at statistics of every "
                             "iteration, also of those left out; set training.on_nan=stop",
                             plan->policy->name, plan->combiner->name);
    return OK;
}

static status open_policy(struct method_run *run, struct error *error)
{
    struct experiment *e = run->experiment;
    struct state *state = run->state;
    const struct merge_plan *plan = &e->settings.merge;
    TRY(check_skipping(e, error));
    TRY(adapters_collect(e->model.adapters, merge_needs(plan), run->memory, error));
    if (plan->policy->state_size == 0)
        return OK;
    state->policy = calloc(1, plan->policy->state_size);
    return state->policy != NULL
               ? OK
               : error_set(error, ERROR_MEMORY, "merge policy %s: no memory for its state", plan->policy->name);
}

static void close_policy(struct method_run *run)
{
    struct state *state = run->state;
    free(state->policy);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    return resumed ? OK : adapters_begin_task(run->experiment->model.adapters, task->index, error);
}

static status merge(struct method_run *run, const struct task *task, enum merge_moment moment, size_t iteration,
                    struct error *error)
{
    struct experiment *e = run->experiment;
    struct merge_call call = {.moment = moment,
                              .options = e->settings.merge.policy_options,
                              .rng = rng_make(e->seed, RNG_POLICY, (uint32_t)task->index, (uint32_t)iteration),
                              .state = ((struct state *)run->state)->policy};
    return adapters_merge(e->model.adapters, &e->settings.merge, &call, &e->changes, error);
}

static status after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    const struct merge_plan *plan = &run->experiment->settings.merge;
    const bool due[] = {[SCHEDULE_EVERY] = iteration % plan->every == 0,
                        [SCHEDULE_ONCE] = iteration == plan->every,
                        [SCHEDULE_END_OF_TASK] = false};
    return due[plan->schedule] ? merge(run, task, MERGE_AFTER_STEP, iteration, error) : OK;
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct experiment *e = run->experiment;
    TRY(merge(run, task, MERGE_AFTER_TASK, 0, error));
    return adapters_freeze(e->model.adapters, e->settings.adapter.freeze_top_k, &e->changes, error);
}

static status keep(struct method_run *run, const struct passage *passage, struct error *error)
{
    const struct merge_policy *policy = run->experiment->settings.merge.policy;
    struct state *state = run->state;
    if (policy->state_size == 0)
        return OK;
    return passage_host(passage, "merge.state", SAFETENSOR_U8, policy->state_size, state->policy, error);
}

const struct method method_moe_adapters = {
    .name = "moe_adapters",
    .source = "MoE-Adapters, CVPR 2024; with merging, Park",
    .formula = "x ← x + MLP(ln_2 x) + Σ_k g_k ε_k(x), g = softmax of the top_k largest of x₀R_t + n ⊙ (softplus(x₀N_t) "
               "+ noise_epsilon), n = 0 in tests; loss = cross-entropy",
    .sections = {"merge", "combine", "selector"},
    .state_size = sizeof(struct state),
    .groups = groups_adapters,
    .open = open_policy,
    .close = close_policy,
    .begin_task = begin_task,
    .after_step = after_step,
    .end_task = end_task,
    .keep = keep};
