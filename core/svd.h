/* The singular value decomposition in double precision, A = U diag(s) Vᵀ, by LAPACK's divide and conquer.
 *
 *     size_t k = rows < columns ? rows : columns;
 *     TRY(svd(a, rows, columns, u, s, vt, error));                  // u [rows, k], s [k], vt [k, columns]
 *
 * Row-major. One thread does the work, so the bits are the same for any number of them. s descends; the entry of a column of U
 * that is largest in magnitude (the first of equal ones) is positive.
 */
#ifndef MTIL_CORE_SVD_H
#define MTIL_CORE_SVD_H

#include <stddef.h>

#include "core/status.h"

/* a [rows, columns] is overwritten. ERROR_FORMAT where it is not finite or LAPACK does not converge. */
status svd(double *a, size_t rows, size_t columns, double *u, double *s, double *vt, struct error *error);

#endif
