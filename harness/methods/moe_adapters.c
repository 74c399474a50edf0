/* Mixture-of-experts adapters in sequence: MoE-Adapters (CVPR 2024) with merge policy none, Park's system with
 * most_used. */
#include "harness/methods/methods.h"
#include "harness/run/experiment.h"

static enum method_trains trains(const struct options *options)
{
    (void)options;
    return TRAINS_ADAPTERS;
}

static status begin_task(struct experiment *e, const struct task *task, struct error *error)
{
    return adapters_begin_task(e->adapters, task->index, error);
}

static status merge(struct experiment *e, const struct task *task, enum merge_moment moment, size_t iteration,
                    struct error *error)
{
    struct merge_call call = {.moment = moment,
                              .options = e->settings.policy_options,
                              .rng = rng_make(e->seed, RNG_POLICY, (uint32_t)task->index, (uint32_t)iteration),
                              .state = e->merge_state};
    return adapters_merge(e->adapters, &e->settings.merge, &call, &e->changes, error);
}

static status after_step(struct experiment *e, const struct task *task, size_t iteration, struct error *error)
{
    const struct settings *s = &e->settings;
    if (iteration % s->merge_every != 0)
        return OK;
    return merge(e, task, MERGE_AFTER_STEP, iteration, error);
}

static status end_task(struct experiment *e, const struct task *task, struct error *error)
{
    TRY(merge(e, task, MERGE_AFTER_TASK, 0, error));
    return adapters_freeze(e->adapters, e->settings.freeze_top_k, &e->changes, error);
}

const struct method method_moe_adapters = {.name = "moe_adapters",
                                           .source = "MoE-Adapters, CVPR 2024; with merging, Park",
                                           .selects = true,
                                           .trains = trains,
                                           .begin_task = begin_task,
                                           .after_step = after_step,
                                           .end_task = end_task};
