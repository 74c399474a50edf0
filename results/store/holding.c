#include "results/store/holding.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/digest.h"

static uint64_t digest_row(struct statement *row)
{
    uint64_t digest = 0;
    for (size_t i = 1; i < statement_columns(row); i++) {
        struct value value = statement_value(row, i);
        bool bytes = value.kind == VALUE_TEXT || value.kind == VALUE_BLOB;
        digest = digest_quick(bytes ? value.bytes.data : &value.integer,
                              bytes ? value.bytes.size : sizeof value.integer, digest + value.kind);
    }
    return digest;
}

status holding_add(struct database *database, const char *sql, const struct value *values, size_t count,
                   struct held_rows *rows, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, database, sql, error));
    bool row = true;
    status result = statement_bind(statement, values, count, error);
    while (result == OK && (result = statement_step(statement, &row, error)) == OK && row) {
        rows->count++;
        rows->digest += digest_row(statement);
    }
    statement_close(statement);
    return result;
}

static status read_rows(struct database *database, int64_t run, struct held_rows *rows, struct error *error)
{
    *rows = (struct held_rows){.known = true};
    for (size_t i = 0; i < STORE_TABLES; i++) {
        char sql[80];
        snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE run = ?1", store_tables[i].name);
        if (table_is_held(&store_tables[i]))
            TRY(holding_add(database, sql, VALUES(value_integer(run)), rows, error));
    }
    return OK;
}

static status check(const struct store *store, struct database *database, const char *where, struct error *error)
{
    struct held_rows run = {0}, found;
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT run FROM runs WHERE run = ?1%s", where);
    TRY(holding_add(database, sql, VALUES(value_integer(store->held)), &run, error));
    if (run.count == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: run %" PRId64 " is gone: somebody deleted it while it was written, or the file's content "
                         "was replaced; give the same command again to start it anew",
                         store_path(store), store->held);
    if (!store->rows.known)
        return OK;
    TRY(read_rows(database, store->held, &found, error));
    if (found.count == store->rows.count && found.digest == store->rows.digest)
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: expected the %" PRId64 " rows of run %" PRId64 " as they were written, found %" PRId64
                     "%s: somebody changed them while it was written; `mtil runs delete` removes what is left, and "
                     "the same command starts it anew",
                     store_path(store), store->rows.count, store->held, found.count,
                     found.count == store->rows.count ? " with other values" : "");
}

status holding_check(struct store *store, struct error *error)
{
    return store->held ? check(store, store->database, "", error) : OK;
}

status holding_read(struct store *store, struct held_rows *rows, struct error *error)
{
    *rows = (struct held_rows){0};
    return store->held ? read_rows(store->database, store->held, rows, error) : OK;
}

status holding_confirm(struct store *store, struct error *error)
{
    struct database *fresh;
    TRY(database_check_files(store->database, error));
    if (!database_is_sound(store->database))
        return error_set(error, ERROR_IO,
                         "%s: is damaged: something other than SQLite wrote to it while this program used it; put a "
                         "whole copy in its place, or name another database",
                         store_path(store));
    TRY(database_open(&fresh, store_path(store), false, error));
    status result = check(store, fresh, " AND status = 'finished'", error);
    database_close(fresh);
    return result;
}
