/* Fisher-weighted averaging (Matena & Raffel, NeurIPS 2022, equation 3): per element Σ F_i θ_i / Σ F_i, where F_i is the
 * sum of squared gradients, at least a floor. */
#include <math.h>

#include "adapters/merge/policies.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "floor", 1e-30, 1, "1e-8", "least Fisher weight of an element"), {0}};

static status combine(const struct merge_sources *sources, const struct options *values, float *merged,
                      struct error *error)
{
    double lowest = options_real(values, "floor");
    for (size_t i = 0; i < expert_size(sources->shape); i++) {
        double total = 0, weights = 0;
        for (size_t k = 0; k < sources->count; k++) {
            double weight = fmax((double)sources->squared_gradients[k][i], lowest);
            total += weight * (double)sources->expert[k][i];
            weights += weight;
        }
        merged[i] = (float)(total / weights);
    }
    return OK;
}

const struct merge_combiner combine_fisher = {.name = "fisher",
                                              .source = "Matena & Raffel, NeurIPS 2022",
                                              .formula = "θ = Σ F_i θ_i / Σ F_i per element, F_i = max(Σ g², floor)",
                                              .needs = NEEDS_SQUARED_GRADIENTS,
                                              .options = options,
                                              .combine = combine};
