/* Carries out the merges and freezes that policies planned. */
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/expert.h"
#include "adapters/merge/policies.h"
#include "adapters/statistics.h"
#include "core/alloc.h"
#include "core/scope.h"

void expert_changes_clear(struct expert_changes *events)
{
    events->count = 0;
}

void expert_changes_free(struct expert_changes *events)
{
    free(events->changes);
    *events = (struct expert_changes){0};
}

/* events NULL: nothing */
static void add_change(struct expert_changes *events, enum expert_change_kind kind, enum tower tower,
                       const struct merge *merge)
{
    if (events == NULL)
        return;
    GROW(events->changes, events->count);
    events->changes[events->count++] = (struct expert_change){kind, tower, *merge};
}

/* A policy's view of a tower, in one block of memory that the caller frees. */
static status look_at(struct adapters *adapters, enum tower which, unsigned needs, struct merge_view *view,
                      int32_t **memory, struct error *error)
{
    const struct adapter_tower *tower = &adapters->towers[which];
    const struct adapter_statistics *statistics = &tower->statistics;
    struct backend *backend = adapters->backend;
    size_t experts = adapters->settings.experts, all = tower->blocks * experts, square = all * experts;
    bool pairs = needs & NEEDS_PAIR_COUNTS, next = needs & NEEDS_NEXT_COUNTS, similarity = needs & NEEDS_SIMILARITY,
         earlier = needs & NEEDS_EARLIER_COUNTS;
    size_t values = (2 + earlier) * all + (pairs + next + similarity) * square;
    *memory = xmalloc(array_size(values, sizeof **memory));
    int32_t *more = *memory + 2 * all;
    *view = (struct merge_view){
        .tower = which, .blocks = tower->blocks, .experts = experts, .counts = *memory, .frozen = *memory + all};
    const struct {
        bool needed;
        const int32_t *data, **seen;
        size_t n;
    } arrays[] = {{earlier, statistics->earlier, &view->earlier, all},
                  {pairs, statistics->pairs, &view->pairs, square},
                  {next, statistics->next, &view->next, square}};
    TRY(adapters_read_counts_and_frozen(adapters, which, *memory, error));
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (!arrays[i].needed)
            continue;
        *arrays[i].seen = more;
        TRY(backend->ops->download(backend, more, arrays[i].data, arrays[i].n * sizeof *more, error));
        more += arrays[i].n;
    }
    if (similarity)
        TRY(statistics_similarity(tower, (float *)more, error));
    view->similarity = similarity ? (float *)more : NULL;
    return OK;
}

/* out, the target's part of a stack, from the sources' parts. */
static status sum_into(struct adapters *adapters, float *out, const float *stack, const struct parameter *p,
                       const struct merge *merge, struct error *error)
{
    size_t n = p->size / p->shape[0];
    struct weighted_sum sum = {.count = merge->sources, .n = n, .out = out};
    for (size_t i = 0; i < merge->sources; i++) {
        sum.inputs[i] = stack + p->offset + (size_t)merge->source[i] * n;
        sum.weights[i] = merge->weight[i];
    }
    return adapters->backend->ops->weighted_sum(adapters->backend, &sum, error);
}

static status merge_moments(struct adapters *adapters, struct parameters *group, const struct parameter *p,
                            const struct merge *merge, enum merge_moments moments, struct error *error)
{
    struct backend *backend = adapters->backend;
    size_t n = p->size / p->shape[0], target = p->offset + (size_t)merge->target * n;
    int32_t *steps = group->steps + p->first_segment, mean = 0;
    if (moments == MOMENTS_KEEP)
        return OK;
    if (moments == MOMENTS_RESET) {
        TRY(backend->ops->zero(backend, group->first_moment + target, n * sizeof(float), error));
        if (group->second_moment != NULL)
            TRY(backend->ops->zero(backend, group->second_moment + target, n * sizeof(float), error));
    } else {
        TRY(sum_into(adapters, group->first_moment + target, group->first_moment, p, merge, error));
        if (group->second_moment != NULL)
            TRY(sum_into(adapters, group->second_moment + target, group->second_moment, p, merge, error));
        float weighted = 0;
        for (size_t i = 0; i < merge->sources; i++) {
            int32_t count;
            TRY(backend->ops->download(backend, &count, steps + merge->source[i], sizeof count, error));
            weighted += merge->weight[i] * (float)count;
        }
        mean = (int32_t)(weighted + 0.5f);
    }
    return backend->ops->upload(backend, steps + merge->target, &mean, sizeof mean, error);
}

