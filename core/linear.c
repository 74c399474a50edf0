/* The file that calls BLAS and LAPACK. Tiles [r, c] are stored column by column, as LAPACK expects them. */
#include "core/linear.h"

#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* cblas.h has no LAPACK. */
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info);
void dgesdd_(const char *jobz, const int *m, const int *n, double *a, const int *lda, double *s, double *u,
             const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *iwork, int *info);
void dgesvd_(const char *jobu, const char *jobvt, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *info);

enum { TILE = 256, PANEL = 32 /* right-hand sides solved together */ };

/* An OpenBLAS built without threads and without locks must not be called by several threads at once, so the calling thread
 * does all jobs. An OpenBLAS with threads is limited to the calling one, because our threads divide the work. */
static void run_jobs(struct threads *pool, size_t jobs, threads_job function, void *context)
{
    const char *built = openblas_get_config();
    if (strstr(built, "SINGLE_THREADED") != NULL && strstr(built, "USE_LOCKING") == NULL) {
        for (size_t job = 0; job < jobs && !threads_stopped(pool); job++)
            function(context, job, 0);
        return;
    }
    openblas_set_num_threads(1);
    threads_run(pool, jobs, function, context);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void linear_unit(double *row, size_t n)
{
    double square = 0;
    for (size_t k = 0; k < n; k++)
        square += row[k] * row[k];
    for (size_t k = 0; k < n; k++)
        row[k] = square > 0 ? row[k] / sqrt(square) : 0;
}

/* --- Small matrices, in one thread --- */

bool linear_cholesky(double *matrix, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double rest = matrix[i * n + j];
            for (size_t k = 0; k < j; k++)
                rest -= matrix[i * n + k] * matrix[j * n + k];
            if (i == j && !(rest > 0))
                return false;
            matrix[i * n + j] = i == j ? sqrt(rest) : rest / matrix[j * n + j];
        }
    return true;
}

void linear_invert_lower(const double *lower, size_t n, double *inverse, float *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double rest = i == j;
            for (size_t k = j; k < i; k++)
                rest -= lower[i * n + k] * inverse[k * n + j];
            inverse[i * n + j] = j > i ? 0 : rest / lower[i * n + i];
            if (out != NULL)
                out[i * n + j] = (float)inverse[i * n + j];
        }
}

/* --- Products --- */

static void multiply_tile(void *context, size_t job, size_t worker)
{
    const struct linear_product *p = context;
    size_t first = job * TILE, count = least(TILE, p->columns - first);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)p->rows, (int)count, (int)p->inner, 1, p->a,
                (int)p->inner, p->b + first * p->inner, (int)p->inner, 0, p->out + first, (int)p->columns);
    for (size_t r = 0; p->map != NULL && r < p->rows; r++)
        p->map(p->context, p->out + r * p->columns + first, count);
}

void linear_multiply(struct threads *pool, const struct linear_product *product)
{
    run_jobs(pool, (product->columns + TILE - 1) / TILE, multiply_tile, (void *)product);
}

/* --- Symmetric matrices --- */

size_t symmetric_values(size_t n)
{
    size_t tiles = n / TILE + (n % TILE > 0);
    return tiles < (size_t)1 << 20 ? tiles * (tiles + 1) / 2 * TILE * TILE : SIZE_MAX;
}

struct symmetric *symmetric_create(size_t n)
{
    struct symmetric *matrix = xmalloc(sizeof *matrix);
    *matrix = (struct symmetric){
        .n = n, .tiles = (n + TILE - 1) / TILE, .values = xcalloc(symmetric_values(n), sizeof *matrix->values)};
    return matrix;
}

void symmetric_destroy(struct symmetric *matrix)
{
    if (matrix != NULL)
        free(matrix->values);
    free(matrix);
}

static double *tile(const struct symmetric *m, size_t i, size_t j)
{
    return m->values + (i * (i + 1) / 2 + j) * TILE * TILE;
}

static int side(const struct symmetric *m, size_t i)
{
    return (int)least(TILE, m->n - i * TILE);
}

/* Work on a matrix; each job is a row of tiles. */
struct work {
    struct symmetric *matrix;
    const double *rows; /* [count, n], or [n, count] */
    size_t count, step; /* step: of the factorisation */
    linear_map map;
    const void *context;
    double *right; /* [columns, n] */
    size_t columns;
};

/* The longest rows come first. */
static size_t row_of(const struct work *w, size_t job)
{
    return w->matrix->tiles - 1 - job;
}

static void add_row(void *context, size_t job, size_t worker)
{
    const struct work *w = context;
    const struct symmetric *m = w->matrix;
    size_t i = row_of(w, job);
    for (size_t j = 0; j <= i; j++)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, side(m, i), side(m, j), (int)w->count, 1,
                    w->rows + i * TILE, (int)m->n, w->rows + j * TILE, (int)m->n, 1, tile(m, i, j), TILE);
}

void symmetric_add(struct symmetric *matrix, struct threads *pool, const double *rows, size_t count)
{
    struct work work = {.matrix = matrix, .rows = rows, .count = count};
    run_jobs(pool, matrix->tiles, add_row, &work);
}

static void products_row(void *context, size_t job, size_t worker)
{
    const struct work *w = context;
    const struct symmetric *m = w->matrix;
    size_t i = row_of(w, job), width = w->count;
    for (size_t j = 0; j <= i; j++) {
        cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, side(m, i), side(m, j), (int)width, 1,
                    w->rows + i * TILE * width, (int)width, w->rows + j * TILE * width, (int)width, 0, tile(m, i, j),
                    TILE);
        for (int c = 0; w->map != NULL && c < side(m, j); c++)
            w->map(w->context, tile(m, i, j) + (size_t)c * TILE, (size_t)side(m, i));
    }
}

