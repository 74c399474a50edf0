/* TIES merging (Yadav et al., NeurIPS 2023) around zero, with scale 1: trim each expert to its largest values, elect a
 * sign per element, average the values that agree with it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "core/alloc.h"
#include "core/scope.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "density", 0, 1, "0.2", "share of an expert's values that trimming keeps"), {0}};

/* The bits of a float's magnitude, which are ordered as the magnitudes are. */
static uint32_t magnitude(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffff;
}

static size_t count_from(const float *values, size_t n, uint32_t least)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += magnitude(values[i]) >= least;
    return count;
}

/* The smallest magnitude that is kept is found bit by bit, which for a whole model is faster than to sort it. */
void ties_trim(const float *values, size_t n, double density, float *trimmed)
{
    size_t kept = (size_t)floor(density * (double)n);
    uint32_t least = 0;
    for (uint32_t bit = 1U << 30; bit > 0; bit >>= 1)
        least |= count_from(values, n, least | bit) >= kept ? bit : 0;
    size_t equal = kept - count_from(values, n, least + 1); /* of those that are kept */
    for (size_t i = 0; i < n; i++) {
        bool keeps = magnitude(values[i]) > least || (magnitude(values[i]) == least && equal > 0);
        equal -= keeps && magnitude(values[i]) == least;
        trimmed[i] = keeps ? values[i] : 0;
    }
}

float ties_elect(double positive, size_t positives, double negative, size_t negatives)
{
    double sum = positive + negative;
    if (sum == 0)
        return 0;
    return (float)(sum > 0 ? positive / (double)positives : negative / (double)negatives);
}

static status combine(const struct merge_sources *sources, const struct options *values, float *merged,
                      struct error *error)
{
    size_t n = expert_size(sources->shape), count = sources->count;
    OWNED float *trimmed = xmalloc(array_size(array_size(count, n), sizeof *trimmed));
    for (size_t k = 0; k < count; k++)
        ties_trim(sources->expert[k], n, options_real(values, "density"), trimmed + k * n);
    for (size_t i = 0; i < n; i++) {
        double sum[2] = {0, 0};
        size_t of[2] = {0, 0};
        for (size_t k = 0; k < count; k++) {
            float value = trimmed[k * n + i];
            sum[value < 0] += (double)value;
            of[value < 0] += value != 0;
        }
        merged[i] = ties_elect(sum[0], of[0], sum[1], of[1]);
    }
    return OK;
}

const struct merge_combiner combine_ties = {.name = "ties",
                                            .source = "Yadav et al., NeurIPS 2023 (TIES)",
                                            .formula = "trim each θ_i to its density · n largest values; elect s = "
                                                       "sign Σ θ_i; θ = mean of those of sign s, per element",
                                            .options = options,
                                            .combine = combine};
