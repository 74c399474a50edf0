/* Questions as files: their heads, how rows become columns, and the functions that their SQL has. */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/query.h"
#include "results/query/question.h"
#include "results/statistics/permutation.h"
#include "results/statistics/statistics.h"

static void open_empty(struct store **store)
{
    assert_ok(store_open_memory(store, "questions", &error));
}

/* Asks a question of its own file. */
static status ask(const char *text, struct table *table, struct text *note, struct error *found)
{
    struct store *store;
    struct questions questions;
    struct question question;
    open_empty(&store);
    assert_ok(questions_open(&questions, NULL, &error));
    status result = question_parse(&question, "own", "own.sql", text, found);
    if (result == OK)
        result =
            query_ask(store, &questions, &question, &(struct query_filter){.dataset = "mnist"}, table, note, found);
    question_free(&question);
    questions_close(&questions);
    store_close(store);
    return result;
}

static void expect(const char *text, const char *csv)
{
    struct table table = {0};
    struct text rendered = {0};
    assert_ok(ask(text, &table, NULL, &error));
    assert_ok(table_render(&table, TABLE_CSV, false, &rendered, &error));
    assert_string_equal(rendered.data, csv);
    text_free(&rendered);
    table_free(&table);
}

static void refuse(const char *text, const char *words)
{
    struct table table = {0};
    assert_fails(ask(text, &table, NULL, &error), ERROR_ARGUMENT, words);
    table_free(&table);
}

static void rows_become_columns(void **state)
{
    (void)state;
    expect("-- title: a matrix\n-- wide: name value\n"
           "SELECT column1 AS row, column2 AS name, column3 AS value FROM (VALUES (1, 'a', 10), (1, 'b', 20), (2, 'b', "
           "40), "
           "(2, 'c', 50))",
           "row,a,b,c\r\n1,10,20,\r\n2,,40,50\r\n");
    /* A title that a row has twice is two columns, in the order of the rows. */
    expect("-- wide: name value\n"
           "SELECT column1 AS row, column2 AS name, column3 AS value FROM (VALUES (1, 'mean', 10), (1, 'mean', 20), "
           "(2, 'mean', 30), (2, 'mean', 40))",
           "row,mean,mean\r\n1,10,20\r\n2,30,40\r\n");
    /* Without titles there are no such columns; hidden ones keep rows apart. */
    expect("-- wide: name value\n-- column: number hidden\n"
           "SELECT column1 AS number, 'x' AS row, NULL AS name, 1 AS value FROM (VALUES (1), (2))",
           "row\r\nx\r\nx\r\n");
    expect("-- wide: name value\nSELECT 1 AS row, 'a' AS name, 2 AS value WHERE 0", "row\r\n");
}

static void heads_say_how_columns_are_shown(void **state)
{
    (void)state;
    struct table table = {0};
    assert_ok(ask("-- column: suite once\n-- column: \"last ±\" 2\n-- column: mean 1 highest right\n-- block: suite\n"
                  "SELECT column1 AS suite, column2 AS mean, 0.375 AS \"last ±\" FROM (VALUES ('a', 1.25), ('a', 2.5), "
                  "('b', 3.0))",
                  &table, NULL, &error));
    struct text text = {0};
    assert_ok(table_render(&table, TABLE_MARKDOWN, false, &text, &error));
    assert_non_null(strstr(text.data, "**2.5**"));
    assert_non_null(strstr(text.data, "0.38"));
    assert_int_equal(table.blocks, 1);
    assert_true(table.column[0].once);
    text_free(&text);
    table_free(&table);
}

