/* Gaussians of the features of classes, N(μ, Σ) with a covariance of their own (SEED: Rypeść et al., ICLR 2024, arXiv 2401.10191):
 *
 *     struct gaussian_rule rule = {.width = d, .ridge = 1e-8};
 *     float *class = xmalloc(gaussian_values(d) * sizeof *class);
 *     TRY(gaussian_fit(class, &rule, features, n, pool, error));
 *     gaussian_log_densities(class, d, features, n, pool, densities, 1);
 *     double apart = gaussian_divergence(class, other, d);
 *     gaussian_draw(class, d, values);                              // standard normal numbers become a draw
 *
 * Σ = (1 − shrinkage) · S + shrinkage · (mean variance) · 1 + ridge · 1, S the covariance with n in its denominator, or, as RAPF has it
 * (Huang et al., ECCV 2024, arXiv 2407.14143), n − 1 where n > 1 (`unbiased`); to Σ is added the mean of its diagonal there, and the
 * mean of its other entries there (`widened`). Where Σ is not positive definite, the ridge grows tenfold until it is. Computed in double
 * precision; kept as float: μ [width], then L⁻¹ with Σ = L Lᵀ, row by row up to its diagonal.
 */
#pragma once

#include <stdbool.h>

#include "core/status.h"
#include "core/threads.h"

struct gaussian_rule {
    size_t width;
    double ridge, shrinkage; /* ridge: above 0; shrinkage: 0 to 1 */
    bool unbiased, widened;
};

size_t gaussian_values(size_t width);

/* Fits the Gaussian of features [n, width], n at least 1. ERROR_FORMAT where they are not finite. */
status gaussian_fit(float *gaussian, const struct gaussian_rule *rule, const float *features, size_t n,
                    struct threads *pool, struct error *error);

/* out [n] = log N(features of i; μ, Σ), `stride` apart */
void gaussian_log_densities(const float *gaussian, size_t width, const float *features, size_t n, struct threads *pool,
                            double *out, size_t stride);

/* out [n, classes]: for every image the softmax over the classes' Gaussians, one behind the other, of log-densities /
 * temperature */
void gaussian_posteriors(const float *gaussians, size_t classes, size_t width, double temperature,
                         const float *features, size_t n, struct threads *pool, double *out);

/* values [width] = μ + L · values */
void gaussian_draw(const float *gaussian, size_t width, double *values);

/* KL(p ‖ q) = ½ (tr Σq⁻¹ Σp + (μp − μq)ᵀ Σq⁻¹ (μp − μq) − width + log |Σq| / |Σp|), and its mean over all pairs of
 * classes, including each class with itself */
double gaussian_divergence(const float *p, const float *q, size_t width);
double gaussian_mean_divergence(const float *gaussians, size_t classes, size_t width);
