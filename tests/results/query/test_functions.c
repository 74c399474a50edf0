/* The functions that the SQL of questions has; heads.txt has their heads. */
#include "tests/results/check.h"

#include <math.h>

#include "results/query.h"
#include "results/statistics/permutation.h"
#include "results/statistics/statistics.h"

static double number(const char *sql)
{
    struct store *store;
    struct table table = {0};
    assert_ok(store_open_memory(&store, "questions", &error));
    assert_ok(query_sql(store, sql, &table, &error));
    const struct table_cell *cell = table_cell_at(&table, 0, 0);
    double value = cell->kind == CELL_REAL      ? cell->real
                   : cell->kind == CELL_INTEGER ? (double)cell->integer
                                                : (double)NAN;
    table_free(&table);
    store_close(store);
    return value;
}

#define SAMPLE                                                                                                         \
    "(SELECT column1 AS x, column2 AS y FROM (VALUES (0.5, 2), (-0.25, 3), (1.5, 7), (NULL, 1), (0.75, 4), (2.5, 8)))"

static void functions_are_those_of_statistics(void **state)
{
    (void)state;
    const double x[] = {-0.25, 0.5, 0.75, 1.5, 2.5}, y[] = {3, 2, 4, 7, 8};
    struct sign_flip_test flips;
    struct signed_rank_test ranks;
    double median, sd = statistics_sd(x, 5);
    assert_ok(permutation_sign_flips(x, 5, 1, &flips, &error));
    assert_ok(permutation_signed_ranks(x, 5, &ranks, &error));
    assert_ok(statistics_hodges_lehmann(x, 5, &median, &error));
    const struct {
        const char *sql;
        double value;
    } cases[] = {
        {"SELECT mean(x) FROM " SAMPLE, 1},
        {"SELECT sd(x) FROM " SAMPLE, sd},
        {"SELECT half_width(x) FROM " SAMPLE, statistics_mean_interval(0, sd, 5, 0.95).high},
        {"SELECT paired_t_p(x) FROM " SAMPLE, statistics_paired_t_p(x, 5)},
        {"SELECT permutation_p(x) FROM " SAMPLE, flips.p},
        {"SELECT wilcoxon_p(x) FROM " SAMPLE, ranks.p},
        {"SELECT hodges_lehmann(x) FROM " SAMPLE, median},
        {"SELECT correlation(x, y) FROM " SAMPLE, statistics_correlation(x, y, 5)},
        {"SELECT fisher_low(0.5, 12, 1)", statistics_correlation_interval(0.5, 12, 1, 0.95).low},
        {"SELECT fisher_high(0.5, 12, 1)", statistics_correlation_interval(0.5, 12, 1, 0.95).high},
        {"SELECT wilson_low(3, 20)", statistics_wilson(3, 20, 0.95).low},
        {"SELECT wilson_high(3, 20)", statistics_wilson(3, 20, 0.95).high},
        {"SELECT mcnemar_p(3, 12)", statistics_mcnemar(3, 12)},
        {"SELECT least_p(8)", 2.0 / 256},
        {"SELECT entropy(column1) FROM (VALUES (4), (4), (0), (8))", 1.5},
        {"SELECT holm(0.02, '[0.01,0.02,null,0.3]')", 0.04},
        {"SELECT holm(0.3, json_array(0.01, 0.02, 0.3))", 0.3},
        {"SELECT holm(p, (SELECT json_group_array(p) FROM (SELECT 1.0/3 AS p UNION ALL SELECT 0.5))) FROM (SELECT "
         "1.0/3 AS p)",
         2.0 / 3},
        /* Five values around 1 with a deviation of sd are within 10 by t = 9 √5 / sd. */
        {"SELECT equivalence_p(x, 1.0) FROM " SAMPLE, 0.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!(fabs(number(cases[i].sql) - cases[i].value) < 1e-12))
            fail_msg("%s: %.17g, expected %.17g", cases[i].sql, number(cases[i].sql), cases[i].value);
    double wide = number("SELECT equivalence_p(x, 5.0) FROM " SAMPLE),
           narrow = number("SELECT equivalence_p(x, 0.5) FROM " SAMPLE);
    assert_true(wide < 0.005 && narrow > 0.5);
}

static void what_is_undefined_is_null(void **state)
{
    (void)state;
    const char *const cases[] = {
        "SELECT sd(1.5)",
        "SELECT half_width(1.5)",
        "SELECT mean(NULL)",
        "SELECT mean('text')",
        "SELECT sd(x) FROM (SELECT 1 AS x WHERE 0)",
        "SELECT wilson_low(0, 0)",
        "SELECT fisher_low(NULL, 5, 0)",
        "SELECT holm(NULL, '[1]')",
        "SELECT holm(0.5, NULL)",
        "SELECT holm(0.5, '[]')",
        "SELECT correlation(1, 2)",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!isnan(number(cases[i])))
            fail_msg("%s: %g", cases[i], number(cases[i]));
    struct store *store;
    struct table table = {0};
    assert_ok(store_open_memory(&store, "questions", &error));
    assert_fails(query_sql(store, "SELECT wilson_low(-1, 5)", &table, &error), ERROR_ARGUMENT, "expected a count");
    table_free(&table);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_those_of_statistics),
        cmocka_unit_test(what_is_undefined_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