static const struct parameter *tensor_of(const struct adapter_tower *tower, size_t block, int part)
{
    return &tower->parameters->list[tower->banks[block].parts[part]];
}

/* Copies one expert's part of an array with the layout of the tower's values to the host. */
static status read_expert(const struct adapter_tower *tower, const float *array, size_t block, int expert, float *flat,
                          struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    for (int i = 0; i < EXPERT_PARTS; i++) {
        const struct parameter *p = tensor_of(tower, block, i);
        size_t n = p->size / p->shape[0];
        TRY(backend->ops->download(backend, flat, array + p->offset + (size_t)expert * n, n * sizeof *flat, error));
        flat += n;
    }
    return OK;
}

/* An expert's slice of one of its stacked tensors, for writing. */
static float *write_part(const struct adapter_tower *tower, const struct parameter *tensor, int expert)
{
    size_t n = tensor->size / tensor->shape[0];
    return parameters_write(tower->parameters, tensor->offset + (size_t)expert * n, n);
}

static status write_expert(const struct adapter_tower *tower, size_t block, int expert, const float *flat,
                           struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    for (int i = 0; i < EXPERT_PARTS; i++) {
        const struct parameter *p = tensor_of(tower, block, i);
        size_t n = p->size / p->shape[0];
        TRY(backend->ops->upload(backend, write_part(tower, p, expert), flat, n * sizeof *flat, error));
        flat += n;
    }
    return OK;
}

/* Reads the combiner's inputs into memory [2 · sources + 1, n] and probes [PROBES, d] on the host. */
static status read_sources(const struct adapter_tower *tower, const struct merge_combiner *combiner,
                           const struct merge *merge, struct merge_sources *sources, float *memory, float *probes,
                           struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    const struct adapter_statistics *statistics = &tower->statistics;
    size_t n = expert_size(sources->shape);
    for (size_t i = 0; i < merge->sources; i++) {
        float *expert = memory + (2 * i + 1) * n, *squares = expert + n;
        sources->expert[i] = expert;
        TRY(read_expert(tower, tower->parameters->values, merge->block, merge->source[i], expert, error));
        if (!(combiner->needs & NEEDS_SQUARED_GRADIENTS))
            continue;
        sources->squared_gradients[i] = squares;
        TRY(read_expert(tower, statistics->squared_gradients, merge->block, merge->source[i], squares, error));
    }
    if (!(combiner->needs & NEEDS_PROBES))
        return OK;
    sources->probes = probes;
    sources->probe_count = PROBES;
    return backend->ops->download(backend, probes, statistics->probes + merge->block * PROBES * tower->width,
                                  PROBES * tower->width * sizeof *probes, error);
}

static status combine_into(const struct adapter_tower *tower, const struct merge_combiner *combiner,
                           const struct options *options, const struct merge *merge, struct error *error)
{
    struct merge_sources sources = {.count = merge->sources, .shape = {tower->width, tower->hidden, tower->activation}};
    size_t n = expert_size(sources.shape);
    OWNED float *memory = xmalloc(array_size(2 * merge->sources + 1, n * sizeof *memory)),
                *probes = xmalloc(array_size(PROBES, tower->width * sizeof *probes));
    TRY(read_sources(tower, combiner, merge, &sources, memory, probes, error));
    TRY(combiner->combine(&sources, options, memory, error));
    return write_expert(tower, merge->block, merge->target, memory, error);
}

