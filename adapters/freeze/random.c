/* k experts at random, frozen ones among them as with most_used: the control that shows whether use matters. */
#include "adapters/merge.h"

static size_t pick(const struct freeze_view *view, const struct freeze_plan *plan, const struct rng *rng, int *picked)
{
    /* Numbers beside those of merges at the end of the task, which are below 2^62. */
    uint64_t base = (uint64_t)1 << 62 | (uint64_t)view->tower << 60 | (uint64_t)view->block << 32;
    for (size_t i = 0; i < plan->top_k; i++) {
        uint32_t number = rng_below(rng, base + i, (uint32_t)(view->experts - i));
        int expert = 0;
        for (;; expert++) { /* the number-th of those not picked yet */
            bool taken = false;
            for (size_t k = 0; k < i; k++)
                taken = taken || picked[k] == expert;
            if (!taken && number-- == 0)
                break;
        }
        picked[i] = expert;
    }
    return plan->top_k;
}

const struct freeze_policy freeze_random = {.name = "random",
                                            .source = "the control of a comparison",
                                            .counts = true,
                                            .formula = "freeze_top_k experts, drawn uniformly",
                                            .pick = pick};
