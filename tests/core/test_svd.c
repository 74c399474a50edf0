/* The factors multiply to the matrix, the vectors are orthonormal, and the values fall. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/svd.h"

struct factors {
    size_t m, n, k;
    double *a, *u, *s, *vt;
};

static double *room(size_t n)
{
    double *values = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    return values;
}

static struct factors decomposed(size_t m, size_t n)
{
    struct rng rng = rng_make(5, RNG_TEST, 0, (uint32_t)(m * 1000 + n));
    size_t k = m < n ? m : n;
    struct factors f = {m, n, k, room(m * n), room(m * k), room(k), room(k * n)};
    for (size_t i = 0; i < m * n; i++)
        f.a[i] = (double)rng_normal(&rng, i);
    svd(m, n, f.a, f.u, f.s, f.vt);
    return f;
}

static void release(struct factors *f)
{
    free(f->a);
    free(f->u);
    free(f->s);
    free(f->vt);
}

static void near(double got, double expected)
{
    if (!(fabs(got - expected) < 1e-12 * (1 + fabs(expected))))
        fail_msg("%.17g, expected %.17g", got, expected);
}

static void check(const struct factors *f)
{
    for (size_t i = 0; i < f->m; i++)
        for (size_t j = 0; j < f->n; j++) {
            double sum = 0;
            for (size_t r = 0; r < f->k; r++)
                sum += f->u[i * f->k + r] * f->s[r] * f->vt[r * f->n + j];
            near(sum, f->a[i * f->n + j]);
        }
    for (size_t r = 0; r < f->k; r++) {
        assert_true(f->s[r] >= 0 && (r == 0 || f->s[r] <= f->s[r - 1]));
        for (size_t q = 0; q < f->k; q++) {
            double left = 0, right = 0;
            for (size_t i = 0; i < f->m; i++)
                left += f->u[i * f->k + r] * f->u[i * f->k + q];
            for (size_t j = 0; j < f->n; j++)
                right += f->vt[r * f->n + j] * f->vt[q * f->n + j];
            near(left, r == q);
            near(right, r == q);
        }
    }
}

static void matrices_of_all_forms(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{1, 1}, {7, 7}, {33, 5}, {5, 33}, {70, 65}, {1, 9}, {9, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct factors f = decomposed(sizes[i][0], sizes[i][1]), again = decomposed(sizes[i][0], sizes[i][1]);
        check(&f);
        assert_memory_equal(f.u, again.u, f.m * f.k * sizeof(double));
        assert_memory_equal(f.vt, again.vt, f.k * f.n * sizeof(double));
        release(&f);
        release(&again);
    }
}

static void not_finite(void **state)
{
    (void)state;
    double a[6] = {1, 2, NAN, 4, 5, 6}, u[4], s[2], vt[6];
    svd(2, 3, a, u, s, vt);
    assert_true(isnan(s[0]) && isnan(s[1]));
    svd(0, 3, a, u, s, vt); /* nothing to decompose */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrices_of_all_forms), cmocka_unit_test(not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
