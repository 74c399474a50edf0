#include "results/store/holding.h"

#include <inttypes.h>

static const char count_sql[] = "SELECT status, (SELECT count(*) FROM evaluations WHERE run = ?1) + "
                                "(SELECT count(*) FROM per_image WHERE run = ?1) + "
                                "(SELECT count(*) FROM class_experts WHERE run = ?1) + "
                                "(SELECT count(*) FROM expert_counts WHERE run = ?1) + "
                                "(SELECT count(*) FROM expert_events WHERE run = ?1) + "
                                "(SELECT count(*) FROM merge_effects WHERE run = ?1) + "
                                "(SELECT count(*) FROM router_choices WHERE run = ?1) + "
                                "(SELECT count(*) FROM selector_thresholds WHERE run = ?1) + "
                                "(SELECT count(*) FROM steps WHERE run = ?1) FROM runs WHERE run = ?1";

bool holding_counts(enum insert kind)
{
    switch (kind) {
    case INSERT_EVALUATION:
    case INSERT_PER_IMAGE:
    case INSERT_CLASS_EXPERT:
    case INSERT_EXPERT_COUNT:
    case INSERT_EXPERT_EVENT:
    case INSERT_MERGE_EFFECT:
    case INSERT_ROUTER_CHOICE:
    case INSERT_THRESHOLD:
    case INSERT_STEP:
        return true;
    default:
        return false;
    }
}

/* *rows: HOLDING_UNKNOWN when the run is not there. */
static status count_rows(struct database *database, int64_t run, int64_t *rows, bool *finished, struct error *error)
{
    struct statement *statement;
    bool row = false;
    TRY(statement_open(&statement, database, count_sql, error));
    status result = statement_bind(statement, VALUES(value_integer(run)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    *rows = result == OK && row ? statement_integer(statement, 1) : HOLDING_UNKNOWN;
    *finished = result == OK && row && strcmp(statement_text(statement, 0), "finished") == 0;
    statement_close(statement);
    return result;
}

static status compare_rows(const struct store *store, int64_t rows, struct error *error)
{
    if (rows == HOLDING_UNKNOWN)
        return error_set(error, ERROR_FORMAT,
                         "%s: run %" PRId64 " is gone: somebody deleted it while it was written, or the file's content "
                         "was replaced; give the same command again to start it anew",
                         store_path(store), store->held);
    if (store->rows != HOLDING_UNKNOWN && rows != store->rows)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected %" PRId64 " rows of run %" PRId64 ", found %" PRId64
                         ": somebody changed them while it was written; `mtil runs delete` removes what is left, and "
                         "the same command starts it anew",
                         store_path(store), store->rows, store->held, rows);
    return OK;
}

status holding_check(struct store *store, struct error *error)
{
    int64_t rows;
    bool finished;
    if (!store->held)
        return OK;
    TRY(lock_file_check(&store->locks, error));
    TRY(count_rows(store->database, store->held, &rows, &finished, error));
    return compare_rows(store, rows, error);
}

status holding_count(struct store *store, struct error *error)
{
    bool finished;
    return store->held ? count_rows(store->database, store->held, &store->rows, &finished, error) : OK;
}

status holding_confirm(struct store *store, struct error *error)
{
    struct database *fresh;
    int64_t rows = 0;
    bool finished = false;
    TRY(database_check_pages(store->database, error));
    TRY(database_open(&fresh, store_path(store), false, error));
    status result = count_rows(fresh, store->held, &rows, &finished, error);
    database_close(fresh);
    TRY(result);
    TRY(compare_rows(store, rows, error));
    return finished
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: expected run %" PRId64 " to be finished, found that it is not",
                           store_path(store), store->held);
}
