#include "results/store/run_rows.h"

#include <stdio.h>
#include <string.h>

#include "core/digest.h"
#include "results/store/store_internal.h"

void run_rows_close(struct run_rows *rows)
{
    for (size_t i = 0; i < STORE_TABLES; i++) {
        statement_close(rows->table[i].read);
        statement_close(rows->table[i].write);
    }
    memset(rows->table, 0, sizeof rows->table);
}

/* The SQL that reads and writes a table, keys first, and the number of keys. Left out: `run`, and a key of one column,
 * which only numbers the rows. */
static const char access_sql[] =
    "SELECT 'SELECT ' || names || ' FROM ' || ?1 || ' WHERE run = ?1 ORDER BY ' || coalesce(keys, 'rowid'), "
    "'INSERT INTO ' || ?1 || ' (run, ' || names || ') VALUES (?1' || marks || ')', count FROM ("
    "SELECT group_concat(name, ', ') AS names, group_concat(name, ', ') FILTER (WHERE pk > 0) AS keys, "
    "group_concat(', ?', '') AS marks, count(*) FILTER (WHERE pk > 0) AS count "
    "FROM (SELECT '\"' || name || '\"' AS name, pk FROM pragma_table_info(?1) WHERE name <> 'run' AND "
    "(pk = 0 OR (SELECT count(*) FROM pragma_table_info(?1) WHERE pk > 0) > 1) ORDER BY pk = 0, pk, cid))";

static status open_access(struct run_rows *rows, size_t table, struct error *error)
{
    struct table_access *access = &rows->table[table];
    struct statement *sql;
    if (access->read)
        return OK;
    TRY(database_row(rows->database, access_sql, VALUES(value_text(store_tables[table].name)), &sql, error));
    status result = statement_open(&access->read, rows->database, statement_text(sql, 0), error);
    NEXT(result, statement_open(&access->write, rows->database, statement_text(sql, 1), error));
    access->keys = (size_t)statement_integer(sql, 2);
    statement_close(sql);
    return result;
}

/* The rows of a run, from the first. */
static status begin_reading(struct run_rows *rows, size_t table, int64_t run, bool *row, struct error *error)
{
    TRY(open_access(rows, table, error));
    TRY(statement_bind(rows->table[table].read, VALUES(value_integer(run)), error));
    return statement_step(rows->table[table].read, row, error);
}

/* --- Comparing --- */

static int compare_bytes(const struct value *a, const struct value *b)
{
    size_t shared = a->bytes.size < b->bytes.size ? a->bytes.size : b->bytes.size;
    int order = memcmp(a->bytes.data, b->bytes.data, shared);
    return order ? order : (a->bytes.size > b->bytes.size) - (a->bytes.size < b->bytes.size);
}

/* Compares in SQLite's order. Tables are STRICT, so a column's values have one type or are null. */
static int compare_values(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return (a->kind > b->kind) - (a->kind < b->kind);
    if (a->kind == VALUE_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (a->kind == VALUE_REAL)
        return (a->real > b->real) - (a->real < b->real);
    return a->kind == VALUE_NULL ? 0 : compare_bytes(a, b);
}

/* The first column of [from, to) in which two rows differ; to: none. *order says how. */
static size_t first_difference(struct statement *a, struct statement *b, size_t from, size_t to, int *order)
{
    *order = 0;
    for (size_t column = from; column < to; column++) {
        struct value left = statement_value(a, column), right = statement_value(b, column);
        *order = compare_values(&left, &right);
        if (*order != 0)
            return column;
    }
    return to;
}

/* "evaluations (task 2, after_task 5)" */
static void add_place(struct text *text, const char *table, size_t keys, struct statement *row)
{
    text_add(text, "%s", table);
    for (size_t i = 0; i < keys; i++) {
        struct value key = statement_value(row, i);
        text_add(text, "%s%s ", i ? ", " : " (", statement_title(row, i));
        value_describe(&key, text);
    }
    text_add(text, "%s", keys ? ")" : "");
}

static void add_contradiction(struct text *text, size_t column, const char *first, struct statement *a,
                              const char *second, struct statement *b)
{
    struct value left = statement_value(a, column), right = statement_value(b, column);
    if (left.kind == VALUE_BLOB && right.kind == VALUE_BLOB && left.bytes.size == right.bytes.size) {
        text_add(text, ": %s differs", statement_title(a, column));
        return;
    }
    text_add(text, ": %s is ", statement_title(a, column));
    value_describe(&left, text);
    text_add(text, " in %s and ", first);
    value_describe(&right, text);
    text_add(text, " in %s", second);
}

/* Both statements are ordered by key, and stand on their first row where there is one. */
static status compare_rows(struct run_rows *first, bool left, struct run_rows *second, bool right, size_t table,
                           struct row_difference *difference, struct error *error)
{
    struct statement *a = first->table[table].read, *b = second->table[table].read;
    size_t keys = first->table[table].keys, columns = statement_columns(a);
    const char *name = store_tables[table].name;
    while (left || right) {
        int order = left ? -1 : 1, unlike;
        if (left && right)
            first_difference(a, b, 0, keys, &order);
        struct text *only = order < 0 ? &difference->only_first : &difference->only_second;
        if (order != 0 && only->size == 0)
            add_place(only, name, keys, order < 0 ? a : b);
        size_t column = order == 0 ? first_difference(a, b, keys, columns, &unlike) : columns;
        if (column < columns) {
            add_place(&difference->contradiction, name, keys, a);
            add_contradiction(&difference->contradiction, column, first->name, a, second->name, b);
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
    TRY(begin_reading(first, table, first_run, &left, error));
    TRY(begin_reading(second, table, second_run, &right, error));
    TRY(compare_rows(first, left, second, right, table, difference, error));
    if (difference->contradiction.size == 0 && difference->only_first.size && difference->only_second.size)
        text_add(&difference->contradiction, "%s is only in %s and %s only in %s", difference->only_first.data,
                 first->name, difference->only_second.data, second->name);
    return OK;
}

status run_rows_compare(struct run_rows *first, int64_t first_run, struct run_rows *second, int64_t second_run,
                        struct row_difference *difference, struct error *error)
{
    for (size_t i = 0; i < STORE_TABLES && difference->contradiction.size == 0; i++)
        if (!store_tables[i].local)
            TRY(run_rows_compare_table(first, first_run, second, second_run, i, difference, error));
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
    TRY(open_access(target, table, error));
    TRY(begin_reading(source, table, run, &row, error));
    while (row) {
        if (statement_run_row(target->table[table].write, *number, source->table[table].read, error) != OK)
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

/* --- Digests and deleting --- */

static status add_row(void *context, struct statement *row, struct error *error)
{
    struct held_rows *rows = context;
    uint64_t digest = 0;
    (void)error;
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
