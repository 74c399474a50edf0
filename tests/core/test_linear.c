/* Against plain loops and Gaussian elimination, on sizes that do not divide into tiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/rng.h"
#include "tests/test.h"

static double *draw(size_t n, uint32_t which)
{
    struct rng rng = rng_make(3, RNG_TEST, 0, which);
    double *values = xmalloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)rng_normal(&rng, i);
    return values;
}

static void expect_near(const double *got, const double *expected, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]))))
            fail_msg("value %zu: %.17g, expected %.17g", i, got[i], expected[i]);
}

static void halve(const void *context, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= *(const double *)context;
}

/* a [n, n] is destroyed; x [n] becomes its solution. */
static void eliminate(double *a, double *x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        for (size_t j = 0; j < n; j++) {
            double other = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = other;
        }
        double other = x[k];
        x[k] = x[pivot];
        x[pivot] = other;
        for (size_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (size_t j = k; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
            x[i] -= factor * x[k];
        }
    }
    for (size_t k = n; k-- > 0;) {
        for (size_t j = k + 1; j < n; j++)
            x[k] -= a[k * n + j] * x[j];
        x[k] /= a[k * n + k];
    }
}

enum { N = 530, ROWS = 77, RIGHT = 35 };

static struct symmetric *make_matrix(struct threads *pool, const double *rows)
{
    struct symmetric *m;
    assert_ok(symmetric_create(&m, N, &error));
    symmetric_add(m, pool, rows, 40);
    symmetric_add(m, pool, rows + (size_t)40 * N, ROWS - 40);
    symmetric_shift(m, 2);
    return m;
}

/* x [n] becomes the solution of (shift I + scale Σ aₖ aₖᵀ) y = x, where aₖ [N] has values of `rows` that lie as far apart. */
static void solve_plainly(double *x, double shift, double scale, const double *rows, size_t inner, size_t apart,
                          size_t next)
{
    double *matrix = xmalloc((size_t)N * N * sizeof *matrix);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = i == j ? shift : 0;
            for (size_t k = 0; k < inner; k++)
                sum += scale * rows[i * apart + k * next] * rows[j * apart + k * next];
            matrix[i * N + j] = sum;
        }
    eliminate(matrix, x, N);
    free(matrix);
}

TEST(products_are_those_of_plain_loops)
{
    enum { OUT = 7, INNER = 33 };
    const double half = 0.5;
    static double out[OUT * N], expected[OUT * N];
    struct threads *pool;
    double *a = draw((size_t)OUT * INNER, 0), *b = draw((size_t)N * INNER, 1);
    struct linear_product product = {
        .rows = OUT, .columns = N, .inner = INNER, .a = a, .b = b, .out = out, .map = halve, .context = &half};
    assert_ok(threads_create(&pool, 2, &error));
    linear_multiply(pool, &product);
    for (size_t r = 0; r < OUT; r++)
        for (size_t c = 0; c < N; c++)
            for (size_t k = 0; k < INNER; k++)
                expected[r * N + c] += 0.5 * a[r * INNER + k] * b[c * INNER + k];
    expect_near(out, expected, (size_t)OUT * N, 1e-12);
    threads_destroy(pool);
    free(a);
    free(b);
}

/* Solutions [RIGHT, N] with make_matrix and so many threads; the caller frees. */
static double *solve(size_t threads)
{
    struct threads *pool;
    double *rows = draw((size_t)ROWS * N, 2), *right = draw((size_t)RIGHT * N, 3);
    assert_ok(threads_create(&pool, threads, &error));
    struct symmetric *m = make_matrix(pool, rows);
    assert_ok(symmetric_factor(m, pool, &error));
    symmetric_solve(m, pool, right, RIGHT);
    symmetric_destroy(m);
    threads_destroy(pool);
    free(rows);
    return right;
}

TEST(solutions_are_those_of_elimination_with_any_threads)
{
    double *rows = draw((size_t)ROWS * N, 2), *expected = draw((size_t)RIGHT * N, 3), *found = solve(1);
    for (size_t c = 0; c < RIGHT; c += 17) { /* some of them: elimination takes its time */
        solve_plainly(expected + c * N, 2, 1, rows, ROWS, 1, N);
        expect_near(found + c * N, expected + c * N, N, 1e-10);
    }
    for (size_t threads = 3; threads <= 5; threads += 2) {
        double *again = solve(threads);
        assert_memory_equal(again, found, (size_t)RIGHT * N * sizeof *found);
        free(again);
    }
    free(rows);
    free(expected);
    free(found);
}

TEST(rows_times_rows)
{
    enum { INNER = 9 };
    const double half = 0.5;
    static double right[N] = {[300] = 1}, expected[N] = {[300] = 1};
    struct threads *pool;
    struct symmetric *m;
    double *rows = draw((size_t)N * INNER, 4);
    assert_ok(threads_create(&pool, 2, &error));
    assert_ok(symmetric_create(&m, N, &error));
    symmetric_products(m, pool, rows, INNER, halve, &half);
    symmetric_shift(m, 1);
    assert_ok(symmetric_factor(m, pool, &error));
    symmetric_solve(m, pool, right, 1);
    solve_plainly(expected, 1, 0.5, rows, INNER, INNER, 1);
    expect_near(right, expected, N, 1e-10);
    symmetric_destroy(m);
    threads_destroy(pool);
    free(rows);
}

/* Of rank one and no ridge: the second pivot is zero. */
TEST(a_singular_matrix_is_refused)
{
    const double row[3] = {1, 1, 1}, bad[3] = {1, NAN, 1};
    struct threads *pool;
    assert_ok(threads_create(&pool, 1, &error));
    for (int k = 0; k < 2; k++) {
        struct symmetric *m;
        assert_ok(symmetric_create(&m, 3, &error));
        symmetric_add(m, pool, k == 0 ? row : bad, 1);
        assert_fails(symmetric_factor(m, pool, &error), ERROR_FORMAT, "not positive definite at row 1");
        symmetric_destroy(m);
    }
    threads_destroy(pool);
    struct symmetric *m;
    assert_fails(symmetric_create(&m, (size_t)1 << 50, &error), ERROR_MEMORY, "");
}
