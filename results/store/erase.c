#include "results/store/erase.h"

#include <inttypes.h>
#include <stdlib.h>

#include "results/store/join_internal.h"
#include "results/store/live.h"
#include "results/store/store_internal.h"

/* Programs before schema 4 recorded files alone; theirs lie side by side. */
static const char remains_sql[] =
    "SELECT suite, status, seed, folder, (SELECT path FROM artifacts WHERE artifacts.run = runs.run LIMIT 1) "
    "FROM runs WHERE run = ?1";

static char *folder_of(const char *folder, const char *file)
{
    const char *slash = strrchr(file, '/');
    if (folder[0] != '\0')
        return strdup(folder);
    return slash ? strndup(file, (size_t)(slash - file)) : NULL;
}

status erase_describe(struct store *store, int64_t run, struct run_remains *remains, struct error *error)
{
    struct statement *statement;
    bool row = false;
    *remains = (struct run_remains){.run = run};
    TRY(statement_open(&statement, store->database, remains_sql, error));
    status result = statement_bind(statement, VALUES(value_integer(run)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    if (result == OK && !row)
        result =
            error_set(error, ERROR_ARGUMENT, "%s: there is no run %" PRId64 "; `mtil query runs` lists those there are",
                      store_path(store), run);
    if (result == OK) {
        remains->suite = strdup(statement_text(statement, 0));
        remains->status = strdup(statement_text(statement, 1));
        remains->seed = statement_integer(statement, 2);
        remains->folder = folder_of(statement_text(statement, 3), statement_text(statement, 4));
        if (!remains->suite || !remains->status)
            result = error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    }
    statement_close(statement);
    return result;
}

void run_remains_free(struct run_remains *remains)
{
    free(remains->suite);
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

status store_erase_rows(struct store *store, int64_t run, struct error *error)
{
    struct join_layout layout;
    struct join_side side = {0};
    status result = join_layout_read(&layout, error);
    if (result == OK)
        result = join_side_open(&side, &layout, store->database, store_path(store), error);
    if (result == OK)
        result = join_erase(&side, run, error);
    join_side_close(&side);
    join_layout_free(&layout);
    return result;
}

status erase_rows(struct store *store, int64_t run, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    TRY(database_end(store->database, began, store_erase_rows(store, run, error), error));
    live_erase(store, run);
    lock_give(&store->locks, run);
    return OK;
}
