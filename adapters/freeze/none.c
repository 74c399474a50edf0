/* Nothing is frozen. Also the template for a policy: copy this file, fill pick, and add the name to merge.h. */
#include "adapters/merge.h"

static size_t pick(const struct freeze_view *view, const struct freeze_plan *plan, const struct rng *rng, int *picked)
{
    return 0;
}

const struct freeze_policy freeze_none = {
    .name = "none", .source = "ablation of MoE-Adapters", .formula = "no expert", .pick = pick};
