/* Two random experts replace one, by default a random one that is not frozen: the control that shows whether usage matters. A
 * target that is not drawn is chosen first and is no source, so that every merge is done whichever target it is. */
#include "adapters/merge/policies.h"

static const struct option options[] = {MERGE_TARGET_OPTIONS("random_free"), {0}};

/* Two that are not the target, where that is chosen already. */
static void draw_sources(const struct merge_view *view, const struct rng *rng, struct merge *merge)
{
    struct merge drawn = {.block = merge->block};
    if (merge->target >= 0)
        drawn.source[drawn.sources++] = merge->target;
    while (merge->sources < 2) {
        int source = merge_draw_source(view, rng, &drawn);
        drawn.source[drawn.sources++] = source;
        merge->source[merge->sources++] = source;
    }
}

static void plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list)
{
    bool draws_target = options_choice(call->options, "target") == TARGET_RANDOM_FREE;
    if (view->experts < (draws_target ? 2 : 3))
        return;
    for (size_t block = 0; block < view->blocks; block++) {
        struct merge merge = {.block = block, .target = -1};
        if (!draws_target)
            merge_choose_target(view, call, &merge);
        draw_sources(view, &call->rng, &merge);
        if (draws_target)
            merge_choose_target(view, call, &merge);
        merge_list_add(list, &merge);
    }
}

const struct merge_policy policy_random = {
    .name = "random",
    .source = "the control of a comparison",
    .formula = "target ← two sources, drawn uniformly; target: drawn among those that are not frozen, or as elsewhere",
    .options = options,
    .plan = plan};
