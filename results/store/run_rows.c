/* The rows of one run in a database, table by table: compares them with another database's, copies, deletes and digests
 * them. `run` does not count, whose number differs between files; nor does, in comparisons, a row's own number. */
#include <stdio.h>
#include <string.h>

#include "core/digest.h"
#include "results/store/store_internal.h"

void run_rows_close(struct run_rows *rows)
{
    for (size_t i = 0; i < STORE_TABLES; i++) {
        statement_close(rows->table[i].read);
        statement_close(rows->table[i].write);
        statement_close(rows->table[i].text);
    }
    memset(rows->table, 0, sizeof rows->table);
}

/* The SQL that reads and writes a table, and that reads it as text: "task 2, after_task 5" and "correct 3, images 10". Left
 * out: `run`, and a key of one column, which only numbers the rows. */
static const char access_sql[] =
    "WITH columns AS (SELECT '\"' || name || '\"' AS quoted, name, pk > 0 AS key FROM pragma_table_info(?1) "
    "WHERE name <> 'run' AND (pk = 0 OR (SELECT count(*) FROM pragma_table_info(?1) WHERE pk > 0) > 1)), "
    "texts AS (SELECT *, '''' || name || "
    "replace(' '' || iif(typeof(@) = ''real'', shortest(@), quote(@))', '@', quoted) AS text FROM columns) "
    "SELECT 'SELECT ' || group_concat(quoted) || ' FROM ' || ?1 || ' WHERE run = ?1 ORDER BY ' || "
    "coalesce(group_concat(quoted) FILTER (WHERE key), 'rowid'), "
    "'INSERT INTO ' || ?1 || ' (run, ' || group_concat(quoted) || ') VALUES (?1' || group_concat(', ?', '') || ')', "
    "'SELECT ' || coalesce(group_concat(text, ' || '', '' || ') FILTER (WHERE key), '''''') || ', ' || "
    "coalesce(group_concat(text, ' || '', '' || ') FILTER (WHERE NOT key), '''''') || ' FROM ' || ?1 || "
    "' WHERE run = ?1 ORDER BY 1, 2' FROM texts";

/* writes: rows are added, too. Of a table that the file lacks nothing can be prepared that writes. */
static status open_access(struct run_rows *rows, size_t table, bool writes, struct error *error)
{
    struct table_access *access = &rows->table[table];
    SCOPED(statement_close_at) struct statement *sql = NULL;
    if (access->text && (access->write || !writes))
        return OK;
    TRY(database_row(rows->database, access_sql, VALUES(value_text(store_tables[table].name)), &sql, error));
    if (!access->text) {
        TRY(statement_open(&access->read, rows->database, statement_text(sql, 0), error));
        TRY(statement_open(&access->text, rows->database, statement_text(sql, 2), error));
    }
    return writes ? statement_open(&access->write, rows->database, statement_text(sql, 1), error) : OK;
}

static status first_row(struct statement *statement, int64_t run, bool *row, struct error *error)
{
    TRY(statement_bind(statement, VALUES(value_integer(run)), error));
    return statement_step(statement, row, error);
}

/* --- Comparing --- */

/* "evaluations (task 2, after_task 5)" */
static void add_place(struct text *text, const char *table, struct statement *row)
{
    const char *place = statement_text(row, 0);
    text_add(text, "%s%s%s%s", table, *place != 0 ? " (" : "", place, *place != 0 ? ")" : "");
}

/* How many characters of a column and its value are shown. */
static int shown(const char *column)
{
    const char *end = strstr(column, ", ");
    size_t size = end != NULL ? (size_t)(end - column) : strlen(column);
    return size < 60 ? (int)size : 60;
}

/* ": correct 3 in a.db and correct 4 in b.db", of the first column that differs. */
static void add_contradiction(struct text *text, const char *first, const char *a, const char *second, const char *b)
{
    size_t column = 0, at = 0;
    for (; a[at] == b[at]; at++)
        column = strncmp(a + at, ", ", 2) == 0 ? at + 2 : column;
    a += column, b += column, at -= column;
    size_t name = strcspn(a, " ");
    if (at > (size_t)shown(a) || strncmp(a + name, " X'", 3) == 0) /* a blob says nothing */
        text_add(text, ": %.*s differs", (int)name, a);
    else
        text_add(text, ": %.*s in %s and %.*s in %s", shown(a), a, first, shown(b), b, second);
}

/* Both statements are ordered by their text, and stand on their first row where there is one. */
static status compare_rows(struct run_rows *first, bool left, struct run_rows *second, bool right, size_t table,
                           struct row_difference *difference, struct error *error)
{
    struct statement *a = first->table[table].text, *b = second->table[table].text;
    const char *name = store_tables[table].name;
    while (left || right) {
        int order = !left ? 1 : !right ? -1 : strcmp(statement_text(a, 0), statement_text(b, 0));
        struct text *only = order < 0 ? &difference->only_first : &difference->only_second;
        if (order != 0 && only->size == 0)
            add_place(only, name, order < 0 ? a : b);
        if (order == 0 && strcmp(statement_text(a, 1), statement_text(b, 1)) != 0) {
            add_place(&difference->contradiction, name, a);
            add_contradiction(&difference->contradiction, first->name, statement_text(a, 1), second->name,
                              statement_text(b, 1));
            return OK;
        }
        if (order <= 0)
            TRY(statement_step(a, &left, error));
        if (order >= 0)
            TRY(statement_step(b, &right, error));
    }
    return OK;
}

