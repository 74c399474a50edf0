/* The k highest counts (ties: the lowest index): Park, Algorithm 1, lines 22 and 23, as in MoE-Adapters. */
#include "adapters/merge.h"

static size_t pick(const struct freeze_view *view, const struct freeze_plan *plan, const struct rng *rng, int *picked)
{
    highest_counts(view->counts, view->experts, plan->top_k, picked);
    return plan->top_k;
}

const struct freeze_policy freeze_most_used = {.name = "most_used",
                                               .source = "MoE-Adapters, CVPR 2024; Park, Algorithm 1",
                                               .counts = true,
                                               .formula = "the freeze_top_k highest counts",
                                               .pick = pick};
