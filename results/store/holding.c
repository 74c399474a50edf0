#include "results/store/holding.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/digest.h"

static const char *const tables[HELD_TABLES] = {
    "evaluations",   "per_image",      "class_experts",       "patch_experts", "expert_counts", "expert_events",
    "merge_effects", "router_choices", "selector_thresholds", "steps",         "skipped_steps", "task_similarities",
    "timings",       "artifacts"};

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
                   struct held_table *rows, struct error *error)
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
    for (size_t i = 0; i < HELD_TABLES; i++) {
        char sql[80];
        snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE run = ?1", tables[i]);
        TRY(holding_add(database, sql, VALUES(value_integer(run)), &rows->table[i], error));
    }
    return OK;
}

/* *finished: whether the run says so. */
static status check_run(const struct store *store, struct database *database, bool *finished, struct error *error)
{
    struct statement *statement;
    bool row = false;
    TRY(statement_open(&statement, database, "SELECT status FROM runs WHERE run = ?1", error));
    status result = statement_bind(statement, VALUES(value_integer(store->held)), error);
    NEXT(result, statement_step(statement, &row, error));
    *finished = result == OK && row && strcmp(statement_text(statement, 0), "finished") == 0;
    statement_close(statement);
    if (result == OK && !row)
        return error_set(error, ERROR_FORMAT,
                         "%s: run %" PRId64 " is gone: somebody deleted it while it was written, or the file's content "
                         "was replaced; give the same command again to start it anew",
                         store_path(store), store->held);
    return result;
}

static status check_rows(const struct store *store, struct database *database, struct error *error)
{
    struct held_rows found;
    if (!store->rows.known)
        return OK;
    TRY(read_rows(database, store->held, &found, error));
    for (size_t i = 0; i < HELD_TABLES; i++) {
        int64_t count = store->rows.table[i].count;
        if (found.table[i].count == count && found.table[i].digest == store->rows.table[i].digest)
            continue;
        return error_set(error, ERROR_FORMAT,
                         "%s: expected the %" PRId64 " rows of run %" PRId64
                         " in %s as they were written, found %" PRId64
                         "%s: somebody changed them while it was written; `mtil runs delete` removes what is left, and "
                         "the same command starts it anew",
                         store_path(store), count, store->held, tables[i], found.table[i].count,
                         found.table[i].count == count ? " with other values" : "");
    }
    return OK;
}

status holding_check(struct store *store, struct error *error)
{
    bool finished;
    if (!store->held)
        return OK;
    TRY(lock_file_check(&store->locks, error));
    TRY(check_run(store, store->database, &finished, error));
    return check_rows(store, store->database, error);
}

status holding_read(struct store *store, struct held_rows *rows, struct error *error)
{
    *rows = (struct held_rows){0};
    return store->held ? read_rows(store->database, store->held, rows, error) : OK;
}

status holding_confirm(struct store *store, struct error *error)
{
    struct database *fresh;
    bool finished = false;
    TRY(database_check_pages(store->database, error));
    TRY(database_open(&fresh, store_path(store), false, error));
    status result = check_run(store, fresh, &finished, error);
    NEXT(result, check_rows(store, fresh, error));
    database_close(fresh);
    TRY(result);
    return finished
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: expected run %" PRId64 " to be finished, found that it is not",
                           store_path(store), store->held);
}
