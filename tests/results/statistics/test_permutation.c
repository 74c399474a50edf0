/* Expected numbers: all 2^n signs one by one, in numpy; distributions of ranks in whole numbers. */
#include "tests/results/check.h"

#include <math.h>
#include <stdlib.h>

#include "results/statistics/permutation.h"
#include "results/statistics/statistics.h"

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static double flip_signs(const double *difference, size_t n)
{
    struct sign_flip_test test;
    test = permutation_sign_flips(difference, n, 7);
    assert_int_equal(test.exact, n <= PERMUTATION_EXACT);
    return test.p;
}

static void all_sign_flips_are_counted(void **state)
{
    (void)state;
    double three[] = {0.1, 0.2, 0.4}, alike[40], eighteen[18];
    assert_true(flip_signs(three, 3) == 0.25);
    assert_true(flip_signs(three, 1) == 1);
    assert_true(isnan(flip_signs(three, 0)));
    for (int i = 0; i < 18; i++)
        eighteen[i] = (i % 2 ? -1 : 1) * 0.37 * (i % 7) + 0.2 * (i * i % 5) - 0.1;
    assert_true(flip_signs(eighteen, 18) == 0.42061614990234375);
    for (int i = 0; i < 40; i++)
        alike[i] = 0.1;
    assert_true(flip_signs(alike, 40) == statistics_least_p(40));
    alike[3] = -0.1; /* 41 of 40 flips and itself: all but none or one against */
    assert_true(flip_signs(alike, 40) == ldexp(2 * 41, -40));
    double balanced[] = {0.3, -0.1, -0.2}, zero[] = {0, 0, 0}, broken[] = {1, (double)NAN};
    assert_true(flip_signs(balanced, 3) == 1);
    assert_true(flip_signs(zero, 3) == 1);
    assert_true(isnan(flip_signs(broken, 2)));
}

static void large_samples_are_drawn(void **state)
{
    (void)state;
    double difference[60];
    for (int i = 0; i < 60; i++)
        difference[i] = i % 3 ? 1 : -1; /* 40 above, 20 below: a sum of 20, as a fair coin's 40 of 60 */
    struct sign_flip_test test, again;
    test = permutation_sign_flips(difference, 60, 7);
    assert_false(test.exact);
    double exact = statistics_mcnemar(20, 40);
    assert_true(test.error > 0 && test.error < 2e-4);
    assert_true(fabs(test.p - exact) < 5 * test.error);
    again = permutation_sign_flips(difference, 60, 7);
    assert_true(test.p == again.p);
    for (int i = 0; i < 60; i++)
        difference[i] = 1;
    assert_true(flip_signs(difference, 60) == 1.0 / (PERMUTATION_DRAWS + 1)); /* never 0 */
}

static void signed_ranks(void **state)
{
    (void)state;
    struct signed_rank_test test;
    double plain[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, -10};
    test = permutation_signed_ranks(plain, 10);
    assert_true(test.exact && !test.ties && test.statistic == 45);
    assert_near(test.p, 0.083984375, 1e-14);
    double sixty[60];
    for (int i = 0; i < 60; i++)
        sixty[i] = i == 3 || i == 20 || i == 40 || i == 55 ? -i - 1 : i + 1;
    test = permutation_signed_ranks(sixty, 60);
    assert_near(test.p, 5.591302421059652e-11, 1e-12);
}

static void tied_ranks_are_exact_too(void **state)
{
    (void)state;
    struct signed_rank_test test;
    double tied[] = {68.3 - 68.2, 67.5 - 67.4, 0.1, 0.5, 0.8};
    test = permutation_signed_ranks(tied, 5);
    assert_true(test.ties && test.exact && test.statistic == 15 && test.p == 0.0625);
    double mixed[] = {0.3, -0.3, 0.2, 0.2, 0, 0.7, -0.1};
    test = permutation_signed_ranks(mixed, 7);
    assert_true(test.n == 6 && test.statistic == 15.5);
    assert_near(test.p, 0.34375, 1e-14);
    double zero[] = {0, 0};
    test = permutation_signed_ranks(zero, 2);
    assert_true(test.n == 0 && test.p == 1);
}

/* The exact distribution and the approximation meet where one takes over from the other. */
static void very_large_samples_are_approximated(void **state)
{
    (void)state;
    size_t n = PERMUTATION_RANKS + 1;
    double *difference = calloc(n, sizeof *difference);
    struct signed_rank_test exact, normal;
    for (size_t i = 0; i < n; i++)
        difference[i] = (i * 7919 % 100 < 52 ? 1.0 : -1.0) * (double)(i + 1);
    exact = permutation_signed_ranks(difference, n - 1);
    normal = permutation_signed_ranks(difference, n);
    assert_true(exact.exact && !normal.exact);
    assert_true(fabs(exact.p - normal.p) < 0.01);
    free(difference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sign_flips_are_counted),
        cmocka_unit_test(large_samples_are_drawn),
        cmocka_unit_test(signed_ranks),
        cmocka_unit_test(tied_ranks_are_exact_too),
        cmocka_unit_test(very_large_samples_are_approximated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
