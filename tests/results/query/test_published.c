/* The published numbers are those of the fixture; published.txt has what else can be checked. */
#include "tests/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/query.h"

/* How many cells the fixture and the program have, and how many of them are the same. */
#define COMPARE(list, cells, from, same)                                                                               \
    "SELECT (SELECT count(*) FROM json_each(text, '$." list "') AS item, json_each(item.value, '$." cells "')), "      \
    "(SELECT count(*) FROM " from "), "                                                                                \
    "(SELECT count(*) FROM json_each(text, '$." list "') AS item, json_each(item.value, '$." cells "') AS cell "       \
    "JOIN " from " ON method = json_extract(item.value, '$.method') AND accuracy IS cell.value AND " same ") "         \
    "FROM fixture"
#define ROWS                                                                                                           \
    COMPARE("rows", "per_task", "(SELECT * FROM published WHERE source GLOB 'Park, Tables*')",                         \
            "metric = json_extract(item.value, '$.metric') AND task = cell.key")
#define COLUMNS                                                                                                        \
    COMPARE("columns", "column", "published_matrix", "task = json_extract(item.value, '$.j') AND after_task = cell.key")

TEST(they_are_the_fixtures)
{
    json_t *metrics = json_load_file(FIXTURES "/model/base/metrics.json", 0, NULL);
    if (metrics == NULL)
        skip();
    char *printed = json_dumps(json_object_get(metrics, "published"), 0);
    struct store *store;
    struct table table = {0};
    struct text sql = {0};
    assert_null(strchr(printed, '\''));
    assert_ok(store_open(&store, "published numbers", STORE_MEMORY, &error));
    assert_ok(published_attach(store, &error));
    assert_ok(published_attach(store, &error)); /* again does nothing */
    text_add(&sql, "WITH fixture (text) AS (SELECT '%s') " ROWS " UNION ALL " COLUMNS, printed);
    assert_ok(query_sql(store, sql.data, &table, &error));
    assert_int_equal(table_rows(&table), 2);
    for (size_t row = 0; row < 2; row++) {
        assert_true(table_cell_at(&table, row, 0)->integer >= 66);
        assert_int_equal(table_cell_at(&table, row, 1)->integer, table_cell_at(&table, row, 0)->integer);
        assert_int_equal(table_cell_at(&table, row, 2)->integer, table_cell_at(&table, row, 0)->integer);
    }
    text_free(&sql);
    table_free(&table);
    store_close(store);
    free(printed);
    json_decref(metrics);
}
