/* The sources weighted by how often each was chosen since the task began: Σ c_i θ_i / Σ c_i; the mean where none was. */
#include "adapters/merge/policies.h"

static void weigh(const struct merge_view *view, struct merge *merge)
{
    const int32_t *counts = view->counts + merge->block * view->experts;
    double total = 0;
    for (size_t i = 0; i < merge->sources; i++)
        total += counts[merge->source[i]];
    for (size_t i = 0; i < merge->sources; i++)
        merge->weight[i] = (float)(total > 0 ? counts[merge->source[i]] / total : 1.0 / (double)merge->sources);
}

const struct merge_combiner combine_weighted = {
    .name = "weighted",
    .source = "Li et al., ICLR 2024 (M-SMoE: usage frequencies)",
    .formula = "θ = Σ c_i θ_i / Σ c_i, c_i: how often each was chosen since the task began",
    .weigh = weigh};
