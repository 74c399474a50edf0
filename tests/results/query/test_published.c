/* The published numbers are those of the fixture, and stay apart from runs. */
#include "tests/results/check.h"

#include <jansson.h>

#include "results/query.h"
#include "results/query/published.h"

static struct table ask(struct store *store, const char *sql)
{
    struct table table = {0};
    assert_ok(query_sql(store, sql, &table, &error));
    return table;
}

static int create(void **state)
{
    struct store *store;
    assert_ok(store_open_memory(&store, "published numbers", &error));
    assert_ok(published_attach(store, &error));
    assert_ok(published_attach(store, &error));
    *state = store;
    return 0;
}

static int destroy(void **state)
{
    store_close(*state);
    return 0;
}

static json_t *fixture(void)
{
    json_t *metrics = json_load_file(FIXTURES "/model/base/metrics.json", 0, NULL);
    if (!metrics)
        return NULL;
    json_t *published = json_incref(json_object_get(metrics, "published"));
    json_decref(metrics);
    return published;
}

/* Each of the table's accuracies, in order, is the fixture's. */
static void compare(const struct table *table, size_t first, const json_t *expected)
{
    for (size_t i = 0; i < json_array_size(expected); i++) {
        const json_t *value = json_array_get(expected, i);
        const struct table_cell *cell = table_cell_at(table, first + i, 0);
        if (json_is_null(value))
            assert_int_equal(cell->kind, CELL_EMPTY);
        else
            assert_true(cell->kind == CELL_REAL && cell->real == json_number_value(value));
    }
}

static void metrics_are_the_fixtures(void **state)
{
    json_t *published = fixture(), *rows = json_object_get(published, "rows");
    if (!published)
        skip();
    struct table table = ask(
        *state, "SELECT accuracy, method, metric FROM published WHERE source GLOB 'Park, Tables*' ORDER BY row, task");
    assert_int_equal(table_rows(&table), 11 * json_array_size(rows));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        assert_string_equal(table_cell_at(&table, 11 * i, 1)->text, json_string_value(json_object_get(row, "method")));
        assert_string_equal(table_cell_at(&table, 11 * i, 2)->text, json_string_value(json_object_get(row, "metric")));
        compare(&table, 11 * i, json_object_get(row, "per_task"));
    }
    table_free(&table);
    json_decref(published);
}

static void columns_are_the_fixtures(void **state)
{
    json_t *published = fixture(), *columns = json_object_get(published, "columns");
    if (!published)
        skip();
    struct table table =
        ask(*state, "SELECT accuracy, method, task FROM published_matrix ORDER BY method, task, after_task");
    assert_int_equal(table_rows(&table), 11 * json_array_size(columns));
    for (size_t i = 0; i < json_array_size(columns); i++) {
        const json_t *column = json_array_get(columns, i);
        assert_string_equal(table_cell_at(&table, 11 * i, 1)->text,
                            json_string_value(json_object_get(column, "method")));
        assert_int_equal(table_cell_at(&table, 11 * i, 2)->integer, json_integer_value(json_object_get(column, "j")));
        compare(&table, 11 * i, json_object_get(column, "column"));
    }
    table_free(&table);
    json_decref(published);
}

static void every_row_has_its_source_and_dataset(void **state)
{
    struct table table = ask(*state, "SELECT count(*) FROM published WHERE source = '' OR source IS NULL OR dataset IS "
                                     "NULL OR (accuracy IS NULL AND (metric <> 'transfer' OR task > 0))");
    assert_int_equal(table.cell[0].integer, 0);
    table_free(&table);
    table = ask(*state, "SELECT group_concat(dataset, ' ') FROM published WHERE row = 1");
    assert_string_equal(table.cell[0].text,
                        "aircraft caltech101 cifar100 dtd eurosat flowers food mnist oxford_pet stanford_cars sun397");
    table_free(&table);
}

