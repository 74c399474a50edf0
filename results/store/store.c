#include "results/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/stop.h"
#include "results/store/schema.h"
#include "results/store/store_internal.h"

#define SCHEMA_LOCK 0 /* runs count from 1 */

static status prepare_to_read(struct database *database, int64_t version, struct error *error)
{
    if (version == 0)
        return error_set(error, ERROR_FORMAT, "%s: expected schema %d, found an empty file; `mtil run` fills it",
                         database_path(database), SCHEMA_VERSION);
    return schema_overlay_views(database, error);
}

static status bring_up_to_date(struct store *store, struct error *error)
{
    TRY(database_execute(store->database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", error));
    TRY(schema_create(store->database, error));
    return schema_replace_views(store->database, error);
}

/* Changing the journal mode does not wait for others, so processes that open a new file take turns. */
static status prepare_to_write(struct store *store, const struct stop *stop, struct error *error)
{
    struct database *database = store->database;
    TRY(lock_file_open(&store->locks, database_full_path(database), true, error));
    store->locks.stop = stop;
    bool taken;
    TRY(lock_take(&store->locks, SCHEMA_LOCK, database_patience(database), &taken, error));
    if (!taken && stop_requested(stop))
        return error_set(error, ERROR_STOPPED, "%s: stopped while another program was opening it",
                         database_path(database));
    if (!taken)
        return error_set(error, ERROR_BUSY,
                         "%s: another program has been opening it for %g seconds; end it or try again",
                         database_path(database), database_patience(database) / 1000.0);
    status result = bring_up_to_date(store, error);
    lock_give(&store->locks, SCHEMA_LOCK);
    return result;
}

static status open_parts(struct store *store, const char *path, enum store_mode mode, const struct stop *stop,
                         struct error *error)
{
    int64_t version;
    TRY(database_open_stoppable(&store->database, path, mode == STORE_WRITE, stop, error));
    TRY(schema_recognise(store->database, &version, error));
    return mode == STORE_WRITE ? prepare_to_write(store, stop, error)
                               : prepare_to_read(store->database, version, error);
}

static status open_memory(struct store *store, const char *name, struct error *error)
{
    TRY(database_open_memory(&store->database, name, error));
    TRY(schema_create(store->database, error));
    return schema_replace_views(store->database, error);
}

static status create(struct store **created, const char *path, struct error *error)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    store->locks.descriptor = -1;
    *created = store;
    return OK;
}

/* Returns result; *opened is the store if it is OK, else the store is closed. */
static status finish_open(struct store **opened, struct store *store, status result)
{
    if (result == OK)
        *opened = store;
    else
        store_close(store);
    return result;
}

status store_open_stoppable(struct store **opened, const char *path, enum store_mode mode, const struct stop *stop,
                            struct error *error)
{
    struct store *store;
    *opened = NULL;
    TRY(create(&store, path, error));
    return finish_open(opened, store, open_parts(store, path, mode, stop, error));
}

status store_open(struct store **opened, const char *path, enum store_mode mode, struct error *error)
{
    return store_open_stoppable(opened, path, mode, NULL, error);
}

status store_open_memory(struct store **opened, const char *name, struct error *error)
{
    struct store *store;
    *opened = NULL;
    TRY(create(&store, name, error));
    return finish_open(opened, store, open_memory(store, name, error));
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < INSERT_COUNT; i++)
        statement_close(store->insert[i]);
    pending_clear(&store->pending);
    if (store->database)
        database_rollback(store->database);
    database_close(store->database);
    lock_file_close(&store->locks);
    free(store);
}

void store_set_patience(struct store *store, int milliseconds)
{
    database_set_patience(store->database, milliseconds);
}

const char *store_path(const struct store *store)
{
    return database_path(store->database);
}

status store_check(struct store *store, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, "PRAGMA integrity_check(1)", error));
    bool row;
    status result = statement_step(statement, &row, error);
    if (result == OK && (!row || strcmp(statement_text(statement, 0), "ok") != 0))
        result = error_set(error, ERROR_FORMAT, "%s: the database is damaged: %s", store_path(store),
                           row ? statement_text(statement, 0) : "no answer");
    statement_close(statement);
    return result;
}

status store_run_once(struct store *store, const char *sql, const struct value *values, size_t count,
                      struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, sql, error));
    status result = statement_run(statement, values, count, error);
    statement_close(statement);
    return result;
}
