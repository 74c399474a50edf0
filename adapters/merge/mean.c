/* The mean of the sources, in every part: Park, Algorithm 1, line 21. */
#include "adapters/merge/policies.h"

static void weigh(const struct merge_view *view, struct merge *merge)
{
    for (size_t i = 0; i < merge->sources; i++)
        merge->weight[i] = 1.0f / (float)merge->sources;
}

const struct merge_combiner combine_mean = {.name = "mean",
                                            .source =
                                                "Park, Learning More Generalized Experts by Merging Experts in MoE",
                                            .formula = "θ = Σ θ_i / n",
                                            .weigh = weigh};
