/* Two linear layers that align images with texts, and discriminant analysis (ENGINE: Zhou et al., ICCV 2025, arXiv 2503.08510), on
 * the host in double precision. With the images' layer U and the texts' layer V (projection.h; their last input is 1, for the bias)
 * and row i an image u_i = U x_i / ‖U x_i‖ beside the text v_i = V t_i / ‖V t_i‖ of its class:
 *
 *     loss = ½ (C(scale · u vᵀ) + C(scale · v uᵀ)) + view_weight · C(u aᵀ) + reference_weight · C(v rᵀ)
 *
 * C is the mean cross-entropy of rows whose own column is right, a are unit features of other views of the images, r those of other
 * texts of the classes.
 *
 *     double loss = alignment_loss(layers, &batch, &rule, gradients);           // training, with host_sgd
 *     TRY(discriminant_add(&analysis, rows, labels, n, classes, pool, error)); // the classes of one more task
 *     discriminant_scores(&analysis, x, n, pool, scores);
 */
#pragma once

#include "harness/train/services/projection.h"

struct alignment_rule {
    double scale, view_weight, reference_weight;
};

struct alignment_batch {
    size_t n, images;           /* rows; those that have views come first */
    double *x[2];               /* [n, width + 1], of images and texts */
    double *views, *references; /* [images, width], [n, width]: unit rows */
    double *work;               /* alignment_work(n, width) values */
};

size_t alignment_work(size_t n, size_t width);

/* gradients: of both layers, [width, width + 1] */
double alignment_loss(const struct projection layers[2], const struct alignment_batch *batch,
                      const struct alignment_rule *rule, double *const gradients[2]);

/* An image's cosines [count] with the classes: each is taken (1 − weight) times, and to each of the `top` highest ones is added weight ·
 * x · p, x the unit feature, p the unit mean of the `pairs` [count, stride, width] of this class and the others of the highest. With
 * fewer than two of them nothing changes. */
struct alignment_ranking {
    size_t width, stride, top;
    double weight;
    const float *pairs;
};
void alignment_rank(const struct alignment_ranking *ranking, const double *x, double *cosines, size_t count);

/* With μ_c the mean of a class's unit rows, and S of all rows less their class's mean in a task of n rows:
 *
 *     P_task = width · (SᵀS + tr(SᵀS) / (n − 1) · I)⁻¹,   score of c = (P μ_c) · x − ½ μ_c · P μ_c − log classes
 *
 * divided by the length of a row of scores. After K classes a task of T − K makes P ← K/T · P + (T − K)/T · P_task +
 * K/T · (T − K) / T² · d dᵀ, d the difference between the mean μ_c of both: the public code's update. */
struct discriminant {
    size_t width, classes;
    double *means, *precision; /* [classes, width], [width, width] */
    double *rows, *biases;     /* [classes, width], [classes]: P μ_c and the rest */
};

/* labels: from `analysis->classes` on. A class without rows has the mean 0. ERROR_FORMAT where rows are not finite. */
status discriminant_add(struct discriminant *analysis, const double *rows, const int32_t *labels, size_t n,
                        size_t classes, struct threads *pool, struct error *error);
/* Rows and biases from means and precision, after these were restored. */
void discriminant_refresh(struct discriminant *analysis, struct threads *pool);
void discriminant_scores(const struct discriminant *analysis, const double *x, size_t n, struct threads *pool,
                         double *scores);
void discriminant_free(struct discriminant *analysis);
