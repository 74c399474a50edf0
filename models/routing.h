/* The rules of routing (adapters/README.md, models/dispatch.h) for one sample, as both backends compute them. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"

/* The spread of the noise on a logit, from the noise matrix's logit u. */
static inline MTIL_HOST_DEVICE float routing_deviation(float u, float epsilon)
{
    return (u > 20.0f ? u : log1pf(expf(u))) + epsilon;
}

/* The K largest of z, best first; equal values in order of their index. */
static inline MTIL_HOST_DEVICE void routing_top_k(const float *z, size_t experts, size_t top_k, int32_t *chosen)
{
    for (size_t e = 0; e < experts; e++) {
        if (e >= top_k && !(z[e] > z[chosen[top_k - 1]]))
            continue;
        size_t k = e < top_k ? e : top_k - 1;
        for (; k > 0 && z[e] > z[chosen[k - 1]]; k--)
            chosen[k] = chosen[k - 1];
        chosen[k] = (int32_t)e;
    }
}

/* The softmax over the chosen. nothing: Σ 0 · z over all experts, which is NaN where any z is not finite; the largest are
 * unknown then, and the gates are NaN. */
static inline MTIL_HOST_DEVICE void routing_gates_of(const float *z, double nothing, const int32_t *chosen,
                                                     size_t top_k, float *gates)
{
    double total = nothing;
    for (size_t k = 0; k < top_k; k++)
        total += exp((double)z[chosen[k]] - (double)z[chosen[0]]);
    for (size_t k = 0; k < top_k; k++)
        gates[k] = (float)(exp((double)z[chosen[k]] - (double)z[chosen[0]]) / total);
}

static inline MTIL_HOST_DEVICE void routing_gates(const float *z, size_t experts, const int32_t *chosen, size_t top_k,
                                                  float *gates)
{
    double nothing = 0;
    for (size_t e = 0; e < experts; e++)
        nothing += 0.0 * (double)z[e];
    routing_gates_of(z, nothing, chosen, top_k, gates);
}

/* Σ_j g_j dg_j, which every gradient of a sample's chosen logits has. */
static inline MTIL_HOST_DEVICE float routing_mean(size_t top_k, const float *gates, const float *dgates)
{
    float mean = 0;
    for (size_t k = 0; k < top_k; k++)
        mean += gates[k] * dgates[k];
    return mean;
}

/* The gradient of a chosen logit, dz = g (dg − mean), and of its noise logit, du = dz n σ(u). */
static inline MTIL_HOST_DEVICE float routing_logit_gradient(float gate, float dgate, float mean)
{
    return gate * (dgate - mean);
}

static inline MTIL_HOST_DEVICE float routing_noise_gradient(float dz, float u, float n)
{
    return dz * n * (1.0f / (1.0f + expf(-u)));
}

/* Gradients of logits below this count as 0: their products would be denormal numbers, which are a hundred times as slow on a
 * CPU and train nothing. NaN stays. */
static inline MTIL_HOST_DEVICE float routing_drop_tiny(float dz)
{
    return fabsf(dz) < 1e-30f ? 0.0f : dz;
}

/* The weights of a sample's choices with aligned output (struct route_softmax). */
static inline MTIL_HOST_DEVICE void routing_align(size_t top_k, bool each, const int32_t *slot, const float *gates,
                                                  float *weights)
{
    float total = 0, kept = 0;
    for (size_t k = 0; k < top_k; k++) {
        total += slot[k] >= 0 ? gates[k] : 0;
        kept += slot[k] >= 0;
    }
    for (size_t k = 0; k < top_k; k++)
        weights[k] = slot[k] < 0            ? gates[k]
                     : !each && kept > 1.0f ? gates[k] + (1.0f - total) / kept
                                            : 1.0f + 0.0f * gates[k]; /* NaN stays */
}

