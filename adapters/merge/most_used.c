/* The two most used experts replace the least used one that is not frozen: Park, Algorithm 1, lines 12–17. */
#include "adapters/merge/policies.h"

static int least_used(const int32_t *counts, const int32_t *frozen, size_t experts)
{
    int least = -1;
    for (size_t e = 0; e < experts; e++)
        if (!frozen[e] && (least < 0 || counts[e] < counts[least]))
            least = (int)e;
    return least;
}

static status plan(const struct merge_view *view, const struct options *options, struct rng rng,
                   struct merge_list *list, struct error *error)
{
    (void)options;
    (void)rng;
    if (view->experts < 2)
        return OK;
    for (size_t block = 0; block < view->blocks; block++) {
        const int32_t *counts = view->counts + block * view->experts;
        struct merge merge = {.block = block, .sources = 2, .weight = {0.5f, 0.5f}};
        highest_counts(counts, view->experts, 2, merge.source);
        merge.target = least_used(counts, view->frozen + block * view->experts, view->experts);
        if (merge.target < 0)
            merge.skip = MERGE_NO_FREE_EXPERT;
        else if (merge.target == merge.source[0] || merge.target == merge.source[1])
            merge.skip = MERGE_TARGET_IS_SOURCE;
        TRY(merge_list_add(list, &merge, error));
    }
    return OK;
}

const struct merge_policy merge_most_used = {.name = "most_used",
                                             .source =
                                                 "Park, Learning More Generalized Experts by Merging Experts in MoE",
                                             .needs = NEEDS_NOTHING,
                                             .plan = plan};