void symmetric_products(struct symmetric *matrix, struct threads *pool, const double *rows, size_t width,
                        linear_map map, const void *context)
{
    struct work work = {.matrix = matrix, .rows = rows, .count = width, .map = map, .context = context};
    run_jobs(pool, matrix->tiles, products_row, &work);
}

void symmetric_shift(struct symmetric *matrix, double by)
{
    for (size_t i = 0; i < matrix->tiles; i++)
        for (int r = 0; r < side(matrix, i); r++)
            tile(matrix, i, i)[(size_t)r * TILE + (size_t)r] += by;
}

double symmetric_trace(const struct symmetric *matrix)
{
    double sum = 0;
    for (size_t i = 0; i < matrix->tiles; i++)
        for (int r = 0; r < side(matrix, i); r++)
            sum += tile(matrix, i, i)[(size_t)r * TILE + (size_t)r];
    return sum;
}

/* --- Cholesky's factor, tile by tile (Golub & Van Loan, Matrix Computations, 4.2) --- */

/* L_ik = A_ik L_kk⁻ᵀ below the diagonal tile of step k */
static void divide_row(void *context, size_t job, size_t worker)
{
    const struct work *w = context;
    const struct symmetric *m = w->matrix;
    size_t i = row_of(w, job), k = w->step;
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, side(m, i), side(m, k), 1,
                tile(m, k, k), TILE, tile(m, i, k), TILE);
}

/* A_ij −= L_ik L_jkᵀ for k < j ≤ i */
static void subtract_row(void *context, size_t job, size_t worker)
{
    const struct work *w = context;
    const struct symmetric *m = w->matrix;
    size_t i = row_of(w, job), k = w->step;
    for (size_t j = k + 1; j <= i; j++)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, side(m, i), side(m, j), side(m, k), -1, tile(m, i, k),
                    TILE, tile(m, j, k), TILE, 1, tile(m, i, j), TILE);
}

/* Factors a tile. Returns the row of the first pivot that is not positive and finite, from 1; 0: success. The check for
 * finite pivots is needed because not every library notices NaN. */
static int factor_tile(double *values, int n)
{
    int stride = TILE, info;
    dpotrf_("L", &n, values, &stride, &info);
    for (int r = 0; info == 0 && r < n; r++)
        info = isfinite(values[(size_t)r * TILE + (size_t)r]) ? 0 : r + 1;
    return abs(info);
}

status symmetric_factor(struct symmetric *matrix, struct threads *pool, struct error *error)
{
    struct work work = {.matrix = matrix};
    for (size_t k = 0; k < matrix->tiles; k++) {
        int row = factor_tile(tile(matrix, k, k), side(matrix, k));
        if (row != 0)
            return error_set(error, ERROR_FORMAT,
                             "a matrix of %zu rows is not finite or not positive definite at row %zu; raise the ridge",
                             matrix->n, k * TILE + (size_t)row - 1);
        work.step = k;
        run_jobs(pool, matrix->tiles - 1 - k, divide_row, &work);
        run_jobs(pool, matrix->tiles - 1 - k, subtract_row, &work);
        TRY(threads_check(pool, "a matrix was factored", error));
    }
    return OK;
}

/* --- Solving: forward with L, backward with Lᵀ --- */

static void solve_panel(void *context, size_t job, size_t worker)
{
    const struct work *w = context;
    const struct symmetric *m = w->matrix;
    double *x = w->right + job * PANEL * m->n;
    int columns = (int)least(PANEL, w->columns - job * PANEL), n = (int)m->n;
    for (size_t k = 0; k < m->tiles; k++) {
        double *part = x + k * TILE;
        for (size_t j = 0; j < k; j++)
            cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, side(m, k), columns, side(m, j), -1, tile(m, k, j),
                        TILE, x + j * TILE, n, 1, part, n);
        cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, side(m, k), columns, 1,
                    tile(m, k, k), TILE, part, n);
    }
    for (size_t k = m->tiles; k-- > 0;) {
        double *part = x + k * TILE;
        for (size_t i = k + 1; i < m->tiles; i++)
            cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, side(m, k), columns, side(m, i), -1, tile(m, i, k),
                        TILE, x + i * TILE, n, 1, part, n);
        cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, side(m, k), columns, 1,
                    tile(m, k, k), TILE, part, n);
    }
}

void symmetric_solve(const struct symmetric *factor, struct threads *pool, double *right, size_t columns)
{
    struct work work = {.matrix = (struct symmetric *)factor, .right = right, .columns = columns};
    run_jobs(pool, (columns + PANEL - 1) / PANEL, solve_panel, &work);
}

/* --- The singular value decomposition --- */

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
    OWNED int *integers = xmalloc(8 * (size_t)o->k * sizeof *integers);
    decompose(o, divide, &best, -1, integers);
    OWNED double *work = xmalloc((size_t)best * sizeof *work);
    return decompose(o, divide, work, (int)best, integers);
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
    OWNED double *copy = xmalloc(array_size(n, sizeof *copy));
    memcpy(copy, a, n * sizeof *copy);
    pthread_mutex_lock(&one_at_a_time);
    openblas_set_num_threads(1);
    int info = decompose_by(&o, true);
    if (info > 0) {
        o.a = copy;
        info = decompose_by(&o, false);
    }
    pthread_mutex_unlock(&one_at_a_time);
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

const char *linear_library(void)
{
    return openblas_get_config();
}
