/* Against plain loops and Gaussian elimination, on sizes that do not divide into tiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/linear.h"
#include "core/rng.h"
#include "tests/test.h"

static double *draw(size_t n, uint32_t which)
{
    struct rng rng = rng_make(3, RNG_TEST, 0, which);
    double *values = malloc(n * sizeof *values);
    assert_non_null(values);
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

TEST(products_are_those_of_plain_loops)
{
    const double half = 0.5;
    struct threads *pool;
    double *a = draw((size_t)7 * 33, 0), *b = draw((size_t)N * 33, 1), *out = malloc((size_t)7 * N * sizeof *out),
           *expected = calloc((size_t)7 * N, sizeof *expected);
    assert_true(out != NULL && expected != NULL);
    assert_ok(threads_create(&pool, 2, &error));
    linear_multiply(
        pool, &(struct linear_product){
                  .rows = 7, .columns = N, .inner = 33, .a = a, .b = b, .out = out, .map = halve, .context = &half});
    for (size_t r = 0; r < 7; r++)
        for (size_t c = 0; c < N; c++)
            for (size_t k = 0; k < 33; k++)
                expected[r * N + c] += 0.5 * a[r * 33 + k] * b[c * 33 + k];
    expect_near(out, expected, (size_t)7 * N, 1e-12);
    threads_destroy(pool);
    free(a);
    free(b);
    free(out);
    free(expected);
}

TEST(solutions_are_those_of_elimination)
{
    struct threads *pool;
    double *rows = draw((size_t)ROWS * N, 2), *right = draw((size_t)RIGHT * N, 3),
           *expected = malloc((size_t)RIGHT * N * sizeof *expected), *plain = malloc((size_t)N * N * sizeof *plain);
    assert_true(expected != NULL && plain != NULL);
    memcpy(expected, right, (size_t)RIGHT * N * sizeof *expected);
    assert_ok(threads_create(&pool, 3, &error));
    struct symmetric *m = make_matrix(pool, rows);
    assert_ok(symmetric_factor(m, pool, &error));
    symmetric_solve(m, pool, right, RIGHT);
    for (size_t c = 0; c < RIGHT; c += 17) { /* some of them: elimination takes its time */
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < N; j++) {
                double sum = i == j ? 2 : 0;
                for (size_t r = 0; r < ROWS; r++)
                    sum += rows[r * N + i] * rows[r * N + j];
                plain[i * N + j] = sum;
            }
        eliminate(plain, expected + c * N, N);
        expect_near(right + c * N, expected + c * N, N, 1e-10);
    }
    symmetric_destroy(m);
    threads_destroy(pool);
    free(rows);
    free(right);
    free(expected);
    free(plain);
}

TEST(rows_times_rows)
{
    const double half = 0.5;
    struct threads *pool;
    struct symmetric *m;
    double *rows = draw((size_t)N * 9, 4), *right = calloc(N, sizeof *right), *expected = calloc(N, sizeof *expected),
           *plain = malloc((size_t)N * N * sizeof *plain);
    assert_true(right != NULL && expected != NULL && plain != NULL);
    right[300] = expected[300] = 1;
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = i == j ? 1 : 0;
            for (size_t k = 0; k < 9; k++)
                sum += 0.5 * rows[i * 9 + k] * rows[j * 9 + k];
            plain[i * N + j] = sum;
        }
    assert_ok(threads_create(&pool, 2, &error));
    assert_ok(symmetric_create(&m, N, &error));
    symmetric_products(m, pool, rows, 9, halve, &half);
    symmetric_shift(m, 1);
    assert_ok(symmetric_factor(m, pool, &error));
    symmetric_solve(m, pool, right, 1);
    eliminate(plain, expected, N);
    expect_near(right, expected, N, 1e-10);
    symmetric_destroy(m);
    threads_destroy(pool);
    free(rows);
    free(right);
    free(expected);
    free(plain);
}

TEST(the_number_of_threads_changes_no_bit)
{
    double *rows = draw((size_t)ROWS * N, 2), *first = draw((size_t)RIGHT * N, 3), *other = draw((size_t)RIGHT * N, 3);
    for (size_t count = 1; count <= 5; count += 2) {
        double *right = count == 1 ? first : other;
        struct threads *pool;
        assert_ok(threads_create(&pool, count, &error));
        struct symmetric *m = make_matrix(pool, rows);
        assert_ok(symmetric_factor(m, pool, &error));
        symmetric_solve(m, pool, right, RIGHT);
        assert_memory_equal(right, first, (size_t)RIGHT * N * sizeof *right);
        symmetric_destroy(m);
        threads_destroy(pool);
        free(count == 3 ? other : NULL);
        other = count == 3 ? draw((size_t)RIGHT * N, 3) : other;
    }
    free(rows);
    free(first);
    free(other);
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
