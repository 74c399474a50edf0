/* The tables with the rows of a run, and the SQL that reads and writes them. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "results/store/join_internal.h"
#include "results/store/store_internal.h"

/* Tables that differ between repetitions: times, machines, paths, and results computed after the run. */
static const char *const unlike[] = {"runs",     "settings",        "timings",           "artifacts",    "inputs",
                                     "sessions", "selector_trials", "trial_evaluations", "trial_choices"};

static bool is_observed(const char *name)
{
    for (size_t i = 0; i < sizeof unlike / sizeof *unlike; i++)
        if (strcmp(unlike[i], name) == 0)
            return false;
    return true;
}

/* A table per change of the first column. Left out: `run`, and a key of one column, which only numbers the rows. */
static const char columns_sql[] =
    "SELECT t.name, c.name, c.pk > 0, c.name = 'run' OR (c.pk > 0 AND "
    "(SELECT count(*) FROM pragma_table_info(t.name) WHERE pk > 0) = 1) "
    "FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
    "WHERE t.type = 'table' AND EXISTS (SELECT 1 FROM pragma_table_info(t.name) WHERE name = 'run') "
    "ORDER BY t.rowid, c.pk = 0, c.pk, c.cid";

static status out_of_memory(struct error *error)
{
    return error_set(error, ERROR_MEMORY, "out of memory for the tables of a results database");
}

static status add_table(struct join_layout *layout, const char *name, struct error *error)
{
    TRY(ARRAY_GROW(layout->table, layout->count, "tables", error));
    layout->table[layout->count] = (struct join_table){.name = strdup(name), .observed = is_observed(name)};
    return layout->table[layout->count++].name ? OK : out_of_memory(error);
}

static status add_column(struct join_table *table, const char *name, bool key, struct error *error)
{
    if (table->columns == JOIN_COLUMNS_LIMIT)
        return error_set(error, ERROR_FORMAT, "table %s: more than %d columns", table->name, JOIN_COLUMNS_LIMIT);
    table->column[table->columns] = strdup(name);
    if (!table->column[table->columns++])
        return out_of_memory(error);
    table->keys += key;
    return OK;
}

static status read_columns(struct join_layout *layout, struct statement *statement, struct error *error)
{
    for (bool row;;) {
        TRY(statement_step(statement, &row, error));
        if (!row)
            return OK;
        const char *name = statement_text(statement, 0);
        if (layout->count == 0 || strcmp(layout->table[layout->count - 1].name, name) != 0)
            TRY(add_table(layout, name, error));
        if (!statement_integer(statement, 3))
            TRY(add_column(&layout->table[layout->count - 1], statement_text(statement, 1),
                           statement_integer(statement, 2) != 0, error));
    }
}

static void add_names(struct text *sql, const struct join_table *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_add(sql, "%s\"%s\"", i ? ", " : "", table->column[i]);
}

static status write_sql(struct join_table *table, struct error *error)
{
    text_add(&table->read, "SELECT ");
    add_names(&table->read, table, table->columns);
    text_add(&table->read, " FROM \"%s\" WHERE run = ?1 ORDER BY ", table->name);
    add_names(&table->read, table, table->keys);
    text_add(&table->read, "%s", table->keys ? "" : "rowid");
    text_add(&table->write, "INSERT INTO \"%s\" (run, ", table->name);
    add_names(&table->write, table, table->columns);
    text_add(&table->write, ") VALUES (?1");
    for (size_t i = 0; i < table->columns; i++)
        text_add(&table->write, ", ?%zu", i + 2);
    text_add(&table->write, ")");
    text_add(&table->erase, "DELETE FROM \"%s\" WHERE run = ?1", table->name);
    return table->read.failed || table->write.failed || table->erase.failed ? out_of_memory(error) : OK;
}

static status read_schema(struct join_layout *layout, struct store *store, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, columns_sql, error));
    status result = read_columns(layout, statement, error);
    statement_close(statement);
    for (size_t i = 0; i < layout->count && result == OK; i++)
        result = write_sql(&layout->table[i], error);
    return result;
}

/* Reads this program's own schema, because other tables of a file belong to no run. */
status join_layout_read(struct join_layout *layout, struct error *error)
{
    struct store *store;
    *layout = (struct join_layout){0};
    TRY(store_open_memory(&store, "schema", error));
    status result = read_schema(layout, store, error);
    store_close(store);
    return result;
}

void join_layout_free(struct join_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++) {
        struct join_table *table = &layout->table[i];
        for (size_t column = 0; column < table->columns; column++)
            free(table->column[column]);
        free(table->name);
        text_free(&table->read);
        text_free(&table->write);
        text_free(&table->erase);
    }
    free(layout->table);
    *layout = (struct join_layout){0};
}