static void what_a_head_cannot_say_is_an_error_with_its_line(void **state)
{
    (void)state;
    refuse("-- title: x\n-- colour: red\nSELECT 1",
           "own.sql:2: expected title, column, block, wide or a key of a page");
    refuse("-- column: last bold\nSELECT 1", "own.sql:1: expected once, hidden");
    refuse("-- column:\nSELECT 1", "own.sql:1: expected the name of a column");
    refuse("-- just words\nSELECT 1", "own.sql:1: expected \"-- key: value\" or SQL");
    refuse("-- wide: name\nSELECT 1", "own.sql:1: expected a word");
    refuse("-- block: suite\nSELECT 1 AS x", "lacks a column that its head names: suite");
    refuse("-- wide: name value\nSELECT 1 AS name", "lacks a column that its head names");
    refuse("-- title: x\nDELETE FROM runs", "only reads");
    refuse("-- title: x\nSELECT 1; SELECT 2", "one SQL");
    refuse("SELECT 1\n-- instead:\nSELECT 'no-such'", "there is no question \"no-such\"");
}

static void statements_behind_the_answer_refuse_note_and_send_on(void **state)
{
    (void)state;
    struct table table = {0};
    struct text note = {0};
    refuse("SELECT 1\n-- refuse:\nSELECT 'not for ' || :dataset", "not for mnist");
    assert_ok(ask("SELECT 1 AS one\n-- refuse:\nSELECT 'x' WHERE 0\n-- note:\nSELECT 'one is left out'\n", &table,
                  &note, &error));
    assert_string_equal(note.data, "one is left out");
    table_free(&table);
    expect("SELECT 1 AS one\n-- instead:\nSELECT 'digest' WHERE :dataset = 'mnist'",
           "accuracies,digest\r\n0,e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\n");
    text_free(&note);
}

static void a_folder_adds_and_replaces(void **state)
{
    (void)state;
    char folder[] = "/tmp/mtil-questions-XXXXXX", path[80], other[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/runs.sql", folder);
    snprintf(other, sizeof other, "%s/ours.sql", folder);
    assert_ok(file_write(path, "-- title: our runs\nSELECT 1\n", 28, &error));
    assert_ok(file_write(other, "-- title: ours\nSELECT 2\n", 24, &error));
    struct questions own, all;
    assert_ok(questions_open(&own, NULL, &error));
    assert_ok(questions_open(&all, folder, &error));
    assert_int_equal(all.count, own.count + 1);
    assert_string_equal(questions_find(&all, "runs")->title, "our runs");
    assert_string_equal(questions_find(&all, "ours")->title, "ours");
    assert_null(questions_find(&own, "ours"));
    assert_ok(file_write(other, "-- titel: ours\n", 15, &error));
    questions_close(&all);
    assert_fails(questions_open(&all, folder, &error), ERROR_ARGUMENT, "ours.sql:1: expected title");
    questions_close(&all);
    questions_close(&own);
    remove(path);
    remove(other);
    remove(folder);
}

/* --- Functions --- */

static double number(const char *sql)
{
    struct store *store;
    struct table table = {0};
    open_empty(&store);
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
    double sd = statistics_sd(x, 5);
    const struct {
        const char *sql;
        double value;
    } cases[] = {
        {"SELECT mean(x) FROM " SAMPLE, 1},
        {"SELECT sd(x) FROM " SAMPLE, sd},
        {"SELECT half_width(x) FROM " SAMPLE, statistics_mean_interval(0, sd, 5, 0.95).high},
        {"SELECT paired_t_p(x) FROM " SAMPLE, statistics_paired_t_p(x, 5)},
        {"SELECT permutation_p(x) FROM " SAMPLE, permutation_sign_flips(x, 5, 1).p},
        {"SELECT wilcoxon_p(x) FROM " SAMPLE, permutation_signed_ranks(x, 5).p},
        {"SELECT hodges_lehmann(x) FROM " SAMPLE, statistics_hodges_lehmann(x, 5)},
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
    open_empty(&store);
    assert_fails(query_sql(store, "SELECT wilson_low(-1, 5)", &table, &error), ERROR_ARGUMENT, "expected a count");
    table_free(&table);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_columns),
        cmocka_unit_test(heads_say_how_columns_are_shown),
        cmocka_unit_test(what_a_head_cannot_say_is_an_error_with_its_line),
        cmocka_unit_test(statements_behind_the_answer_refuse_note_and_send_on),
        cmocka_unit_test(a_folder_adds_and_replaces),
        cmocka_unit_test(functions_are_those_of_statistics),
        cmocka_unit_test(what_is_undefined_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
