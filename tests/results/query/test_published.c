/* The published numbers are those of the fixture; published.txt has what else can be checked. */
#include "tests/results/check.h"

#include <jansson.h>

#include "results/query.h"

static struct table ask(struct store *store, const char *sql)
{
    struct table table = {0};
    assert_ok(query_sql(store, sql, &table, &error));
    return table;
}

static int create(void **state)
{
    struct store *store;
    assert_ok(store_open(&store, "published numbers", STORE_MEMORY, &error));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_are_the_fixtures),
        cmocka_unit_test(columns_are_the_fixtures),
    };
    return cmocka_run_group_tests(tests, create, destroy);
}
