/* Clusters of a class's features on the host, in double precision: k-means, and mixtures of Gaussians that vary alike in every
 * direction. rows [n, width]; count, of the clusters, is at most n; means [count, width].
 *
 *     clusters_means(rows, n, width, count, rng, means);
 *     clusters_gaussians(rows, n, width, count, rng, gaussians, means);
 */
#pragma once

#include "core/rng.h"

struct gaussian {
    double weight, variance; /* of the mixture; in every direction */
};

/* The best of 10 runs of Lloyd's algorithm by the sum of squared distances, each from k-means++ centres (Arthur & Vassilvitskii
 * 2007): scikit-learn's KMeans but for the draws, which take steps rng.step … + 9. */
void clusters_means(const double *rows, size_t n, size_t width, size_t count, struct rng rng, double *means);

/* Expectation and maximisation from one run of k-means until the mean log-likelihood changes by less than 1e-3, at most 100
 * rounds, with 1e-6 added to variances: scikit-learn's GaussianMixture with spherical covariances. */
void clusters_gaussians(const double *rows, size_t n, size_t width, size_t count, struct rng rng,
                        struct gaussian *gaussians, double *means);
