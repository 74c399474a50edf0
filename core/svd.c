#include "core/svd.h"

#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* cblas.h has no LAPACK. */
void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda, double *s, double *u,
             const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *iwork, int *info);

/* An OpenBLAS without threads may be without locks, too, and ranks decompose at the same time. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static bool all_finite(size_t n, const double *a)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(a[i]))
            return false;
    return true;
}

/* LAPACK's matrices are column by column, so that it sees aᵀ = vtᵀ · diag(s) · uᵀ. */
static int decompose(size_t m, size_t n, double *a, double *u, double *s, double *vt)
{
    int rows = (int)n, columns = (int)m, k = rows < columns ? rows : columns, ask = -1, info = 0, room;
    int *integers = xmalloc(8 * (size_t)k * sizeof *integers);
    double size;
    dgesdd_("S", &rows, &columns, a, &rows, s, vt, &rows, u, &k, &size, &ask, integers, &info);
    room = (int)size;
    double *work = xmalloc((size_t)room * sizeof *work);
    dgesdd_("S", &rows, &columns, a, &rows, s, vt, &rows, u, &k, work, &room, integers, &info);
    free(work);
    free(integers);
    return info;
}

void svd(size_t m, size_t n, const double *a, double *u, double *s, double *vt)
{
    size_t k = m < n ? m : n;
    if (k == 0)
        return;
    double *copy = xmalloc(m * n * sizeof *copy);
    memcpy(copy, a, m * n * sizeof *copy);
    pthread_mutex_lock(&one_at_a_time);
    openblas_set_num_threads(1); /* the bits of a product depend on their number */
    bool found = all_finite(m * n, a) && decompose(m, n, copy, u, s, vt) == 0;
    pthread_mutex_unlock(&one_at_a_time);
    free(copy);
    for (size_t i = 0; !found && i < k; i++)
        s[i] = NAN;
}
