#include "results/store/tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "results/store/store_internal.h"

#define NOW "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
#define AFTER_ITERATION "(task, iteration) > (?2, ?3)"
#define AFTER_TASK "after_task >= ?2"
#define OF_TASK "task >= ?2" /* written when the task ends */

const struct store_table store_tables[STORE_TABLES] = {
    {"runs", .local = true, .computed = "started", .by = NOW},
    {"settings", .local = true, .computed = "value",
     .by = "CASE ?4 WHEN 'integer' THEN CAST(?3 AS INTEGER) WHEN 'real' THEN CAST(?3 AS REAL) ELSE ?3 END"},
    {"inputs", .local = true},
    {"sessions", .local = true, .computed = "started", .by = NOW},
    {"tasks", .again = AGAIN_IS_SAME, .changed = "put the data back, or start anew in another database"},
    {"task_classes", .optional = true, .again = AGAIN_IS_SAME,
     .changed = "names changed or the dataset was cut in another way; continue with the original machine, data and "
                "model, or start anew in another database"},
    {"task_similarities", .again = AGAIN_KEEPS},
    {"evaluations", .after = AFTER_TASK},
    {"per_image", .after = AFTER_TASK},
    {"test_labels", .optional = true, .again = AGAIN_IS_SAME,
     .changed = "restore the data, or start anew in another database"},
    {"class_experts", .after = AFTER_TASK, .optional = true},
    {"patch_experts", .after = AFTER_TASK, .optional = true},
    {"expert_counts", .after = OF_TASK},
    {"expert_events", .after = AFTER_ITERATION " OR (task = ?2 AND event = 'freeze')", .computed = "position",
     .by = "(SELECT count(*) FROM expert_events WHERE (run, task, iteration, encoder, block) = (?1, ?2, ?3, ?4, ?5))"},
    {"merge_effects", .after = "(task, known) > (?2, ?3)", .optional = true},
    {"router_choices", .after = AFTER_TASK},
    {"selector_thresholds", .after = OF_TASK},
    {"selector_trials", .local = true},
    {"trial_evaluations", .local = true},
    {"trial_choices", .local = true},
    {"steps", .after = AFTER_ITERATION},
    {"skipped_steps", .after = OF_TASK},
    {"timings", .after = AFTER_ITERATION, .local = true},
    {"artifacts", .after = "task >= max(?2, 0)", .local = true, .again = AGAIN_REPLACES},
};

bool table_is_held(const struct store_table *table)
{
    return table->after != NULL || table->again == AGAIN_KEEPS;
}

void value_describe(const struct value *value, struct text *text)
{
    switch (value->kind) {
    case VALUE_INTEGER:
        text_add(text, "%" PRId64, value->integer);
        break;
    case VALUE_REAL:
        text_add(text, "%.17g", value->real);
        break;
    case VALUE_TEXT:
        text_add(text, "\"%.60s\"", (const char *)value->bytes.data);
        break;
    case VALUE_BLOB:
        text_add(text, "%zu bytes", value->bytes.size);
        break;
    case VALUE_NULL:
        text_add(text, "nothing");
        break;
    }
}

/* --- Writing rows --- */

/* Without a step, because after a request to stop no read begins, but a run still saves its rows. */
static status read_columns(struct insert *insert, struct database *database, const char *table, struct error *error)
{
    struct statement *rows;
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
    TRY(statement_open(&rows, database, sql, error));
    size_t columns = statement_columns(rows);
    status result = columns <= TABLE_COLUMNS ? OK
                                             : error_set(error, ERROR_FORMAT, "%s: more than %d columns in %s",
                                                         database_path(database), TABLE_COLUMNS, table);
    for (; result == OK && insert->columns < columns; insert->columns++) {
        insert->column[insert->columns] = strdup(statement_title(rows, insert->columns));
        if (!insert->column[insert->columns])
            result = error_set(error, ERROR_MEMORY, "%s: out of memory", database_path(database));
    }
    statement_close(rows);
    return result;
}

static void add_columns(struct text *sql, const struct insert *insert, const char *prefix)
{
    for (size_t i = 0; i < insert->columns; i++)
        text_add(sql, "%s%s\"%s\"", i ? ", " : "", prefix, insert->column[i]);
}

