/* Vectors of classes beside CLIP's texts, and Gaussians of their features (LADA: Luo et al., ICML 2025, arXiv 2505.23271), on the
 * host in double precision. With unit features x and the vectors w of a class (equations 5 and 6):
 *
 *     score of the class = text score + weight · Σ_w exp(−sharpness · (1 − x · w))
 *
 *     label_memory_add(&memory, class, &count, …);                                    // a new class
 *     double loss = label_memory_loss(&memory, &batch, first, gradient);              // training: vectors from `first` on
 *     label_memory_step(&memory, first, &schedule, step, gradient, moments);
 *     label_memory_scores(&memory, x, n, affinities, scores);
 *     label_memory_free(&memory);
 *
 * The clusters of a class's features are found by k-means, or are mixtures of spherical Gaussians. rows [n, width];
 * count, of the clusters, is at most n; means [count, width].
 *
 *     clusters_means(rows, n, width, count, rng, means);
 *     clusters_gaussians(rows, n, width, count, rng, gaussians, means);
 */
#pragma once

#include "core/linear.h"
#include "core/rng.h"
#include "harness/train/serializer.h"

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

/* Rows [count, width] of classes, those of a class one after the other. */
struct label_rows {
    size_t count;
    double *values;
    int32_t *owners; /* [count] */
};

struct label_memory {
    size_t width, classes;
    double weight, sharpness;
    struct threads *pool;
    struct label_rows vectors, means;
    struct gaussian *gaussians; /* [means.count] */
};

/* The vectors of the next class: centres of its features, as unit vectors, rows [n, width]. */
void label_memory_add(struct label_memory *memory, const double *rows, size_t n, size_t vectors, struct rng rng);
/* Fits the Gaussians of a class to its features, not normalised: rows [n, width]. */
void label_memory_fit(struct label_memory *memory, size_t class, const double *rows, size_t n, size_t gaussians,
                      struct rng rng);
void label_memory_cut(struct label_memory *memory, size_t classes); /* forgets the vectors of later classes */
void label_memory_free(struct label_memory *memory);
status label_memory_keep(struct label_memory *memory, const struct serializer *serializer, struct error *error);

/* A feature of each Gaussian (equation 9): x [means.count, width], not normalised. */
void label_memory_draw(const struct label_memory *memory, struct rng rng, double *x);

/* scores [n, classes] += weight · Σ …; x [n, width]; affinities [n, vectors.count] receives the terms of the sum. */
void label_memory_scores(const struct label_memory *memory, const double *x, size_t n, double *affinities,
                         double *scores);

struct label_batch {
    size_t n;
    double *x;       /* [n, width] */
    int32_t *labels; /* [n] */
    double *weights; /* [n] */
    double *scores;  /* [n, classes]: in: of the texts, out: their gradient */
    double *work;    /* n · (2 vectors.count + width) values */
};
/* mean over rows of weights · cross-entropy (equations 7 and 10); gradient [vectors.count − first, width]. */
double label_memory_loss(const struct label_memory *memory, struct label_batch *batch, size_t first, double *gradient);

/* AdamW under PyTorch's OneCycleLR with its defaults: in the first 0.3 of the steps the rate rises from 1/25 of the peak and beta1
 * falls from 0.95 to 0.85, then the rate falls to 1/250,000 and beta1 rises again, along cosines. moments: twice the gradient's
 * size, zeros before step 0. */
struct one_cycle {
    size_t steps;
    double peak, decay;
};
void label_memory_step(struct label_memory *memory, size_t first, const struct one_cycle *cycle, size_t step,
                       const double *gradient, double *moments);
