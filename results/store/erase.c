#include "results/store/erase.h"

#include <inttypes.h>
#include <stdlib.h>

#include "results/store/live.h"
#include "results/store/run_rows.h"
#include "results/store/store_internal.h"

status erase_describe(struct store *store, int64_t run, struct run_remains *remains, struct error *error)
{
    struct statement *row;
    *remains = (struct run_remains){.run = run};
    TRY(database_row(store->database,
                     "SELECT seed, suite, suite_text, suite_hash, status, folder FROM runs WHERE run = ?1",
                     VALUES(value_integer(run)), &row, error));
    if (!row)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: there is no run %" PRId64 "; `mtil query runs` lists those there are", store_path(store),
                         run);
    *remains = (struct run_remains){.run = run,
                                    .seed = statement_integer(row, 0),
                                    .suite = statement_string(row, 1),
                                    .suite_text = statement_string(row, 2),
                                    .suite_hash = statement_string(row, 3),
                                    .status = statement_string(row, 4),
                                    .folder = statement_string(row, 5)};
    statement_close(row);
    return OK;
}

void run_remains_free(struct run_remains *remains)
{
    free(remains->suite);
    free(remains->suite_text);
    free(remains->suite_hash);
    free(remains->status);
    free(remains->folder);
    *remains = (struct run_remains){0};
}

status erase_lock(struct store *store, int64_t run, struct error *error)
{
    bool taken;
    TRY(lock_take(&store->locks, run, 0, &taken, error));
    return taken
               ? OK
               : error_set(error, ERROR_BUSY,
                           "%s: run %" PRId64 " is going on: stop it first (Ctrl-C where it runs), or wait for its end",
                           store_path(store), run);
}

status erase_rows(struct store *store, int64_t run, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    TRY(database_end(store->database, began, run_rows_erase(store->database, run, error), error));
    live_erase(store, run);
    lock_give(&store->locks, run);
    return OK;
}
