/* Linear algebra in double precision on the host, through OpenBLAS: products, systems of equations with a large symmetric
 * positive definite matrix, and the singular value decomposition.
 *
 *     a = symmetric_create(n);                                      // zeros
 *     symmetric_add(a, pool, rows, count);                          // A += rowsᵀ rows, rows [count, n]
 *     symmetric_shift(a, ridge);                                    // A += ridge · I
 *     TRY(symmetric_factor(a, pool, error));                        // A = L Lᵀ (Cholesky), in its place
 *     symmetric_solve(a, pool, right, columns);                     // right [columns, n]: each row x becomes A⁻¹ x
 *     symmetric_destroy(a);
 *
 *     struct svd svd;
 *     TRY(svd_create(&svd, matrix, rows, columns, error));          // svd.u, svd.s, svd.vt
 *     svd_free(&svd);
 *
 * Work is cut into tiles that depend on its shape alone, one single-threaded BLAS or LAPACK call each, so the bits are the same
 * for any number of threads. Debian's libopenblas-serial-dev must not be called from several threads, so one thread does all
 * the work; with libopenblas-pthread-dev all threads work. Row-major throughout.
 */
#pragma once

#include "core/scope.h"
#include "core/threads.h"

void linear_unit(double *row, size_t n); /* divides by the norm; zeros stay */

/* matrix [n, n] = L Lᵀ becomes L in its lower triangle, by plain loops in one thread; false: it is not positive definite. */
bool linear_cholesky(double *matrix, size_t n);
/* L⁻¹ of a lower triangle, zero above its diagonal: inverse and, in float, out: [n, n]; out may be NULL */
void linear_invert_lower(const double *lower, size_t n, double *inverse, float *out);

/* Changes `count` values of a product that was just computed. */
typedef void (*linear_map)(const void *context, double *values, size_t count);

/* out [rows, columns] = a bᵀ, then map. */
struct linear_product {
    size_t rows, columns, inner;
    const double *a; /* [rows, inner] */
    const double *b; /* [columns, inner] */
    double *out;
    linear_map map; /* NULL: none */
    const void *context;
};
void linear_multiply(struct threads *pool, const struct linear_product *product);

/* The lower triangle, in square tiles one after the other. */
struct symmetric {
    size_t n, tiles; /* tiles: along a side */
    double *values;
};

struct symmetric *symmetric_create(size_t n);
void symmetric_destroy(struct symmetric *matrix); /* NULL is allowed */
SCOPED_POINTER(struct symmetric, symmetric_destroy)
size_t symmetric_values(size_t n); /* values stored for n rows, padding of the tiles included; SIZE_MAX: too many */

void symmetric_add(struct symmetric *matrix, struct threads *pool, const double *rows, size_t count);
/* A = map(rows rowsᵀ), rows [n, width]; map NULL: none */
void symmetric_products(struct symmetric *matrix, struct threads *pool, const double *rows, size_t width,
                        linear_map map, const void *context);
void symmetric_shift(struct symmetric *matrix, double by);
double symmetric_trace(const struct symmetric *matrix);

/* ERROR_FORMAT if the matrix is not positive definite in double precision; a stop of the pool (threads_obey) ends it, too. */
status symmetric_factor(struct symmetric *matrix, struct threads *pool, struct error *error);
void symmetric_solve(const struct symmetric *factor, struct threads *pool, double *right, size_t columns);

/* A = U diag(s) Vᵀ by LAPACK's divide and conquer, in one thread. s descends; the entry of a column of U that is largest in
 * magnitude (the first of equal ones) is positive. */
struct svd {
    double *u, *s, *vt; /* [rows, k], [k], [k, columns], k = min(rows, columns) */
};

/* a [rows, columns] is overwritten. ERROR_FORMAT where it is not finite or LAPACK does not converge. */
status svd_create(struct svd *svd, double *a, size_t rows, size_t columns, struct error *error);
void svd_free(struct svd *svd); /* after a failure, too */

/* Name and version of the library. */
const char *linear_library(void);
