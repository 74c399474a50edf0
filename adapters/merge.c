/* Carries out what a policy planned, and freezes. */
#include "adapters/merge.h"

#include <stdlib.h>
#include <string.h>

void expert_changes_clear(struct expert_changes *events)
{
    events->count = 0;
}

void expert_changes_free(struct expert_changes *events)
{
    free(events->changes);
    *events = (struct expert_changes){0};
}

static status add_event(struct expert_changes *events, enum expert_change_kind kind, enum tower tower,
                        const struct merge *merge, struct error *error)
{
    if (events == NULL)
        return OK;
    if (events->count == events->capacity) {
        size_t capacity = events->capacity * 2 + 64;
        struct expert_change *grown = realloc(events->changes, array_size(capacity, sizeof *grown));
        if (grown == NULL)
            return error_set(error, ERROR_MEMORY, "merge: no memory for %zu events", capacity);
        events->changes = grown;
        events->capacity = capacity;
    }
    events->changes[events->count++] = (struct expert_change){kind, tower, *merge};
    return OK;
}

/* Counts and frozen flags of a whole tower on the host; the caller frees memory. */
static status look_at(struct adapters *adapters, enum tower which, struct merge_view *view, int32_t **memory,
                      struct error *error)
{
    const struct adapter_tower *tower = &adapters->towers[which];
    size_t experts = adapters->settings.experts, values = tower->blocks * experts;
    *memory = malloc(array_size(2 * values, sizeof **memory));
    if (*memory == NULL)
        return error_set(error, ERROR_MEMORY, "merge: no memory for %zu counts", values);
    *view = (struct merge_view){
        .tower = which, .blocks = tower->blocks, .experts = experts, .counts = *memory, .frozen = *memory + values};
    return adapters_read_marks(adapters, which, *memory, error);
}

static status blend_into(struct adapters *adapters, float *stack, const struct parameter *p, const struct merge *merge,
                         struct error *error)
{
    size_t n = p->size / p->shape[0];
    struct blend blend = {.count = merge->sources, .n = n, .out = stack + p->offset + (size_t)merge->target * n};
    for (size_t i = 0; i < merge->sources; i++) {
        blend.inputs[i] = stack + p->offset + (size_t)merge->source[i] * n;
        blend.weights[i] = merge->weight[i];
    }
    return adapters->backend->ops->blend(adapters->backend, &blend, error);
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
        TRY(backend->ops->zero(backend, group->second_moment + target, n * sizeof(float), error));
    } else {
        TRY(blend_into(adapters, group->first_moment, p, merge, error));
        TRY(blend_into(adapters, group->second_moment, p, merge, error));
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

static status carry_out(struct adapters *adapters, enum tower which, const struct merge *merge,
                        enum merge_moments moments, struct error *error)
{
    struct adapter_tower *tower = &adapters->towers[which];
    const struct expert_bank *bank = &tower->banks[merge->block];
    const size_t tensors[] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const struct parameter *p = &tower->parameters->list[tensors[i]];
        TRY(blend_into(adapters, tower->parameters->values, p, merge, error));
        TRY(merge_moments(adapters, tower->parameters, p, merge, moments, error));
    }
    return OK;
}

static status merge_tower(struct adapters *adapters, enum tower which, const struct merge_policy *policy,
                          const struct options *options, enum merge_moments moments, struct rng rng,
                          struct merge_list *list, struct expert_changes *events, struct error *error)
{
    struct merge_view view;
    int32_t *memory = NULL;
    status result = look_at(adapters, which, &view, &memory, error);
    if (result == OK)
        result = policy->plan(&view, options, rng, list, error);
    free(memory);
    for (size_t i = 0; result == OK && i < list->count; i++) {
        const struct merge *merge = &list->merges[i];
        if (merge->skip == MERGE_DONE)
            result = carry_out(adapters, which, merge, moments, error);
        if (result == OK)
            result = add_event(events, merge->skip == MERGE_DONE ? CHANGE_MERGE : CHANGE_SKIP, which, merge, error);
    }
    return result;
}

status adapters_merge(struct adapters *adapters, const struct merge_policy *policy, const struct options *options,
                      enum merge_moments moments, struct rng rng, struct expert_changes *events, struct error *error)
{
    for (int t = 0; t < TOWERS; t++) {
        struct merge_list list = {0};
        status result = merge_tower(adapters, (enum tower)t, policy, options, moments, rng, &list, events, error);
        free(list.merges);
        TRY(result);
    }
    return OK;
}

static status freeze_block(struct adapters *adapters, enum tower which, size_t block, size_t top_k,
                           const int32_t *counts, int32_t *frozen, struct expert_changes *events, struct error *error)
{
    struct merge event = {.block = block, .target = -1, .sources = top_k};
    highest_counts(counts, adapters->settings.experts, top_k, event.source);
    for (size_t i = 0; i < top_k; i++)
        frozen[event.source[i]] = 1;
    TRY(adapters_write_frozen(adapters, which, block, frozen, error));
    return add_event(events, CHANGE_FREEZE, which, &event, error);
}

status adapters_freeze(struct adapters *adapters, size_t top_k, struct expert_changes *events, struct error *error)
{
    if (top_k > adapters->settings.experts || top_k > MERGE_SOURCES)
        return error_set(error, ERROR_ARGUMENT,
                         "freeze: cannot freeze the %zu most used of %zu experts (at most %d per task)", top_k,
                         adapters->settings.experts, MERGE_SOURCES);
    for (int t = 0; t < TOWERS; t++) {
        struct merge_view view;
        int32_t *memory = NULL;
        status result = look_at(adapters, (enum tower)t, &view, &memory, error);
        for (size_t b = 0; result == OK && b < view.blocks; b++)
            result = freeze_block(adapters, (enum tower)t, b, top_k, view.counts + b * view.experts,
                                  memory + (view.blocks + b) * view.experts, events, error);
        free(memory);
        TRY(result);
    }
    return OK;
}
