/* Against plain loops, on sizes that do not divide into tiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/linear.h"
#include "core/rng.h"
#include "tests/test.h"

enum { N = 530 };

static void draw(double *values, size_t n, uint32_t which)
{
    struct rng rng = rng_make(3, RNG_TEST, 0, which);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)rng_normal(&rng, i);
}

static void expect_near(const double *got, const double *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - expected[i]) <= 1e-12 * (1 + fabs(expected[i]))))
            fail_msg("value %zu: %.17g, expected %.17g", i, got[i], expected[i]);
}

/* (shift I + scale Σ aₖ aₖᵀ) x = right, where aₖ [N] has values of `rows` that lie as far apart. */
static void expect_solution(const double *x, const double *right, double shift, double scale, const double *rows,
                            size_t inner, size_t apart, size_t next)
{
    double product[N];
    for (size_t i = 0; i < N; i++)
        product[i] = shift * x[i];
    for (size_t k = 0; k < inner; k++) {
        double dot = 0;
        for (size_t i = 0; i < N; i++)
            dot += rows[i * apart + k * next] * x[i];
        for (size_t i = 0; i < N; i++)
            product[i] += scale * dot * rows[i * apart + k * next];
    }
    expect_near(product, right, N);
}

static void halve(const void *context, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= *(const double *)context;
}
static const double half = 0.5;

TEST(products_are_those_of_plain_loops)
{
    enum { OUT = 7, INNER = 33 };
    static double a[OUT * INNER], b[N * INNER], out[OUT * N], expected[OUT * N];
    struct threads *pool;
    struct linear_product product = {
        .rows = OUT, .columns = N, .inner = INNER, .a = a, .b = b, .out = out, .map = halve, .context = &half};
    draw(a, OUT * INNER, 0);
    draw(b, N * INNER, 1);
    assert_ok(threads_create(&pool, 2, &error));
    linear_multiply(pool, &product);
    for (size_t r = 0; r < OUT; r++)
        for (size_t c = 0; c < N; c++)
            for (size_t k = 0; k < INNER; k++)
                expected[r * N + c] += 0.5 * a[r * INNER + k] * b[c * INNER + k];
    expect_near(out, expected, OUT * N);
    threads_destroy(pool);
}

TEST(solutions_solve_with_any_threads)
{
    enum { ROWS = 77, RIGHT = 35 };
    static double rows[ROWS * N], right[RIGHT * N], found[3][RIGHT * N];
    draw(rows, ROWS * N, 2);
    draw(right, RIGHT * N, 3);
    for (size_t i = 0; i < 3; i++) {
        struct threads *pool;
        struct symmetric *m;
        memcpy(found[i], right, sizeof right);
        assert_ok(threads_create(&pool, 2 * i + 1, &error));
        m = symmetric_create(N);
        symmetric_add(m, pool, rows, 40);
        symmetric_add(m, pool, rows + (size_t)40 * N, ROWS - 40);
        symmetric_shift(m, 2);
        assert_ok(symmetric_factor(m, pool, &error));
        symmetric_solve(m, pool, found[i], RIGHT);
        assert_memory_equal(found[i], found[0], sizeof right);
        symmetric_destroy(m);
        threads_destroy(pool);
    }
    for (size_t c = 0; c < RIGHT; c++)
        expect_solution(found[0] + c * N, right + c * N, 2, 1, rows, ROWS, 1, N);
}

TEST(rows_times_rows)
{
    enum { INNER = 9 };
    static double rows[N * INNER], found[N] = {[300] = 1}, right[N] = {[300] = 1};
    struct threads *pool;
    struct symmetric *m;
    draw(rows, N * INNER, 4);
    assert_ok(threads_create(&pool, 2, &error));
    m = symmetric_create(N);
    symmetric_products(m, pool, rows, INNER, halve, &half);
    symmetric_shift(m, 1);
    assert_ok(symmetric_factor(m, pool, &error));
    symmetric_solve(m, pool, found, 1);
    expect_solution(found, right, 1, 0.5, rows, INNER, INNER, 1);
    symmetric_destroy(m);
    threads_destroy(pool);
}

