/* Two random experts replace a random one that is not frozen: the control that shows whether usage matters. */
#include "adapters/merge/policies.h"

static void plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list)
{
    if (view->experts < 2)
        return;
    for (size_t block = 0; block < view->blocks; block++) {
        struct merge merge = {.block = block};
        while (merge.sources < 2) {
            int source = merge_draw_source(view, &call->rng, &merge);
            merge.source[merge.sources++] = source;
        }
        merge_onto_random_free(view, &call->rng, &merge);
        merge_list_add(list, &merge);
    }
}

const struct merge_policy policy_random = {
    .name = "random",
    .source = "the control of a comparison",
    .formula = "target ← two sources; all three drawn uniformly, the target among those that are not frozen",
    .plan = plan};
