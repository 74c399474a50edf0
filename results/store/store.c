/* Opens a results database: recognises or creates its schema, renews its views. */
#include "results/store.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/threads.h"
#include "results/metrics.h"
#include "results/store/store_internal.h"

#define SCHEMA_APPLICATION 0x4d54494c    /* SQLite's application_id: "MTIL" */
#define SCHEMA_BEFORE_RELEASE 0x6d74696c /* that of files of before the first release */
#define SCHEMA_LOCK 0                    /* runs count from 1 */
#define VIEW_START "\nCREATE VIEW "

enum { SCHEMA_VERSION = 1 }; /* SQLite's user_version */

EMBEDDED_FILES(schema_files); /* the tables, then the views */

/* --- The schema --- */

/* *empty: the file has nothing yet. Refuses another program's database, and another schema. */
static status recognise(struct database *database, bool *empty, struct error *error)
{
    struct statement *row; /* one state, though another process may be creating the schema */
    TRY(database_row(database,
                     "SELECT application_id, user_version, count(name), max(name) FILTER (WHERE type = 'table') FROM "
                     "pragma_application_id, pragma_user_version LEFT JOIN sqlite_schema",
                     NO_VALUES, &row, error));
    const char *path = database_path(database);
    int64_t application = statement_integer(row, 0), version = statement_integer(row, 1);
    status result = OK;
    *empty = application == 0 && version == 0 && statement_integer(row, 2) == 0;
    if (application == SCHEMA_BEFORE_RELEASE)
        result = error_set(error, ERROR_FORMAT,
                           "%s: written by a version of mtil from before its first release; run its suites again, or "
                           "read it with that version",
                           path);
    else if (!*empty && application != SCHEMA_APPLICATION)
        result = error_set(error, ERROR_FORMAT,
                           "%s: expected a results database (application id %#x), found one of another program "
                           "(application id %#" PRIx64 ", table \"%.60s\"); name another file",
                           path, SCHEMA_APPLICATION, application, statement_text(row, 3));
    else if (!*empty && version != SCHEMA_VERSION)
        result = error_set(error, ERROR_FORMAT,
                           "%s: expected schema %d, found %" PRId64
                           ": a newer version of mtil wrote it, or another program changed "
                           "PRAGMA user_version; use that version, set it back, or take the file from a backup",
                           path, SCHEMA_VERSION, version);
    statement_close(row);
    return result;
}

/* The tables of an empty file, in one transaction with its version. */
static status create_tables(struct database *database, struct error *error)
{
    int64_t version;
    struct text script = {0};
    TRY(database_integer(database, "PRAGMA user_version", &version, error));
    if (version != 0)
        return OK;
    text_add(&script, "%s; PRAGMA application_id = %d; PRAGMA user_version = %d", (const char *)schema_files[0].data,
             SCHEMA_APPLICATION, SCHEMA_VERSION);
    status result = database_execute(database, script.data, error);
    text_free(&script);
    return result;
}

/* With drops the views of the file are replaced, else they are hidden on this connection. */
static void write_views(struct text *script, const char *at, bool drops)
{
    const char *next;
    for (; (next = strstr(at, VIEW_START)); at = next + strlen(VIEW_START)) {
        const char *name = next + strlen(VIEW_START);
        text_add(script, "%.*s\n", (int)(next - at), at);
        if (drops)
            text_add(script, "DROP VIEW IF EXISTS \"%.*s\";\n", (int)strcspn(name, " "), name);
        text_add(script, "CREATE %s ", drops ? "VIEW" : "TEMP VIEW");
    }
    text_add(script, "%s", at);
}

/* Replaces the database's views by this program's, if they differ, or hides them on this connection. */
static status use_views(struct database *database, bool replace, struct error *error)
{
    char digest[DIGEST_SIZE];
    int64_t same;
    struct text script = {0}, views = {0};
    metrics_expand(&views, (const char *)schema_files[1].data, NULL);
    digest_text(views.data, digest);
    status result = database_ask(database, "SELECT value = ?1 FROM properties WHERE name = 'views'",
                                 VALUES(value_text(digest)), &same, error);
    write_views(&script, views.data, replace);
    if (replace)
        text_add(&script, ";\nINSERT OR REPLACE INTO properties VALUES ('views', '%s')", digest);
    if (result == OK && !same)
        result = database_execute(database, script.data, error);
    text_free(&script);
    text_free(&views);
    return result;
}

static status create_schema(struct store *store, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = create_tables(store->database, error);
    NEXT(result, use_views(store->database, true, error));
    return database_end(store->database, began, result, error);
}

/* --- Opening --- */

/* Changing the journal mode does not wait for others, so processes that open a new file take turns. */
static status prepare_to_write(struct store *store, const struct stop *stop, struct error *error)
{
    struct database *database = store->database;
    TRY(lock_file_open(&store->locks, database_full_path(database), true, error));
    store->locks.stop = stop;
    bool taken;
    TRY(lock_take(&store->locks, SCHEMA_LOCK, DATABASE_PATIENCE, &taken, error));
    if (!taken && stop_requested(stop))
        return error_set(error, ERROR_STOPPED, "%s: stopped while another program was opening it",
                         database_path(database));
    if (!taken)
        return error_set(error, ERROR_BUSY,
                         "%s: another program has been opening it for %g seconds; end it or try again",
                         database_path(database), DATABASE_PATIENCE / 1000.0);
    status result = database_execute(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", error);
    NEXT(result, create_schema(store, error));
    lock_give(&store->locks, SCHEMA_LOCK);
    return result;
}

static status open_schema(struct store *store, enum store_mode mode, const struct stop *stop, struct error *error)
{
    bool empty;
    if (mode == STORE_MEMORY)
        return create_schema(store, error);
    TRY(recognise(store->database, &empty, error));
    if (mode == STORE_WRITE)
        return prepare_to_write(store, stop, error);
    if (empty)
        return error_set(error, ERROR_FORMAT, "%s: expected schema %d, found an empty file; `mtil run` fills it",
                         store_path(store), SCHEMA_VERSION);
    return use_views(store->database, false, error);
}

status store_open_stoppable(struct store **opened, const char *path, enum store_mode mode, const struct stop *stop,
                            struct error *error)
{
    struct store *store = *opened = xcalloc(1, sizeof *store);
    store->locks.descriptor = -1;
    status result = database_open(&store->database, path, mode, stop, error);
    NEXT(result, open_schema(store, mode, stop, error));
    if (result != OK) {
        store_close(store);
        *opened = NULL;
    }
    return result;
}

status store_open(struct store **opened, const char *path, enum store_mode mode, struct error *error)
{
    return store_open_stoppable(opened, path, mode, NULL, error);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < STORE_TABLES; i++)
        statement_close(store->insert[i]);
    pending_clear(store);
    if (store->database)
        database_rollback(store->database);
    database_close(store->database);
    lock_file_close(&store->locks);
    free(store);
}

const char *store_path(const struct store *store)
{
    return database_path(store->database);
}

struct database *store_database(struct store *store)
{
    return store->database;
}
