/* Expected numbers: SciPy, statsmodels (power), mpmath (Hedges' factor). More samples: tests/replay/replay_stats. */
#include "tests/results/check.h"

#include <math.h>

#include "results/statistics/statistics.h"

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/* 18 differences, some of them equal. */
static void make_differences(double difference[18])
{
    for (int i = 0; i < 18; i++)
        difference[i] = (i % 2 ? -1 : 1) * 0.37 * (i % 7) + 0.2 * (i * i % 5) - 0.1;
}

static void means_and_deviations(void **state)
{
    (void)state;
    double difference[18];
    make_differences(difference);
    assert_near(statistics_mean(difference, 18), 0.24777777777777774, 1e-14);
    assert_near(statistics_sd(difference, 18), 1.2784943145819228, 1e-14);
    assert_true(isnan(statistics_mean(difference, 0)));
    assert_true(statistics_mean(difference, 1) == difference[0]);
    assert_true(isnan(statistics_sd(difference, 1)));
    double far[] = {1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.3}; /* each has lost the digits below 1e-7 */
    assert_near(statistics_sd(far, 3), 0.1, 1e-6);
    struct interval one = statistics_mean_interval(5, (double)NAN, 1, 0.95);
    assert_true(isnan(one.low) && isnan(one.high));
}

static void correlations(void **state)
{
    (void)state;
    static const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 1, 4, 3, 7}, flat[] = {2, 2, 2, 2, 2};
    assert_near(statistics_correlation(a, b, 5), 0.824163383692134, 1e-12);
    assert_near(statistics_correlation(a, a, 5), 1, 1e-12);
    assert_true(isnan(statistics_correlation(a, flat, 5)) && isnan(statistics_correlation(a, b, 2)));
    struct interval i = statistics_correlation_interval(0.5, 28, 0, 0.95);
    assert_near(i.low, 0.15602836252908595, 1e-5);
    assert_near(i.high, 0.7358184794439376, 1e-5);
    struct interval held = statistics_correlation_interval(0.5, 31, 3, 0.95);
    assert_true(held.low == i.low && held.high == i.high);
    assert_true(isnan(statistics_correlation_interval(0.5, 3, 0, 0.95).low));
    assert_true(isnan(statistics_correlation_interval(0.5, 6, 3, 0.95).low));
}

static void a_paired_test(void **state)
{
    (void)state;
    const double two[] = {68.2909 - 68.4006, 68.1932 - 68.5494}, five[] = {1, 2, 3, 4, 5.5}, alike[] = {0.5, 0.5, 0.5},
                 zero[] = {0, 0};
    assert_near(statistics_paired_t_p(two, 2), 0.30980642296600774, 1e-9);
    assert_true(statistics_paired_t_p(alike, 3) == 0);
    assert_true(isnan(statistics_paired_t_p(zero, 2)) && isnan(statistics_paired_t_p(five, 1)));
    assert_near(statistics_hedges(five, 5), 3.1 / statistics_sd(five, 5) * 0.79788456080286536, 1e-13);
    assert_true(isnan(statistics_hedges(two, 2)));
    struct interval interval = statistics_mean_interval(statistics_mean(two, 2), statistics_sd(two, 2), 2, 0.95);
    assert_near(interval.low, -1.798989733733531, 1e-9);
    assert_near(interval.high, 1.333089733733531, 1e-9);
}

static void the_median_of_walsh_averages(void **state)
{
    (void)state;
    double difference[18], median, few[] = {-1, 0.5}, many[3001];
    make_differences(difference);
    median = statistics_hodges_lehmann(difference, 18);
    assert_near(median, 0.27, 1e-14);
    median = statistics_hodges_lehmann(few, 2); /* of −1, −0.25, 0.5 */
    assert_true(median == -0.25);
    median = statistics_hodges_lehmann(few, 1);
    assert_true(median == -1);
    median = statistics_hodges_lehmann(few, 0);
    assert_true(isnan(median));
    for (int i = 0; i < 3001; i++)
        many[i] = (i * 7 % 3001) - 1500; /* symmetric around 0 */
    median = statistics_hodges_lehmann(many, 3001);
    assert_true(median == 0);
}

static void holm_steps_down(void **state)
{
    (void)state;
    double p[] = {0.01, (double)NAN, 0.04, 0.03, 0.005}, adjusted[5];
    statistics_holm(p, 5, adjusted);
    assert_near(adjusted[4], 0.02, 1e-15);
    assert_near(adjusted[0], 0.03, 1e-15);
    assert_near(adjusted[3], 0.06, 1e-15);
    assert_near(adjusted[2], 0.06, 1e-15); /* never below the one before */
    assert_true(isnan(adjusted[1]));
    statistics_holm(p, 0, adjusted);
}

static void judges_and_proportions(void **state)
{
    (void)state;
    assert_near(statistics_mcnemar(7, 34), 2.532080361561384e-05, 1e-12);
    assert_near(statistics_mcnemar(34, 7), 2.532080361561384e-05, 1e-12);
    assert_true(statistics_mcnemar(0, 0) == 1 && statistics_mcnemar(5, 5) == 1);
    struct interval interval = statistics_wilson(688, 1000, 0.95);
    assert_near(interval.low, 0.6586108248, 1e-9);
    assert_near(interval.high, 0.7159503139, 1e-9);
    assert_true(statistics_wilson(0, 10, 0.95).low == 0 && statistics_wilson(10, 10, 0.95).high == 1);
    assert_true(isnan(statistics_wilson(0, 0, 0.95).low));
}

static void how_many_seeds_it_takes(void **state)
{
    (void)state;
    assert_near(statistics_power(0.5, 10, 0.05), 0.2931756065140767, 1e-9);
    assert_near(statistics_power(-1, 5, 0.05), 0.4013899173717948, 1e-9);
    assert_near(statistics_power(0, 7, 0.05), 0.05, 1e-9);
    static const struct {
        double effect;
        size_t pairs;
    } needed[] = {{0.05, 3142}, {0.2, 199}, {0.5, 34}, {0.8, 15}, {1, 10}, {-1, 10}, {2, 5}, {5, 3}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        assert_int_equal(statistics_pairs_needed(needed[i].effect, 0.05, 0.8), needed[i].pairs);
    assert_int_equal(statistics_pairs_needed(0, 0.05, 0.8), 0);
    assert_int_equal(statistics_pairs_needed((double)INFINITY, 0.05, 0.8), 2);
    assert_true(statistics_least_p(3) == 0.25 && statistics_least_p(1) == 1 && statistics_least_p(0) == 1);
    assert_int_equal(statistics_least_pairs(0.05, 1), 6);
    assert_int_equal(statistics_least_pairs(0.05, 6), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_and_deviations),
        cmocka_unit_test(a_paired_test),
        cmocka_unit_test(correlations),
        cmocka_unit_test(the_median_of_walsh_averages),
        cmocka_unit_test(holm_steps_down),
        cmocka_unit_test(judges_and_proportions),
        cmocka_unit_test(how_many_seeds_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