/* A printed mean is that of the row beside it, within what rounding moves it. */
static void means_are_those_of_their_rows(void **state)
{
    struct table table = ask(*state, "SELECT count(*) FROM (SELECT source, mean, avg(accuracy) AS own "
                                     "FROM published JOIN published_rows USING (row, source) WHERE mean IS NOT NULL "
                                     "GROUP BY row HAVING abs(own - mean) > 0.0801)");
    assert_int_equal(table.cell[0].integer, 0);
    table_free(&table);
    table = ask(*state, "SELECT count(*) FROM published_rows WHERE mean IS NOT NULL AND accuracies IS NOT NULL");
    assert_true(table.cell[0].integer > 40);
    table_free(&table);
    table = ask(*state,
                "SELECT count(*) FROM published_rows WHERE task_order NOT IN (SELECT task_order FROM published_tasks)");
    assert_int_equal(table.cell[0].integer, 0);
    table_free(&table);
}

/* EWA's Tables 2 (9 models, 2 datasets), 3 (5 figures) and 4 (2 models, 2 datasets), each dense and averaged, and Table 5's
 * two mixtures with a router on 4 datasets. A printed difference is that of the two accuracies. */
static void classifiers_of_a_paper_are_all_there(void **state)
{
    struct table table =
        ask(*state, "SELECT count(accuracy), count(*), count(DISTINCT method || '/' || dataset || '/' || scratch) "
                    "FROM published_classifiers WHERE source GLOB 'EWA*'");
    for (size_t column = 0; column < 3; column++)
        assert_int_equal(table_cell_at(&table, 0, column)->integer, 2 * (9 * 2 + 5 + 2 * 2) + 2 * 4);
    table_free(&table);
    table =
        ask(*state, "SELECT count(*), sum(abs(e.accuracy - d.accuracy - e.difference) > 0.001) "
                    "FROM published_classifiers AS e JOIN published_classifiers AS d USING (source, dataset, scratch) "
                    "WHERE e.difference IS NOT NULL AND d.method = replace(e.method, 'EWA', 'Dense')");
    assert_int_equal(table_cell_at(&table, 0, 0)->integer, 9 * 2 + 5 + 2 * 2);
    assert_int_equal(table_cell_at(&table, 0, 1)->integer, 0);
    table_free(&table);
}

/* What fine-tuning reaches on each task alone, and a mean that Park prints otherwise than ZSCL. */
static void parks_upper_block_is_there(void **state)
{
    static const struct {
        const char *source, *method;
        double mean;
        int tasks;
    } expected[] = {{"Park, Table 2", "Fine-tune", 89.2, 11},
                    {"Park, Table 2", "Adapter", 88.3, 11},
                    {"Park, Table 2", "LwF", 58.9, 0},
                    {"ZSCL, Table 3", "LwF", 56.9, 10}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char sql[256];
        snprintf(
            sql, sizeof sql,
            "SELECT mean, (SELECT count(accuracy) FROM published AS p WHERE p.row = r.row) FROM published_rows AS r "
            "WHERE source = '%s' AND method = '%s' AND metric = '%s' AND task_order = 'I'",
            expected[i].source, expected[i].method, i < 2 ? "last" : "transfer");
        struct table table = ask(*state, sql);
        assert_int_equal(table_rows(&table), 1);
        assert_true(table.cell[0].real == expected[i].mean);
        assert_int_equal(table.cell[1].integer, expected[i].tasks);
        table_free(&table);
    }
}

static void they_are_no_runs(void **state)
{
    struct table table = ask(*state, "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM metrics) + "
                                     "(SELECT count(*) FROM leaderboard)");
    assert_int_equal(table.cell[0].integer, 0);
    table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_are_the_fixtures),
        cmocka_unit_test(columns_are_the_fixtures),
        cmocka_unit_test(every_row_has_its_source_and_dataset),
        cmocka_unit_test(means_are_those_of_their_rows),
        cmocka_unit_test(classifiers_of_a_paper_are_all_there),
        cmocka_unit_test(parks_upper_block_is_there),
        cmocka_unit_test(they_are_no_runs),
    };
    return cmocka_run_group_tests(tests, create, destroy);
}
