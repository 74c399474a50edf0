#include "core/svd.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

/* cblas.h has no LAPACK. */
void dgesdd_(const char *jobz, const int *m, const int *n, double *a, const int *lda, double *s, double *u,
             const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *iwork, int *info);

static void turn(double *u, double *vt, size_t rows, size_t columns, size_t k, size_t i)
{
    size_t largest = 0;
    for (size_t r = 1; r < rows; r++)
        if (fabs(u[r * k + i]) > fabs(u[largest * k + i]))
            largest = r;
    if (u[largest * k + i] >= 0)
        return;
    for (size_t r = 0; r < rows; r++)
        u[r * k + i] = -u[r * k + i];
    for (size_t c = 0; c < columns; c++)
        vt[i * columns + c] = -vt[i * columns + c];
}

/* LAPACK stores by columns, and so sees Aᵀ = V diag(s) Uᵀ. */
status svd(double *a, size_t rows, size_t columns, double *u, double *s, double *vt, struct error *error)
{
    int m = (int)columns, n = (int)rows, k = m < n ? m : n, asked = -1, info = 0;
    double best;
    for (size_t i = 0; i < rows * columns; i++)
        if (!isfinite(a[i]))
            return error_set(error, ERROR_FORMAT, "singular values: value %zu of %zu × %zu is not finite", i, rows,
                             columns);
    int *integers = xmalloc(8 * (size_t)k * sizeof *integers);
    openblas_set_num_threads(1);
    dgesdd_("S", &m, &n, a, &m, s, vt, &m, u, &k, &best, &asked, integers, &info);
    int length = (int)best;
    double *work = xmalloc((size_t)length * sizeof *work);
    dgesdd_("S", &m, &n, a, &m, s, vt, &m, u, &k, work, &length, integers, &info);
    free(work);
    free(integers);
    for (size_t i = 0; info == 0 && i < (size_t)k; i++)
        turn(u, vt, rows, columns, (size_t)k, i);
    return info == 0 ? OK
                     : error_set(error, ERROR_FORMAT,
                                 "singular values of %zu × %zu: LAPACK's dgesdd did not converge "
                                 "(info %d)",
                                 rows, columns, info);
}
