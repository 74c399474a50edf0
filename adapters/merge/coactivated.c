/* The two experts that most samples chose together since the task began replace the least used one that is not frozen.
 * How often one expert was chosen, the diagonal of the counts, does not matter; ties: the lowest first expert, then the
 * lowest second one. A block in which no sample chose two experts has no merge, so none has one where K is 1. */
#include "adapters/merge/policies.h"

static double times_together(const struct merge_view *view, size_t block, size_t first, size_t second)
{
    return view->pairs[(block * view->experts + first) * view->experts + second];
}

static const struct option options[] = {MERGE_TARGET_OPTIONS("least_used"), {0}};

static void plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list)
{
    merge_best_pairs(view, call, times_together, 0, list);
}

const struct merge_policy policy_coactivated = {
    .name = "coactivated",
    .source = "counts of experts chosen together; compare Park (most_used)",
    .formula = "sources: the pair e < f that most samples chose together since the task began",
    .needs = NEEDS_PAIR_COUNTS,
    .options = options,
    .plan = plan};
