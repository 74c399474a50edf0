/* The singular value decomposition of a matrix in double precision, on the calling thread.
 *
 *     svd(m, n, a, u, s, vt);                  // a = u · diag(s) · vt, s falling; k = min(m, n) of each
 *
 * The signs of a pair of singular vectors are LAPACK's choice. The same matrix gives the same bits on one machine.
 */
#ifndef MTIL_CORE_SVD_H
#define MTIL_CORE_SVD_H

#include <stddef.h>

/* Row-major: a [m, n], which is unchanged, u [m, k], s [k], vt [k, n]. Where a holds a value that is not finite, or LAPACK
 * finds no decomposition, all of s is NaN. */
void svd(size_t m, size_t n, const double *a, double *u, double *s, double *vt);

#endif
