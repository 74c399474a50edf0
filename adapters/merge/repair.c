/* The mean of the experts, after which every hidden unit has the statistics of those of its sources: weights that are averaged let
 * activations shrink (Jordan et al., REPAIR, ICLR 2023, Section 4). Statistics are those of z = W₁ x + b₁ on the probes. */
#include <math.h>
#include <stdlib.h>

#include "adapters/merge/policies.h"
#include "core/alloc.h"
#include "core/scope.h"

struct moments {
    double mean, deviation;
};

/* moments [m] of the hidden units before their activation */
static void hidden_moments(struct expert_shape s, const float *expert, const float *probes, size_t count,
                           struct moments *moments)
{
    OWNED float *units = xmalloc(array_size(array_size(count, s.hidden), sizeof *units));
    s.activation = ACTIVATION_NONE;
    for (size_t p = 0; p < count; p++)
        expert_forward(s, expert, 1, probes + p * s.width, units + p * s.hidden, NULL);
    for (size_t i = 0; i < s.hidden; i++) {
        double mean = 0, squares = 0;
        for (size_t p = 0; p < count; p++)
            mean += (double)units[p * s.hidden + i] / (double)count;
        for (size_t p = 0; p < count; p++) {
            double d = (double)units[p * s.hidden + i] - mean;
            squares += d * d / (double)count;
        }
        moments[i] = (struct moments){mean, sqrt(squares)};
    }
}

/* W₁ and b₁ of a unit become s W₁ and s (b₁ − μ) + μ', where s = σ' / σ. A unit that is constant on the probes is only shifted. */
static void repair_unit(struct expert_shape shape, size_t unit, struct moments now, struct moments wanted,
                        float *merged)
{
    float *weight = merged + expert_part(shape, 0).offset + unit * shape.width,
          *bias = merged + expert_part(shape, 1).offset + unit;
    double scale = now.deviation > 0 ? wanted.deviation / now.deviation : 1;
    for (size_t j = 0; j < shape.width; j++)
        weight[j] = (float)(scale * (double)weight[j]);
    *bias = (float)(scale * ((double)*bias - now.mean) + wanted.mean);
}

static status combine(const struct merge_sources *sources, const struct options *values, float *merged,
                      struct error *error)
{
    struct expert_shape shape = sources->shape;
    size_t m = shape.hidden;
    double share = 1 / (double)sources->count;
    OWNED struct moments *of = xcalloc(3 * m, sizeof *of);
    struct moments *wanted = of + m, *now = wanted + m;
    for (size_t i = 0; i < expert_size(shape); i++) {
        double total = 0;
        for (size_t k = 0; k < sources->count; k++)
            total += (double)sources->expert[k][i];
        merged[i] = (float)(share * total);
    }
    for (size_t k = 0; k < sources->count; k++) {
        hidden_moments(shape, sources->expert[k], sources->probes, sources->probe_count, of);
        for (size_t i = 0; i < m; i++) {
            wanted[i].mean += share * of[i].mean;
            wanted[i].deviation += share * of[i].deviation;
        }
    }
    hidden_moments(shape, merged, sources->probes, sources->probe_count, now);
    for (size_t i = 0; i < m; i++)
        repair_unit(shape, i, now[i], wanted[i], merged);
    return OK;
}

const struct merge_combiner combine_repair = {
    .name = "repair",
    .source = "Jordan et al., ICLR 2023 (REPAIR)",
    .formula = "θ = Σ θ_i / n, then each hidden unit on probes: mean Σ μ_i / n, deviation Σ σ_i / n",
    .needs = NEEDS_PROBES,
    .combine = combine};
