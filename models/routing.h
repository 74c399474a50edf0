/* The rules of noisy top-k routing (adapters/README.md) for one sample, as both backends compute them. */
#ifndef MTIL_MODELS_ROUTING_H
#define MTIL_MODELS_ROUTING_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/host_device.h"

/* The spread of the noise on a logit, from the noise matrix's logit u. */
static inline MTIL_HOST_DEVICE float routing_deviation(float u, float epsilon)
{
    return (u > 20.0f ? u : log1pf(expf(u))) + epsilon;
}

/* The K largest of z, best first; equal values in order of their index. */
static inline MTIL_HOST_DEVICE void routing_top_k(const float *z, size_t experts, size_t top_k, int32_t *chosen)
{
    for (size_t k = 0; k < top_k; k++) {
        int32_t best = -1;
        for (size_t e = 0; e < experts; e++) {
            bool taken = false;
            for (size_t j = 0; j < k; j++)
                taken = taken || chosen[j] == (int32_t)e;
            if (!taken && (best < 0 || z[e] > z[best]))
                best = (int32_t)e;
        }
        chosen[k] = best;
    }
}

/* The softmax over the chosen. Gates are NaN where any logit is not finite, chosen or not: then which are the largest is
 * unknown. */
static inline MTIL_HOST_DEVICE void routing_gates(const float *z, size_t experts, const int32_t *chosen, size_t top_k,
                                                  float *gates)
{
    double total = 0;
    for (size_t e = 0; e < experts; e++)
        total += 0.0 * (double)z[e];
    for (size_t k = 0; k < top_k; k++)
        total += exp((double)z[chosen[k]] - (double)z[chosen[0]]);
    for (size_t k = 0; k < top_k; k++)
        gates[k] = (float)(exp((double)z[chosen[k]] - (double)z[chosen[0]]) / total);
}

/* Gradients of the chosen logits, dz_k = g_k (dg_k − Σ_j g_j dg_j), and of their noise logits, du_k = dz_k n σ(u). u and n
 * are of all experts. */
static inline MTIL_HOST_DEVICE void routing_gradients(size_t top_k, const int32_t *chosen, const float *gates,
                                                      const float *dgates, const float *u, const float *n, float *dz,
                                                      float *du)
{
    float mean = 0;
    for (size_t k = 0; k < top_k; k++)
        mean += gates[k] * dgates[k];
    for (size_t k = 0; k < top_k; k++) {
        int32_t e = chosen[k];
        dz[k] = e >= 0 ? gates[k] * (dgates[k] - mean) : 0;
        du[k] = e >= 0 ? dz[k] * n[e] * (1.0f / (1.0f + expf(-u[e]))) : 0;
    }
}

#endif
