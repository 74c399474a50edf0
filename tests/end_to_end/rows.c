#include "tests/end_to_end/rows.h"

#include <sqlite3.h>
#include <string.h>

static void add_value(sqlite3_stmt *statement, int column, struct text *rows)
{
    const uint8_t *bytes = sqlite3_column_blob(statement, column);
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
        text_add(rows, "NULL");
        break;
    case SQLITE_FLOAT:
        text_add(rows, "%.17g", sqlite3_column_double(statement, column));
        break;
    case SQLITE_BLOB:
        for (int i = 0; i < sqlite3_column_bytes(statement, column); i++)
            text_add(rows, "%02x", bytes[i]);
        break;
    default:
        text_add(rows, "%s", (const char *)sqlite3_column_text(statement, column));
    }
}

static void add_answer(sqlite3 *database, const char *sql, struct text *rows)
{
    sqlite3_stmt *statement;
    int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
    if (result != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    while ((result = sqlite3_step(statement)) == SQLITE_ROW)
        for (int c = 0; c < sqlite3_column_count(statement); c++) {
            add_value(statement, c, rows);
            text_add(rows, "%s", c + 1 < sqlite3_column_count(statement) ? "," : "\n");
        }
    assert_int_equal(result, SQLITE_DONE);
    sqlite3_finalize(statement);
}

void rows_query(const char *name, const char *sql, struct text *rows)
{
    sqlite3 *database;
    text_add(rows, "%s", "");
    assert_int_equal(sqlite3_open_v2(scratch_file(&workshop, name), &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(database, 60000), SQLITE_OK); /* a run that ends locks readers out, briefly */
    add_answer(database, sql, rows);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

/* A statement per table, of its columns but those that tell of clocks, machines and what changes no number. */
static const char tables_sql[] =
    "SELECT 'SELECT ' || group_concat('\"' || c.name || '\"') || ' FROM \"' || t.name || '\" ORDER BY 1, 2' "
    "FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' "
    "AND t.name NOT IN ('timings', 'resources', 'sessions', 'settings') "
    "AND c.name NOT IN ('started', 'finished', 'host', 'process', 'path', 'folder', 'suite_text') GROUP BY t.name "
    "ORDER BY t.name";

void rows_read(const char *name, struct text *rows)
{
    struct text tables = {0};
    rows_query(name, tables_sql, &tables);
    for (char *table = strtok(tables.data, "\n"); table != NULL; table = strtok(NULL, "\n")) {
        text_add(rows, "-- %s\n", table);
        rows_query(name, table, rows);
    }
    text_free(&tables);
}
