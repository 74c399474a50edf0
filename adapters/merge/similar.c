/* The two experts whose outputs on the probes are most alike replace the least used one that is not frozen; ties: the
 * lowest first expert, then the lowest second one. */
#include <math.h>

#include "adapters/merge/policies.h"

static double likeness(const struct merge_view *view, size_t block, size_t first, size_t second)
{
    return (double)view->similarity[(block * view->experts + first) * view->experts + second];
}

static const struct option options[] = {MERGE_TARGET_OPTIONS("least_used"), {0}};

static void plan(const struct merge_view *view, const struct merge_call *call, struct merge_list *list)
{
    merge_best_pairs(view, call, likeness, -INFINITY, list);
}

const struct merge_policy policy_similar = {
    .name = "similar",
    .source = "cosine of outputs; compare Li et al., ICLR 2024 (M-SMoE)",
    .formula = "sources: the pair e < f of highest mean over probes of cos(ε_e(x), ε_f(x))",
    .needs = NEEDS_SIMILARITY,
    .options = options,
    .plan = plan};
