/* The algebra of a covariance matrix, for selectors by Gaussians.
 *
 *     if (gaussian_factorise(covariance, n))                   // covariance becomes L
 *         gaussian_invert(covariance, n, inverse, whitening);  // whitening (x − mean) has unit covariance
 */
#ifndef MTIL_HARNESS_SELECTORS_GAUSSIAN_H
#define MTIL_HARNESS_SELECTORS_GAUSSIAN_H

#include <stdbool.h>
#include <stddef.h>

/* matrix [n, n] = L Lᵀ, L in its lower triangle; false: it is not positive definite. */
bool gaussian_factorise(double *matrix, size_t n);

/* L⁻¹ of a lower triangle, row by row: L⁻¹ L = 1. inverse and out: [n, n] */
void gaussian_invert(const double *lower, size_t n, double *inverse, float *out);

#endif
