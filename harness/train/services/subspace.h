/* The directions of a layer's inputs that training must leave alone, and a low-rank start beside them (KeepLoRA: Luo et al.,
 * ICLR 2026, arXiv 2601.19659). With U the orthonormal basis of these directions:
 *
 *     U starts with the first left singular vectors of the layer's weight (its Section 4.1)
 *     G = gradientᵀ − U Uᵀ gradientᵀ = A diag(s) Vᵀ, and the update of a task is A B: A fixed, B starts as diag(s) Vᵀ (4.2)
 *     after a task, U gains the left singular vectors of R = F − U Uᵀ F, F the layer's inputs (4.3)
 *
 *     struct subspace u = {.width = d, .pool = pool};
 *     TRY(subspace_start(&u, weight, d, 0.85, error));
 *     TRY(subspace_low_rank(&u, gradient, out, 16, a, b, error));
 *     subspace_products(&u, features, n, products);
 *     TRY(subspace_extend(&u, products, 0.99, error));
 *     subspace_free(&u);
 *
 * All in double precision on the host. The vectors of R are those of R Rᵀ, so that of F no more than F Fᵀ is needed.
 */
#ifndef MTIL_HARNESS_TRAIN_SERVICES_SUBSPACE_H
#define MTIL_HARNESS_TRAIN_SERVICES_SUBSPACE_H

#include "core/status.h"
#include "core/threads.h"

struct subspace {
    size_t width, rank;
    double *basis; /* [width, width]: its first rank rows are Uᵀ; NULL: rank is 0 */
    struct threads *pool;
};
void subspace_free(struct subspace *subspace);

/* U = the first r left singular vectors of weight [width, inputs], r the number of singular values whose running share of Σ s²
 * is below `share`, at least 1. The vectors are of the weight's outputs, as in the public code, so the layer is square. */
status subspace_start(struct subspace *subspace, const float *weight, size_t inputs, double share, struct error *error);

/* From the gradient [out, width] of a weight: a [rank, width] is Aᵀ, b [out, rank] is Bᵀ, so that b a is the update in the
 * weight's own shape. rank is at most the smaller side. */
status subspace_low_rank(const struct subspace *subspace, const float *gradient, size_t out, size_t rank, float *a,
                         float *b, struct error *error);

/* products [width, width] = F Fᵀ, features [n, width] the layer's inputs */
void subspace_products(const struct subspace *subspace, const float *features, size_t n, double *products);

/* Adds left singular vectors of R, in order, until U covers `share` of Σ s²(F). */
status subspace_extend(struct subspace *subspace, const double *products, double share, struct error *error);

/* projector [width, width] = U Uᵀ */
void subspace_projector(const struct subspace *subspace, double *projector);

#endif