/* Adds noise to each tensor of a merged expert, as RMoE starts its experts (Wu et al. 2022). Its random numbers start at
 * 2^63, apart from those of policies and freezing, with 2^36 for each expert. */
static status blur(const struct adapter_tower *tower, enum tower which, const struct merge *merge, float scale,
                   const struct rng *rng, struct error *error)
{
    struct expert_shape shape = {tower->width, tower->hidden, tower->activation};
    uint64_t base =
        (uint64_t)1 << 63 | (uint64_t)which << 62 | (uint64_t)merge->block << 48 | (uint64_t)merge->target << 36;
    OWNED float *flat = xmalloc(array_size(expert_size(shape), sizeof *flat));
    TRY(read_expert(tower, tower->parameters->values, merge->block, merge->target, flat, error));
    for (int i = 0; i < EXPERT_PARTS; i++) {
        struct expert_part part = expert_part(shape, i);
        double deviation = expert_deviation(flat + part.offset, part.size);
        expert_add_noise(flat + part.offset, part.size, (double)scale * deviation, rng, base + part.offset);
    }
    return write_expert(tower, merge->block, merge->target, flat, error);
}

static bool has_weights(const struct merge *merge)
{
    for (size_t i = 0; i < merge->sources; i++)
        if (merge->weight[i] != 0)
            return true;
    return false;
}

/* With a combiner that has a formula of its own, moments are averaged with equal weights. A program may give the weights. */
static status combine(struct adapters *adapters, const struct merge_view *view, const struct merge_plan *plan,
                      struct merge *merge, struct error *error)
{
    struct adapter_tower *tower = &adapters->towers[view->tower];
    const struct merge_combiner *combiner = plan->combiner != NULL ? plan->combiner : &combine_mean;
    struct merge shares = *merge;
    if (has_weights(merge) && combiner->combine != NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "merge policy %s gives weights, but combine.name is %s, which has a formula of its own; set "
                         "combine.name=mean, or leave the weights out",
                         plan->policy->name, combiner->name);
    if (!has_weights(merge))
        (combiner->weigh != NULL ? combiner->weigh : combine_mean.weigh)(view, &shares);
    for (int i = 0; i < EXPERT_PARTS; i++) {
        const struct parameter *p = tensor_of(tower, merge->block, i);
        if (combiner->combine == NULL)
            TRY(sum_into(adapters, write_part(tower, p, merge->target), tower->parameters->values, p, &shares, error));
        TRY(merge_moments(adapters, tower->parameters, p, &shares, plan->moments, error));
    }
    if (combiner->combine != NULL)
        return combine_into(tower, combiner, plan->combiner_options, merge, error);
    *merge = shares;
    return OK;
}

static status carry_out(struct adapters *adapters, const struct merge_view *view, const struct merge_plan *plan,
                        const struct merge_call *call, struct merge *merge, struct error *error)
{
    TRY(combine(adapters, view, plan, merge, error));
    if (plan->noise == 0)
        return OK;
    return blur(&adapters->towers[view->tower], view->tower, merge, plan->noise, &call->rng, error);
}

static unsigned policy_needs(const struct merge_policy *policy, const struct options *options)
{
    bool ever = options != NULL && policy->options != NULL && options_find(policy->options, "target") != NULL &&
                options_choice(options, "target") == TARGET_LEAST_USED_EVER;
    return policy->needs | policy->offers | (ever ? NEEDS_EARLIER_COUNTS : 0);
}

unsigned merge_needs(const struct merge_plan *plan)
{
    return policy_needs(plan->policy, plan->policy_options) | (plan->combiner != NULL ? plan->combiner->needs : 0);
}

