/* The list of tables, and the writing of their rows. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/array.h"
#include "results/store/store_internal.h"

#define NOW "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
#define AFTER_ITERATION "(task, iteration) > (?2, ?3)"
#define AFTER_TASK "after_task >= ?2"
#define OF_TASK "task >= ?2" /* written when the task ends */

const struct store_table store_tables[STORE_TABLES] = {
    {"runs", .local = true, .computed = "started", .by = NOW},
    {"settings", .local = true},
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
     .by = "(SELECT count(*) FROM expert_events WHERE (run, task, iteration, encoder, block) = "
           "(:run, :task, :iteration, :encoder, :block))"},
    {"merge_effects", .after = "(task, known) > (?2, ?3)", .optional = true},
    {"router_choices", .after = AFTER_TASK},
    {"selector_thresholds", .after = OF_TASK},
    {"trials", .local = true, .computed = "trial",
     .by =
         "(SELECT coalesce(max(trial) FILTER (WHERE settings = :settings), max(trial) + 1, 1) FROM trials WHERE run = "
         ":run)"},
    {"steps", .after = AFTER_ITERATION},
    {"skipped_steps", .after = OF_TASK},
    {"timings", .after = AFTER_ITERATION, .local = true},
    {"artifacts", .after = "task >= max(?2, 0)", .local = true, .again = AGAIN_REPLACES},
};

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

static void add_names(struct text *sql, const struct insert *insert, const char *prefix)
{
    for (size_t i = 0; i < insert->count; i++)
        text_add(sql, "%s%s\"%s\"", i ? ", " : "", prefix, insert->name[i]);
}

/* A row that is the same changes one row, another one none. */
static void write_insert(struct text *sql, const struct store_table *table, const struct insert *insert)
{
    text_add(sql, "INSERT %sINTO %s (", table->again == AGAIN_REPLACES ? "OR REPLACE " : "", table->name);
    add_names(sql, insert, "");
    text_add(sql, "%s%s) VALUES (", table->computed ? ", " : "", table->computed ? table->computed : "");
    for (size_t i = 0; i < insert->count; i++)
        text_add(sql, "%s:%s", i ? ", " : "", insert->name[i]);
    text_add(sql, "%s%s)%s", table->by ? ", " : "", table->by ? table->by : "",
             table->again == AGAIN_KEEPS ? " ON CONFLICT DO NOTHING" : "");
    if (table->again != AGAIN_IS_SAME)
        return;
    const char *last = insert->name[insert->count - 1];
    text_add(sql, " ON CONFLICT DO UPDATE SET \"%s\" = \"%s\" WHERE (", last, last);
    add_names(sql, insert, "");
    text_add(sql, ") IS (");
    add_names(sql, insert, "excluded.");
    text_add(sql, ")");
}

/* "tasks: the row (run 1, task 0, …) …" */
static status refuse_change(const struct store *store, const struct store_table *table, const struct named_value *row,
                            size_t count, struct error *error)
{
    struct text words = {0};
    for (size_t i = 0; i < count; i++) {
        text_add(&words, "%s%s ", i ? ", " : "", row[i].name);
        value_describe(&row[i].value, &words);
    }
    error_set(error, ERROR_ARGUMENT, "%s: %s was recorded with other data than it now has (%s): %s",
              database_path(store->database), table->name, words.data, table->changed);
    text_free(&words);
    return ERROR_ARGUMENT;
}

/* The statement of the row before is used again if the names are the same ones. */
static status write_row(struct store *store, size_t table, const struct named_value *row, size_t count,
                        struct error *error)
{
    struct insert *insert = &store->insert[table];
    struct value values[TABLE_COLUMNS];
    bool same = insert->count == count;
    for (size_t i = 0; i < count; i++) {
        same = same && insert->name[i] == row[i].name;
        insert->name[i] = row[i].name;
        values[i] = row[i].value;
    }
    if (!same) {
        struct text sql = {0};
        statement_close(insert->statement);
        insert->count = count;
        write_insert(&sql, &store_tables[table], insert);
        status result = statement_open(&insert->statement, store->database, sql.data, error);
        text_free(&sql);
        if (result != OK)
            insert->count = 0;
        TRY(result);
    }
    TRY(statement_run(insert->statement, values, count, error));
    return store_tables[table].again == AGAIN_IS_SAME && database_changes(store->database) != 1
               ? refuse_change(store, &store_tables[table], row, count, error)
               : OK;
}

/* --- Rows that wait ---
 * Hours may lie between two commits of a run, and a transaction open for so long would keep others from writing. */

struct pending_row {
    size_t table, count;
    struct named_value values[]; /* [count]; texts and blobs lie behind them */
};

static size_t size_of(const struct value *value)
{
    return value->kind == VALUE_TEXT || value->kind == VALUE_BLOB ? value->bytes.size : 0;
}

static void keep_row(struct store *store, size_t table, const struct named_value *row, size_t count)
{
    size_t size = sizeof(struct pending_row) + count * sizeof *row;
    for (size_t i = 0; i < count; i++)
        size += size_of(&row[i].value) + 1; /* the NUL of a text */
    struct pending_row *kept = xcalloc(1, size);
    char *behind = (char *)&kept->values[count];
    *kept = (struct pending_row){.table = table, .count = count};
    for (size_t i = 0; i < count; i++) {
        kept->values[i] = row[i];
        size = size_of(&row[i].value);
        if (size > 0)
            memcpy(behind, row[i].value.bytes.data, size);
        if (row[i].value.kind == VALUE_TEXT || row[i].value.kind == VALUE_BLOB)
            kept->values[i].value.bytes.data = behind;
        behind += size + 1;
    }
    GROW(store->pending, store->pending_count);
    store->pending[store->pending_count++] = kept;
}

status pending_write(struct store *store, struct error *error)
{
    for (size_t i = 0; i < store->pending_count; i++) {
        const struct pending_row *row = store->pending[i];
        TRY(write_row(store, row->table, row->values, row->count, error));
    }
    return OK;
}

void pending_clear(struct store *store)
{
    for (size_t i = 0; i < store->pending_count; i++)
        free(store->pending[i]);
    free(store->pending);
    store->pending = NULL;
    store->pending_count = 0;
}

status store_add(struct store *store, int64_t run, const char *table, const struct named_value *row, size_t count,
                 struct error *error)
{
    struct named_value values[TABLE_COLUMNS];
    size_t number = 0;
    while (number < STORE_TABLES && strcmp(store_tables[number].name, table) != 0)
        number++;
    if (number == STORE_TABLES || count >= TABLE_COLUMNS)
        return error_set(error, ERROR_ARGUMENT, "run %" PRId64 ": there is no table %s of %zu columns", run, table,
                         count);
    values[0] = (struct named_value){"run", value_count(run)};
    memcpy(values + 1, row, count * sizeof *row);
    if (store->collects) {
        keep_row(store, number, values, count + 1);
        return OK;
    }
    store->rows.known = false; /* callers that write single rows check them themselves */
    if (write_row(store, number, values, count + 1, error) != OK)
        return error_context(error, "run %" PRId64, run);
    return OK;
}
