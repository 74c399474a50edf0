/* The singular value decomposition in double precision, A = U diag(s) Vᵀ, by LAPACK's divide and conquer.
 *
 *     struct svd svd;
 *     TRY(svd_create(&svd, a, rows, columns, error));               // svd.u, svd.s, svd.vt
 *     svd_free(&svd);
 *
 * Row-major. One thread does the work, so the bits are the same for any number of them. s descends; the entry of a column of U
 * that is largest in magnitude (the first of equal ones) is positive.
 */
#pragma once

#include <stddef.h>

#include "core/status.h"

struct svd {
    double *u, *s, *vt; /* [rows, k], [k], [k, columns], k = min(rows, columns) */
};

/* a [rows, columns] is overwritten. ERROR_FORMAT where it is not finite or LAPACK does not converge. */
status svd_create(struct svd *svd, double *a, size_t rows, size_t columns, struct error *error);
void svd_free(struct svd *svd); /* after a failure, too */
