/* Every expert with more than a share x of its block's choices in the task, c_k / Σ c > x; the most used first. */
#include "adapters/merge.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "freeze_share", 0, 1, "0.1", "share of a block's choices above which an expert is frozen"),
    {0}};

static size_t pick(const struct freeze_view *view, const struct freeze_plan *plan, const struct rng *rng, int *picked)
{
    double limit = options_real(plan->options, "freeze_share"), total = 0;
    size_t count = 0;
    for (size_t e = 0; e < view->experts; e++) {
        total += view->counts[e];
        count += view->counts[e] > 0;
    }
    highest_counts(view->counts, view->experts, count, picked);
    while (count > 0 && !(view->counts[picked[count - 1]] > limit * total))
        count--;
    return count;
}

const struct freeze_policy freeze_share = {.name = "share",
                                           .source = "share of use, compare MoE-Adapters",
                                           .formula = "c_k / sum c > freeze_share",
                                           .options = options,
                                           .pick = pick};
