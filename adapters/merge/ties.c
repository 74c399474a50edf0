/* TIES merging (Yadav et al., NeurIPS 2023) around zero, with scale 1: trim each expert to its largest values, elect a
 * sign per element, average the values that agree with it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "core/alloc.h"

static const struct option options[] = {{.name = "density",
                                         .type = OPTION_REAL,
                                         .minimum = 0,
                                         .maximum = 1,
                                         .fallback = "0.2",
                                         .help = "share of an expert's values that trimming keeps"},
                                        {0}};

struct ranked {
    float magnitude;
    size_t index;
};

/* Largest magnitude first; ties: the lowest index. */
static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->magnitude != y->magnitude)
        return x->magnitude < y->magnitude ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* trimmed [n]: the `kept` values of largest magnitude, zero elsewhere. */
static void trim(const float *expert, size_t n, size_t kept, struct ranked *order, float *trimmed)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){fabsf(expert[i]), i};
    qsort(order, n, sizeof *order, compare_ranked);
    memset(trimmed, 0, n * sizeof *trimmed);
    for (size_t i = 0; i < kept; i++)
        trimmed[order[i].index] = expert[order[i].index];
}

/* The mean of those that have the sign of the sum and are not 0; none: 0. trimmed [count, n] */
static float elect_and_merge(const float *trimmed, size_t count, size_t n, size_t i)
{
    double sum = 0, total = 0;
    size_t agreeing = 0;
    for (size_t k = 0; k < count; k++)
        sum += (double)trimmed[k * n + i];
    for (size_t k = 0; k < count; k++)
        if ((double)trimmed[k * n + i] * sum > 0) {
            total += (double)trimmed[k * n + i];
            agreeing++;
        }
    return agreeing > 0 ? (float)(total / (double)agreeing) : 0;
}

static status combine(const struct merge_sources *sources, const struct options *values, float *merged,
                      struct error *error)
{
    (void)error;
    size_t n = expert_size(sources->shape), kept = (size_t)floor(options_real(values, "density") * (double)n);
    struct ranked *order = xmalloc(array_size(n, sizeof *order));
    float *trimmed = xmalloc(array_size(array_size(sources->count, n), sizeof *trimmed));
    for (size_t k = 0; k < sources->count; k++)
        trim(sources->expert[k], n, kept, order, trimmed + k * n);
    for (size_t i = 0; i < n; i++)
        merged[i] = elect_and_merge(trimmed, sources->count, n, i);
    free(trimmed);
    free(order);
    return OK;
}

const struct merge_combiner combine_ties = {.name = "ties",
                                            .source = "Yadav et al., NeurIPS 2023 (TIES)",
                                            .formula = "trim each θ_i to its density · n largest values; elect s = "
                                                       "sign Σ θ_i; θ = mean of those of sign s, per element",
                                            .options = options,
                                            .combine = combine};
