#include "core/svd.h"

#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"

/* cblas.h has no LAPACK. */
void dgesdd_(const char *jobz, const int *m, const int *n, double *a, const int *lda, double *s, double *u,
             const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *iwork, int *info);
void dgesvd_(const char *jobu, const char *jobvt, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *info);

/* An OpenBLAS without threads may be without locks, too, and ranks decompose at the same time. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* LAPACK's operands: a [m, n] column by column. */
struct operands {
    int m, n, k;
    double *a, *u, *s, *vt;
};

/* Divide and conquer, or QR iterations, several times as slow. Work of one value asks for its length. */
static int decompose(const struct operands *o, bool divide, double *work, int length, int *integers)
{
    int info = 0;
    if (divide)
        dgesdd_("S", &o->m, &o->n, o->a, &o->m, o->s, o->u, &o->m, o->vt, &o->k, work, &length, integers, &info);
    else
        dgesvd_("S", "S", &o->m, &o->n, o->a, &o->m, o->s, o->u, &o->m, o->vt, &o->k, work, &length, &info);
    return info;
}

static int decompose_by(const struct operands *o, bool divide)
{
    double best;
    int *integers = xmalloc(8 * (size_t)o->k * sizeof *integers);
    decompose(o, divide, &best, -1, integers);
    double *work = xmalloc((size_t)best * sizeof *work);
    int info = decompose(o, divide, work, (int)best, integers);
    free(work);
    free(integers);
    return info;
}

static void fix_sign(double *u, double *vt, size_t rows, size_t columns, size_t k, size_t i)
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

/* LAPACK stores by columns, and so sees Aᵀ = V diag(s) Uᵀ. Its divide and conquer gives up on some matrices that lack rank, which
 * it decomposes when they are scaled or transposed; QR iterations do not. */
status svd_create(struct svd *svd, double *a, size_t rows, size_t columns, struct error *error)
{
    size_t n = rows * columns, k = rows < columns ? rows : columns;
    *svd = (struct svd){xmalloc(array_size(rows, k * sizeof *svd->u)), xmalloc(array_size(k, sizeof *svd->s)),
                        xmalloc(array_size(k, columns * sizeof *svd->vt))};
    struct operands o = {
        .m = (int)columns, .n = (int)rows, .k = (int)k, .a = a, .u = svd->vt, .s = svd->s, .vt = svd->u};
    for (size_t i = 0; i < n; i++)
        if (!isfinite(a[i]))
            return error_set(error, ERROR_FORMAT, "singular values: value %zu of %zu × %zu is not finite", i, rows,
                             columns);
    double *copy = xmalloc(array_size(n, sizeof *copy));
    memcpy(copy, a, n * sizeof *copy);
    pthread_mutex_lock(&one_at_a_time);
    openblas_set_num_threads(1);
    int info = decompose_by(&o, true);
    if (info > 0) {
        o.a = copy;
        info = decompose_by(&o, false);
    }
    pthread_mutex_unlock(&one_at_a_time);
    free(copy);
    for (size_t i = 0; info == 0 && i < k; i++)
        fix_sign(svd->u, svd->vt, rows, columns, k, i);
    return info == 0 ? OK
                     : error_set(error, ERROR_FORMAT, "singular values of %zu × %zu: LAPACK did not converge (info %d)",
                                 rows, columns, info);
}

void svd_free(struct svd *svd)
{
    free(svd->u);
    free(svd->s);
    free(svd->vt);
}
