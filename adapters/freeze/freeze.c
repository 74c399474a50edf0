/* The policies by name, and freezing the experts that one picked. */
#include "adapters/freeze.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

#define ENTRY(name) &freeze_##name,
static const struct freeze_policy *const policies[] = {FREEZE_POLICIES(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(freeze_policy, struct freeze_policy, policies, "suite", "freeze policy")

static void add_events(struct expert_changes *events, const struct freeze_view *view, const int *picked, size_t count)
{
    for (size_t first = 0; first < count; first += MERGE_SOURCES) {
        size_t left = count - first;
        struct merge event = {
            .block = view->block, .target = -1, .sources = left < MERGE_SOURCES ? left : MERGE_SOURCES};
        memcpy(event.source, picked + first, event.sources * sizeof *picked);
        expert_changes_add(events, CHANGE_FREEZE, view->tower, &event);
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
        int32_t *counts = xmalloc(array_size(2 * adapters->towers[t].blocks, experts * sizeof *counts));
        int *picked = xmalloc(array_size(experts, sizeof *picked));
        status result = freeze_tower(adapters, (enum tower)t, plan, rng, counts, picked, events, error);
        free(picked);
        free(counts);
        TRY(result);
    }
    return OK;
}