status run_rows_compare_table(struct run_rows *first, int64_t first_run, struct run_rows *second, int64_t second_run,
                              size_t table, struct row_difference *difference, struct error *error)
{
    bool left, right;
    TRY(open_access(first, table, false, error));
    TRY(open_access(second, table, false, error));
    TRY(first_row(first->table[table].text, first_run, &left, error));
    TRY(first_row(second->table[table].text, second_run, &right, error));
    TRY(compare_rows(first, left, second, right, table, difference, error));
    if (difference->contradiction.size == 0 && difference->only_first.size && difference->only_second.size)
        text_add(&difference->contradiction, "%s is only in %s and %s only in %s", difference->only_first.data,
                 first->name, difference->only_second.data, second->name);
    return OK;
}

void row_difference_free(struct row_difference *difference)
{
    text_free(&difference->only_first);
    text_free(&difference->only_second);
    text_free(&difference->contradiction);
}

/* --- Copying --- */

static status copy_table(struct run_rows *source, int64_t run, struct run_rows *target, size_t table, int64_t *number,
                         struct error *error)
{
    bool row;
    TRY(open_access(source, table, false, error));
    TRY(open_access(target, table, true, error));
    TRY(first_row(source->table[table].read, run, &row, error));
    while (row) {
        struct value values[TABLE_COLUMNS] = {value_count(*number)};
        size_t columns = statement_columns(source->table[table].read);
        for (size_t i = 0; i < columns && i < TABLE_COLUMNS - 1; i++)
            values[i + 1] = statement_value(source->table[table].read, i);
        if (statement_run(target->table[table].write, values, columns + 1, error) != OK)
            return error_context(error, "rows of %s", source->name);
        if (*number == 0) /* of `runs`, which comes first and has one row */
            *number = database_last_row(target->database);
        TRY(statement_step(source->table[table].read, &row, error));
    }
    return OK;
}

status run_rows_copy(struct run_rows *source, int64_t run, struct run_rows *target, int64_t *number,
                     struct error *error)
{
    for (size_t table = 0; table < STORE_TABLES; table++)
        TRY(copy_table(source, run, target, table, number, error));
    return OK;
}

status run_rows_copy_tasks(struct database *database, int64_t from, int64_t to, struct error *error)
{
    SCOPED(run_rows_close) struct run_rows source = {database, database_path(database), {{0}}}, target = source;
    for (size_t table = 0; table < STORE_TABLES; table++)
        if (store_tables[table].after != NULL && !store_tables[table].local)
            TRY(copy_table(&source, from, &target, table, &to, error));
    return OK;
}

/* --- Digests and deleting --- */

static status add_row(void *context, struct statement *row, struct error *error)
{
    struct held_rows *rows = context;
    uint64_t digest = 0;
    for (size_t i = 1; i < statement_columns(row); i++) { /* the first is the run */
        struct value value = statement_value(row, i);
        bool bytes = value.kind == VALUE_TEXT || value.kind == VALUE_BLOB;
        digest = digest_quick(bytes ? value.bytes.data : &value.integer,
                              bytes ? value.bytes.size : sizeof value.integer, digest + value.kind);
    }
    rows->count++;
    rows->digest += digest;
    return OK;
}

static bool has_part(const struct store_table *table, enum run_part part)
{
    if (part == RUN_HELD)
        return table->after || table->again == AGAIN_KEEPS;
    return part == RUN_ALL || (table->after && (part == RUN_AFTER || !table->local));
}

status run_rows_take(struct database *database, const char *verb, enum run_part part,
                     const struct value run_and_place[3], struct held_rows *read, struct error *error)
{
    for (size_t i = STORE_TABLES; i-- > 0;) { /* each before those that it refers to */
        const struct store_table *table = &store_tables[i];
        char sql[256];
        int size = snprintf(sql, sizeof sql, "%s FROM %s WHERE run = ?1", verb, table->name);
        if (part == RUN_BEFORE || part == RUN_AFTER)
            snprintf(sql + size, sizeof sql - (size_t)size, " AND %s (%s)", part == RUN_AFTER ? "" : "NOT",
                     table->after);
        if (has_part(table, part))
            TRY(database_each(database, sql, run_and_place, 3, add_row, read, error));
    }
    return OK;
}

status run_rows_erase(struct database *database, int64_t run, struct error *error)
{
    return run_rows_take(database, "DELETE", RUN_ALL, (struct value[3]){value_integer(run)}, NULL, error);
}
