#include "results/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/stop.h"
#include "results/store/schema.h"
#include "results/store/store_internal.h"

#define SCHEMA_LOCK 0 /* runs count from 1 */

static status create_schema(struct store *store, struct error *error)
{
    TRY(schema_create(store->database, error));
    return schema_use_views(store->database, true, error);
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
    status result = database_execute(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", error);
    NEXT(result, create_schema(store, error));
    lock_give(&store->locks, SCHEMA_LOCK);
    return result;
}

static status open_file(struct store *store, const char *path, enum store_mode mode, const struct stop *stop,
                        struct error *error)
{
    int64_t version;
    TRY(database_open_stoppable(&store->database, path, mode == STORE_WRITE, stop, error));
    TRY(schema_recognise(store->database, &version, error));
    if (mode == STORE_WRITE)
        return prepare_to_write(store, stop, error);
    if (version == 0)
        return error_set(error, ERROR_FORMAT, "%s: expected schema %d, found an empty file; `mtil run` fills it", path,
                         SCHEMA_VERSION);
    return schema_use_views(store->database, false, error);
}

static status open_memory(struct store *store, const char *name, struct error *error)
{
    TRY(database_open_memory(&store->database, name, error));
    return create_schema(store, error);
}

static status open_store(struct store **opened, const char *path, bool in_memory, enum store_mode mode,
                         const struct stop *stop, struct error *error)
{
    struct store *store = calloc(1, sizeof *store);
    *opened = NULL;
    if (!store)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    store->locks.descriptor = -1;
    status result = in_memory ? open_memory(store, path, error) : open_file(store, path, mode, stop, error);
    if (result == OK)
        *opened = store;
    else
        store_close(store);
    return result;
}

status store_open_stoppable(struct store **opened, const char *path, enum store_mode mode, const struct stop *stop,
                            struct error *error)
{
    return open_store(opened, path, false, mode, stop, error);
}

status store_open(struct store **opened, const char *path, enum store_mode mode, struct error *error)
{
    return open_store(opened, path, false, mode, NULL, error);
}

status store_open_memory(struct store **opened, const char *name, struct error *error)
{
    return open_store(opened, name, true, STORE_WRITE, NULL, error);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < STORE_TABLES; i++)
        insert_close(&store->insert[i]);
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

static status take_check(void *store, struct statement *row, struct error *error)
{
    const char *answer = statement_text(row, 0);
    return strcmp(answer, "ok") == 0
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: the database is damaged: %s", store_path(store), answer);
}

status store_check(struct store *store, struct error *error)
{
    return database_each(store->database, "PRAGMA integrity_check(1)", NO_VALUES, take_check, store, error);
}