/* A row that is the same changes one row, another one none. */
static void write_insert(struct text *sql, const struct store_table *table, const struct insert *insert)
{
    text_add(sql, "INSERT %sINTO %s VALUES (", table->again == AGAIN_REPLACES ? "OR REPLACE " : "", table->name);
    for (size_t i = 0; i < insert->columns; i++)
        if (table->computed && strcmp(insert->column[i], table->computed) == 0)
            text_add(sql, "%s%s", i ? ", " : "", table->by);
        else
            text_add(sql, "%s?%zu", i ? ", " : "", i + 1);
    text_add(sql, ")%s", table->again == AGAIN_KEEPS ? " ON CONFLICT DO NOTHING" : "");
    if (table->again != AGAIN_IS_SAME)
        return;
    const char *last = insert->column[insert->columns - 1];
    text_add(sql, " ON CONFLICT DO UPDATE SET \"%s\" = \"%s\" WHERE (", last, last);
    add_columns(sql, insert, "");
    text_add(sql, ") IS (");
    add_columns(sql, insert, "excluded.");
    text_add(sql, ")");
}

/* When the table is first written to. */
static status open_insert(struct store *store, size_t table, struct error *error)
{
    struct insert *insert = &store->insert[table];
    struct text sql = {0};
    insert_close(insert);
    TRY(read_columns(insert, store->database, store_tables[table].name, error));
    write_insert(&sql, &store_tables[table], insert);
    status result = sql.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", database_path(store->database))
                               : statement_open(&insert->statement, store->database, sql.data, error);
    text_free(&sql);
    return result;
}

void insert_close(struct insert *insert)
{
    for (size_t i = 0; i < insert->columns; i++)
        free(insert->column[i]);
    statement_close(insert->statement);
    *insert = (struct insert){0};
}

static status place_value(const struct insert *insert, const char *table, const struct named_value *named,
                          struct value *values, struct error *error)
{
    for (size_t i = 0; i < insert->columns; i++)
        if (strcmp(insert->column[i], named->name) == 0) {
            values[i] = named->value;
            return OK;
        }
    return error_set(error, ERROR_ARGUMENT, "table %s has no column %s", table, named->name);
}

/* The values of a row in the order of the columns. */
static status place_values(struct store *store, size_t table, int64_t run, const struct named_value *row, size_t count,
                           struct value values[TABLE_COLUMNS], struct error *error)
{
    struct insert *insert = &store->insert[table];
    const char *name = store_tables[table].name;
    if (!insert->statement)
        TRY(open_insert(store, table, error));
    memset(values, 0, insert->columns * sizeof *values); /* null */
    TRY(place_value(insert, name, &(struct named_value){"run", value_count(run)}, values, error));
    for (size_t i = 0; i < count; i++)
        TRY(place_value(insert, name, &row[i], values, error));
    return OK;
}

/* "tasks: the row (run 1, task 0, …) …" */
static status refuse_change(const struct store *store, size_t table, const struct value *values, struct error *error)
{
    const struct insert *insert = &store->insert[table];
    struct text row = {0};
    for (size_t i = 0; i < insert->columns; i++) {
        text_add(&row, "%s%s ", i ? ", " : "", insert->column[i]);
        value_describe(&values[i], &row);
    }
    error_set(error, ERROR_ARGUMENT, "%s: %s was recorded with other data than it now has (%s): %s",
              database_path(store->database), store_tables[table].name, row.data ? row.data : "",
              store_tables[table].changed);
    text_free(&row);
    return ERROR_ARGUMENT;
}

status rows_insert(struct store *store, size_t table, const struct value *values, struct error *error)
{
    struct insert *insert = &store->insert[table];
    TRY(statement_run(insert->statement, values, insert->columns, error));
    if (store_tables[table].again == AGAIN_IS_SAME && database_changes(store->database) != 1)
        return refuse_change(store, table, values, error);
    return OK;
}

static size_t find_table(const char *name)
{
    size_t table = 0;
    while (table < STORE_TABLES && strcmp(store_tables[table].name, name) != 0)
        table++;
    return table;
}

static status add_row(struct store *store, int64_t run, const char *name, const struct named_value *row, size_t count,
                      bool collects, struct error *error)
{
    struct value values[TABLE_COLUMNS];
    size_t table = find_table(name);
    if (table == STORE_TABLES)
        return error_set(error, ERROR_ARGUMENT, "there is no table %s", name);
    TRY(place_values(store, table, run, row, count, values, error));
    if (collects)
        return pending_add(&store->pending, (int)table, values, store->insert[table].columns, error);
    store->rows.known = false; /* callers that write single rows check them themselves */
    return rows_insert(store, table, values, error);
}

status store_add(struct store *store, int64_t run, const char *table, const struct named_value *row, size_t count,
                 struct error *error)
{
    if (add_row(store, run, table, row, count, store->collects, error) == OK)
        return OK;
    return error_context(error, "run %" PRId64, run);
}