static status carry_out_list(struct adapters *adapters, const struct merge_view *view, const struct merge_plan *plan,
                             const struct merge_call *call, struct merge_list *list, struct expert_changes *events,
                             struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        struct merge *merge = &list->merges[i];
        if (merge->skip == MERGE_DONE)
            TRY(carry_out(adapters, view, plan, call, merge, error));
        add_change(events, merge->skip == MERGE_DONE ? CHANGE_MERGE : CHANGE_SKIP, view->tower, merge);
    }
    return OK;
}

status adapters_merge(struct adapters *adapters, const struct merge_plan *plan, const struct merge_call *call,
                      struct expert_changes *events, struct error *error)
{
    if (call->moment == MERGE_AFTER_TASK && !plan->policy->after_task &&
        !(plan->schedule != NULL && plan->schedule->after_task))
        return OK;
    for (int t = 0; merge_policy_plans(plan->policy) && t < TOWERS; t++) {
        if (!adapters_in_tower(adapters, (enum tower)t))
            continue;
        struct merge_list list = {0};
        struct merge_view view;
        OWNED int32_t *memory = NULL;
        status result =
            look_at(adapters, (enum tower)t, policy_needs(plan->policy, call->options), &view, &memory, error);
        if (result == OK && plan->policy->plan != NULL)
            plan->policy->plan(&view, call, &list);
        else
            NEXT(result, plan->policy->ask(&view, call, &list, error));
        NEXT(result, carry_out_list(adapters, &view, plan, call, &list, events, error));
        free(list.merges);
        TRY(result);
    }
    return OK;
}

/* --- Freezing --- */

static void add_events(struct expert_changes *events, const struct freeze_view *view, const int *picked, size_t count)
{
    for (size_t first = 0; first < count; first += MERGE_SOURCES) {
        size_t left = count - first;
        struct merge event = {
            .block = view->block, .target = -1, .sources = left < MERGE_SOURCES ? left : MERGE_SOURCES};
        memcpy(event.source, picked + first, event.sources * sizeof *picked);
        add_change(events, CHANGE_FREEZE, view->tower, &event);
    }
}

/* counts: counts and frozen flags of the tower, [2, blocks, E]; picked: memory for [E]. */
static status freeze_tower(struct adapters *adapters, enum tower which, const struct freeze_plan *plan, struct rng rng,
                           int32_t *counts, int *picked, struct expert_changes *events, struct error *error)
{
    size_t experts = adapters->settings.experts, blocks = adapters->towers[which].blocks;
    TRY(adapters_read_counts_and_frozen(adapters, which, counts, error));
    for (size_t b = 0; b < blocks; b++) {
        struct freeze_view view = {which, b, experts, counts + b * experts};
        int32_t *frozen = counts + (blocks + b) * experts;
        size_t count = plan->policy->pick(&view, plan, &rng, picked);
        for (size_t i = 0; i < count; i++)
            frozen[picked[i]] = 1;
        TRY(adapters_write_frozen(adapters, which, b, frozen, error));
        add_events(events, &view, picked, count);
    }
    return OK;
}

status adapters_freeze(struct adapters *adapters, const struct freeze_plan *plan, struct rng rng,
                       struct expert_changes *events, struct error *error)
{
    size_t experts = adapters->settings.experts;
    if (plan->policy->counts && plan->top_k > experts)
        return error_set(error, ERROR_ARGUMENT,
                         "freeze: cannot freeze the %zu most used of %zu experts; lower adapter.freeze_top_k",
                         plan->top_k, experts);
    for (int t = 0; t < TOWERS; t++) {
        if (!adapters_in_tower(adapters, (enum tower)t))
            continue;
        OWNED int32_t *counts = xmalloc(array_size(2 * adapters->towers[t].blocks, experts * sizeof *counts));
        OWNED int *picked = xmalloc(array_size(experts, sizeof *picked));
        TRY(freeze_tower(adapters, (enum tower)t, plan, rng, counts, picked, events, error));
    }
    return OK;
}