/* The expert of the sample at position `rank` in a random order of `samples` (struct partition). */
static inline MTIL_HOST_DEVICE int32_t routing_group(size_t rank, size_t samples, size_t experts)
{
    size_t each = samples / experts, larger = samples % experts, first = larger * (each + 1);
    return (int32_t)(rank < first ? rank / (each + 1) : larger + (rank - first) / each);
}

/* Row b · L + l of samples with lengths, or its sample's last row where l is past the length. */
static inline MTIL_HOST_DEVICE int32_t routing_own_row(int32_t row, int32_t positions, const int32_t *lengths)
{
    int32_t b = row / positions, end = b * positions + lengths[b];
    return row < end ? row : end - 1;
}

/* --- The balance loss (struct balance in models/dispatch.h) --- */

static inline MTIL_HOST_DEVICE bool routing_is_chosen(const int32_t *chosen, size_t top_k, size_t e)
{
    bool found = false;
    for (size_t k = 0; k < top_k; k++)
        found = found || chosen[k] == (int32_t)e;
    return found;
}

/* The expert of the (K + 1)-th largest z; −1 where all are chosen. */
static inline MTIL_HOST_DEVICE int32_t routing_next(const float *z, size_t experts, size_t top_k, const int32_t *chosen)
{
    int32_t next = -1;
    for (size_t e = 0; e < experts; e++)
        if (!routing_is_chosen(chosen, top_k, e) && (next < 0 || z[e] > z[next]))
            next = (int32_t)e;
    return next;
}

/* The distance of an expert's clean logit above the logit that it must exceed to be chosen, in deviations s of its noise n. */
static inline MTIL_HOST_DEVICE float routing_margin(float z, float s, float n, float threshold)
{
    return (z - n * s - threshold) / s;
}

/* Φ and φ, the normal distribution and its density */
static inline MTIL_HOST_DEVICE float routing_probability(float margin)
{
    return 0.5f * erfcf(-0.70710678f * margin);
}

static inline MTIL_HOST_DEVICE float routing_density(float margin)
{
    return 0.39894228f * expf(-0.5f * margin * margin);
}

static inline MTIL_HOST_DEVICE float routing_sigmoid(float u)
{
    return 1.0f / (1.0f + expf(-u));
}

/* Slopes of the probability that an expert is chosen: along its clean logit (and, negative, along the threshold) and along
 * its noise logit u. */
struct routing_slopes {
    float clean, noise;
};
static inline MTIL_HOST_DEVICE struct routing_slopes routing_slopes(float z, float u, float n, float threshold,
                                                                    float epsilon)
{
    float s = routing_deviation(u, epsilon), margin = routing_margin(z, s, n, threshold);
    struct routing_slopes slopes;
    slopes.clean = routing_density(margin) / s;
    slopes.noise = -slopes.clean * margin * routing_sigmoid(u);
    return slopes;
}

/* For softmax top-k (struct balance_softmax): returns (population deviation / mean)² of n values, 0 where all are 0, and
 * replaces the values by its slopes times weight. */
static inline MTIL_HOST_DEVICE double routing_population_variation(double *values, size_t n, double weight)
{
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++)
        variance += (values[i] - mean) * (values[i] - mean);
    variance /= (double)n;
    double below = mean == 0 ? 1 : mean * mean, pull = mean == 0 ? 0 : variance / mean,
           factor = weight * 2 / (double)n / below;
    for (size_t i = 0; i < n; i++)
        values[i] = factor * (values[i] - mean - pull);
    return variance / below;
}

/* Returns CV² of n values, unbiased variance / (mean² + 1e-10), and replaces the values by its slopes times weight. */
static inline MTIL_HOST_DEVICE double routing_variation(double *values, size_t n, double weight)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    double variance = n > 1 ? squares / (double)(n - 1) : 0 * squares, below = mean * mean + 1e-10;
    for (size_t i = 0; i < n; i++)
        values[i] = weight * (2 * (values[i] - mean) / (double)(n > 1 ? n - 1 : 1) / below -
                              variance * 2 * mean / (double)n / (below * below));
    return variance / below;
}