/* Of rank one and no ridge: the second pivot is zero. */
TEST(a_singular_matrix_is_refused)
{
    static const double rows[2][3] = {{1, 1, 1}, {1, NAN, 1}};
    struct threads *pool;
    struct symmetric *m;
    assert_ok(threads_create(&pool, 1, &error));
    for (int k = 0; k < 2; k++) {
        m = symmetric_create(3);
        symmetric_add(m, pool, rows[k], 1);
        assert_fails(symmetric_factor(m, pool, &error), ERROR_FORMAT, "not positive definite at row 1");
        symmetric_destroy(m);
    }
    threads_destroy(pool);
}

/* --- Singular values: what NumPy's documentation promises of numpy.linalg.svd, and known ones --- */

/* rank: at most that of the matrix. */
static void decompose(size_t rows, size_t columns, size_t rank)
{
    size_t k = rows < columns ? rows : columns;
    double *a = calloc(rows * columns, sizeof *a), *copy = calloc(rows * columns, sizeof *a);
    struct svd f;
    struct rng rng = rng_make(1, RNG_TEST, 0, (uint32_t)(rows * 1000 + columns));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            for (size_t i = 0; i < rank; i++)
                a[r * columns + c] += (double)rng_normal(&rng, r * rank + i) *
                                      (double)rng_normal(&rng, (rows + c) * rank + i) / (double)(i + 1);
    memcpy(copy, a, rows * columns * sizeof *a);
    assert_ok(svd_create(&f, copy, rows, columns, &error));
    const double *u = f.u, *s = f.s, *vt = f.vt;
    for (size_t i = 0; i < k; i++) {
        size_t largest = 0;
        assert_true(s[i] >= 0 && (i == 0 || s[i] <= s[i - 1]));
        assert_true((s[i] > 1e-10 * s[0]) == (i < rank));
        for (size_t r = 1; r < rows; r++)
            largest = fabs(u[r * k + i]) > fabs(u[largest * k + i]) ? r : largest;
        assert_true(u[largest * k + i] > 0);
        for (size_t j = 0; j < k; j++) {
            double uu = 0, vv = 0;
            for (size_t r = 0; r < rows; r++)
                uu += u[r * k + i] * u[r * k + j];
            for (size_t c = 0; c < columns; c++)
                vv += vt[i * columns + c] * vt[j * columns + c];
            assert_true(fabs(uu - (i == j)) < 1e-12 && fabs(vv - (i == j)) < 1e-12);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            double sum = 0;
            for (size_t i = 0; i < k; i++)
                sum += u[r * k + i] * s[i] * vt[i * columns + c];
            assert_true(fabs(sum - a[r * columns + c]) < 1e-12 * s[0]);
        }
    free(a), free(copy), svd_free(&f);
}

TEST(the_product_is_the_matrix)
{
    decompose(1, 1, 1);
    decompose(7, 7, 7);
    decompose(40, 9, 9);
    decompose(9, 40, 9);
    decompose(30, 30, 5);
    decompose(65, 33, 20);
}

TEST(known_values)
{
    double a[] = {3, 0, 4, 5}; /* AᵀA has eigenvalues 45 and 5 */
    struct svd f;
    assert_ok(svd_create(&f, a, 2, 2, &error));
    assert_true(fabs(f.s[0] - sqrt(45)) < 1e-14 && fabs(f.s[1] - sqrt(5)) < 1e-14);
    assert_true(fabs(f.u[0] - 1 / sqrt(10)) < 1e-14 && fabs(f.u[2] - 3 / sqrt(10)) < 1e-14);
    assert_true(fabs(f.vt[0] - sqrt(0.5)) < 1e-14 && fabs(f.vt[1] - sqrt(0.5)) < 1e-14);
    svd_free(&f);
}

TEST(what_is_not_finite_is_refused)
{
    double a[] = {1, 2, NAN, 4};
    struct svd f;
    assert_fails(svd_create(&f, a, 2, 2, &error), ERROR_FORMAT, "value 2 of 2 × 2 is not finite");
    svd_free(&f);
}
