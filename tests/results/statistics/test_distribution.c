/* Expected numbers: mpmath with 30 digits; the noncentral t is statsmodels' power of a t-test. */
#include "tests/results/check.h"

#include <math.h>

#include "results/statistics/distribution.h"

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static void the_incomplete_beta_function(void **state)
{
    (void)state;
    static const struct {
        double x, a, b, value;
    } known[] = {{0.5, 2, 3, 0.6875},
                 {0.1, 0.5, 0.5, 0.20483276469913346},
                 {0.999, 50, 0.5, 0.75236901996537668},
                 {0.001, 0.5, 200, 0.47275589297476465},
                 {0.5, 5000, 5050, 0.69103153390245371},
                 {1e-12, 1.5, 1e4, 7.5228098261823625e-13}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_near(distribution_beta(known[i].x, 1 - known[i].x, known[i].a, known[i].b), known[i].value, 1e-12);
    assert_true(distribution_beta(0, 1, 2, 3) == 0);
    assert_true(distribution_beta(1, 0, 2, 3) == 1);
    assert_true(isnan(distribution_beta(0.5, 0.5, 0, 1)));
    assert_true(isnan(distribution_beta((double)NAN, 0.5, 1, 1)));
}

static void students_distribution_and_its_tails(void **state)
{
    (void)state;
    static const struct {
        double t, degrees, p;
    } known[] = {{1, 1, 0.5},
                 {1e-8, 3, 0.99999999264894806},
                 {2.5, 4, 0.066766544811988145},
                 {12.7, 1, 0.05002432768934416},
                 {62.8757062146888, 1, 0.010124198060470745},
                 {3, 1000, 0.0027667090442381925},
                 {40, 30, 1.3726045194406403e-27},
                 {8, 1e6, 1.245506343320252e-15}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_near(distribution_t_two_sided(known[i].t, known[i].degrees), known[i].p, 1e-12);
        assert_near(distribution_t_two_sided(-known[i].t, known[i].degrees), known[i].p, 1e-12);
    }
    assert_true(distribution_t_two_sided(0, 3) == 1);
    assert_true(distribution_t_two_sided((double)INFINITY, 3) == 0);
    assert_true(isnan(distribution_t_two_sided((double)NAN, 3)));
    assert_true(isnan(distribution_t_two_sided(1, 0)));
}

static void quantiles(void **state)
{
    (void)state;
    static const struct {
        double confidence, degrees, t;
    } known[] = {{0.95, 1, 12.706204736174693},
                 {0.95, 2, 4.3026527297494618},
                 {0.95, 4, 2.7764451051977935},
                 {0.99, 9, 3.2498355415921257},
                 {0.95, 29, 2.0452296421327039},
                 {0.5, 3, 0.76489232840434528},
                 {0, 3, 0},
                 {0.999, 1000, 3.3002826484239127}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_near(distribution_t_quantile(known[i].confidence, known[i].degrees), known[i].t, 1e-12);
    assert_near(distribution_normal_quantile(0.95), 1.9599639845400539, 1e-14);
    assert_true(isnan(distribution_normal_quantile(1)));
    assert_true(isnan(distribution_t_quantile(0.95, 0)));
}

static void fair_coins(void **state)
{
    (void)state;
    assert_near(distribution_binomial_half(0, 1), 0.5, 1e-15);
    assert_near(distribution_binomial_half(3, 10), 0.171875, 1e-14);
    assert_near(distribution_binomial_half(18, 54), 0.0099171633640341428, 1e-12);
    assert_near(distribution_binomial_half(400, 860), 0.022084774097294504, 1e-12);
    assert_near(distribution_binomial_half(0, 300), 4.9090934652977266e-91, 1e-12);
    assert_true(distribution_binomial_half(7, 7) == 1);
}

static void the_noncentral_t(void **state)
{
    (void)state;
    assert_near(distribution_noncentral_t_two_sided(distribution_t_quantile(0.95, 9), 9, 0.5 * sqrt(10)),
                0.2931756065140767, 1e-10);
    assert_near(distribution_noncentral_t_two_sided(distribution_t_quantile(0.95, 198), 198, 0.2 * sqrt(199)),
                0.8016910240370655, 1e-10);
    assert_near(distribution_noncentral_t_two_sided(distribution_t_quantile(0.95, 1), 1, 5 * sqrt(2)),
                0.42096140914950364, 1e-10);
    assert_near(distribution_noncentral_t_two_sided(2.5, 4, 0), 0.066766544811988145, 1e-10);
    assert_near(distribution_noncentral_t_two_sided(2.5, 4, 3), distribution_noncentral_t_two_sided(2.5, 4, -3), 1e-10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_incomplete_beta_function),
        cmocka_unit_test(students_distribution_and_its_tails),
        cmocka_unit_test(quantiles),
        cmocka_unit_test(fair_coins),
        cmocka_unit_test(the_noncentral_t),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
