/* Against plain loops, on sizes that do not divide into tiles. */
#include <math.h>

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
