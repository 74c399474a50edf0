#include "core/seen.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/digest.h"

enum { PATIENCE_MS = 10000, FINDS_AT_ONCE = 64 };

struct seen {
    char *path, *folder, *kind, *root, *version;
    sqlite3 *handle;    /* NULL: there is no file yet */
    sqlite3_stmt *find; /* NULL: nothing is known of the place */
    pthread_mutex_t finding;
    unsigned finds;
};

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS places (place INTEGER PRIMARY KEY, kind TEXT NOT NULL, root TEXT NOT NULL, "
    "version TEXT NOT NULL, UNIQUE (kind, root)) STRICT;"
    "CREATE TABLE IF NOT EXISTS seen (place INTEGER NOT NULL, name TEXT NOT NULL, stamp BLOB NOT NULL, "
    "found BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (place, name)) STRICT, WITHOUT ROWID;";

#define PLACE "(SELECT place FROM places WHERE kind = ?1 AND root = ?2 AND version = ?3)"

/* --- SQLite --- */

SCOPED_POINTER(sqlite3_stmt, sqlite3_finalize)
SCOPED_POINTER(sqlite3, sqlite3_close)

static status fail(sqlite3 *handle, const char *path, int code, struct error *error)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
        return OK;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(error, ERROR_FORMAT, "%s: is damaged (%s)", path, sqlite3_errmsg(handle));
    case SQLITE_ERROR:
        return error_set(error, ERROR_FORMAT, "%s: expected other tables (%s)", path, sqlite3_errmsg(handle));
    case SQLITE_FULL:
        return error_set(error, ERROR_IO, "%s: the disk is full", path);
    default:
        return error_set(error, ERROR_IO, "%s: %s", path, sqlite3_errmsg(handle));
    }
}

/* Nothing in the file is trusted. The journal is in memory, because one beside a file that someone removes would be played
 * into the next file. */
static int open_handle(sqlite3 **handle, const char *path, int flags)
{
    char *name = path_format("%s%s", path[0] == '/' ? "" : "./", path); /* whatever it looks like */
    int code = sqlite3_open_v2(name, handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    free(name);
    if (*handle == NULL)
        return SQLITE_NOMEM;
    sqlite3_busy_timeout(*handle, PATIENCE_MS);
    sqlite3_db_config(*handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(*handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_READWRITE) != 0)
        code = sqlite3_exec(*handle, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", NULL, NULL, NULL);
    return code;
}

/* Whether a failure means that there is nothing yet: another process removed the file since it was looked for, or has begun a
 * new one and not filled it. */
static bool is_none(sqlite3 *handle, int code)
{
    SCOPED(sqlite3_finalize_at) sqlite3_stmt *table = NULL;
    if ((code & 0xff) == SQLITE_CANTOPEN)
        return sqlite3_system_errno(handle) == ENOENT;
    return (code & 0xff) == SQLITE_ERROR &&
           sqlite3_prepare_v2(handle, "SELECT 1 FROM sqlite_schema", -1, &table, NULL) == SQLITE_OK &&
           sqlite3_step(table) == SQLITE_DONE;
}

static int prepare(const struct seen *seen, const char *sql, sqlite3_stmt **statement)
{
    int code = sqlite3_prepare_v2(seen->handle, sql, -1, statement, NULL);
    const char *const of[] = {seen->kind, seen->root, seen->version};
    for (int i = 0; code == SQLITE_OK && i < sqlite3_bind_parameter_count(*statement) && i < 3; i++)
        code = sqlite3_bind_text(*statement, i + 1, of[i], -1, SQLITE_STATIC);
    return code;
}

static int run(const struct seen *seen, const char *sql)
{
    SCOPED(sqlite3_finalize_at) sqlite3_stmt *statement = NULL;
    int code = prepare(seen, sql, &statement);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

/* Taking and releasing the lock takes longer than to find a record. It is not held for many, because others may write. */
static void hold(struct seen *seen, bool held)
{
    if (sqlite3_get_autocommit(seen->handle) == 0)
        sqlite3_exec(seen->handle, "COMMIT", NULL, NULL, NULL);
    if (held)
        sqlite3_exec(seen->handle, "BEGIN", NULL, NULL, NULL);
}

static void disconnect(struct seen *seen)
{
    sqlite3_finalize(seen->find);
    sqlite3_close(seen->handle);
    seen->find = NULL;
    seen->handle = NULL;
}

/* --- Reading --- */

status seen_open(struct seen **opened, const char *folder, const struct seen_place *place, struct error *error)
{
    *opened = NULL;
    if (folder == NULL)
        return OK;
    struct seen *seen = xcalloc(1, sizeof *seen);
    *seen = (struct seen){.path = path_format("%s/%s", folder, SEEN_FILE),
                          .folder = xstrdup(folder),
                          .kind = xstrdup(place->kind),
                          .root = xstrdup(place->root),
                          .version = xstrdup(place->version)};
    pthread_mutex_init(&seen->finding, NULL);
    *opened = seen;
    struct stat file;
    if (stat(seen->path, &file) != 0 || file.st_size == 0) /* none, or another process begins it */
        return OK;
    int code = open_handle(&seen->handle, seen->path, SQLITE_OPEN_READONLY);
    if (code == SQLITE_OK)
        code =
            prepare(seen, "SELECT stamp, found, checksum FROM seen WHERE place = " PLACE " AND name = ?4", &seen->find);
    bool known = code == SQLITE_OK;
    status result = is_none(seen->handle, code) ? OK : fail(seen->handle, seen->path, code, error);
    if (!known)
        disconnect(seen);
    return result;
}

void seen_close(struct seen *seen)
{
    if (seen == NULL)
        return;
    disconnect(seen);
    pthread_mutex_destroy(&seen->finding);
    free(seen->path);
    free(seen->folder);
    free(seen->kind);
    free(seen->root);
    free(seen->version);
    free(seen);
}

static uint64_t add_text(const char *text, uint64_t checksum)
{
    return digest_quick(text, strlen(text) + 1, checksum);
}

static int64_t checksum_of(const struct seen *seen, const struct seen_record *record)
{
    uint64_t sum = add_text(record->name, add_text(seen->version, add_text(seen->root, add_text(seen->kind, 0))));
    return (int64_t)digest_quick(record->found, record->size, digest_quick(&record->stamp, sizeof record->stamp, sum));
}

bool seen_find(struct seen *seen, const char *name, const struct file_stamp *stamp, void *found, size_t size)
{
    if (seen == NULL || seen->find == NULL)
        return false;
    struct seen_record record = {.name = name, .stamp = *stamp, .size = size};
    pthread_mutex_lock(&seen->finding);
    if (seen->finds++ % FINDS_AT_ONCE == 0)
        hold(seen, true);
    sqlite3_bind_text(seen->find, 4, name, -1, SQLITE_STATIC);
    bool known = sqlite3_step(seen->find) == SQLITE_ROW && sqlite3_column_bytes(seen->find, 0) == (int)sizeof *stamp &&
                 sqlite3_column_bytes(seen->find, 1) == (int)size;
    if (known) {
        record.found = sqlite3_column_blob(seen->find, 1);
        known = memcmp(sqlite3_column_blob(seen->find, 0), stamp, sizeof *stamp) == 0 &&
                sqlite3_column_int64(seen->find, 2) == checksum_of(seen, &record);
    }
    if (known)
        memcpy(found, record.found, size);
    sqlite3_reset(seen->find);
    pthread_mutex_unlock(&seen->finding);
    return known;
}

/* --- Writing --- */

static int write_record(const struct seen *seen, sqlite3_stmt *insert, const struct seen_record *record)
{
    sqlite3_bind_text(insert, 4, record->name, -1, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 5, &record->stamp, sizeof record->stamp, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 6, record->found, (int)record->size, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 7, checksum_of(seen, record));
    int code = sqlite3_step(insert);
    sqlite3_reset(insert);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int write_all(const struct seen *seen, const struct seen_record *records, size_t count)
{
    static const char *const places[] = {
        "DELETE FROM seen WHERE place IN (SELECT place FROM places WHERE kind = ?1 AND root = ?2 AND version <> ?3)",
        "INSERT INTO places (kind, root, version) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (kind, root) DO UPDATE SET version = ?3"};
    sqlite3_stmt *insert = NULL;
    int code = sqlite3_exec(seen->handle, schema, NULL, NULL, NULL);
    for (size_t i = 0; code == SQLITE_OK && i < sizeof places / sizeof *places; i++)
        code = run(seen, places[i]);
    if (code == SQLITE_OK)
        code = prepare(seen, "REPLACE INTO seen VALUES (" PLACE ", ?4, ?5, ?6, ?7)", &insert);
    for (size_t i = 0; code == SQLITE_OK && i < count; i++)
        code = write_record(seen, insert, &records[i]);
    sqlite3_finalize(insert);
    return code == SQLITE_OK ? run(seen, "COMMIT") : code;
}

status seen_write(struct seen *seen, const struct seen_record *records, size_t count, struct error *error)
{
    if (seen == NULL || count == 0)
        return OK;
    if (seen->handle != NULL)
        hold(seen, false);
    seen->finds = 0;
    TRY(directory_create(seen->folder, error));
    if (file_exists(seen->path))
        TRY(file_check_kind(seen->path, error));
    status result = ERROR_FORMAT;
    for (int i = 0; result == ERROR_FORMAT && i < 2; i++) {
        struct seen writer = *seen;
        if (i > 0 && unlink(seen->path) != 0 && errno != ENOENT)
            return error_errno(error, errno, "%s: is damaged and cannot be removed", seen->path);
        int code = open_handle(&writer.handle, seen->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
        if (code == SQLITE_OK)
            code = write_all(&writer, records, count);
        result = fail(writer.handle, seen->path, code, error);
        sqlite3_close(writer.handle);
    }
    return result;
}

/* --- The whole file --- */

static char *copy_text(sqlite3_stmt *read, int column)
{
    const char *text = (const char *)sqlite3_column_text(read, column);
    return xstrdup(text != NULL ? text : "");
}

static int list(struct seen_listing *listing, sqlite3 *handle)
{
    SCOPED(sqlite3_finalize_at) sqlite3_stmt *read = NULL;
    int code = sqlite3_prepare_v2(handle,
                                  "SELECT kind, root, count(*), sum(length(name) + length(stamp) + length(found) + 8) "
                                  "FROM places JOIN seen USING (place) GROUP BY place ORDER BY kind, root",
                                  -1, &read, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(read)) == SQLITE_ROW) {
        GROW(listing->places, listing->count);
        listing->places[listing->count++] = (struct seen_listed){.kind = copy_text(read, 0),
                                                                 .root = copy_text(read, 1),
                                                                 .records = sqlite3_column_int64(read, 2),
                                                                 .bytes = sqlite3_column_int64(read, 3)};
        code = SQLITE_OK;
    }
    return code;
}

status seen_list(struct seen_listing *listing, const char *folder, struct error *error)
{
    OWNED char *path = path_format("%s/%s", folder, SEEN_FILE);
    SCOPED(sqlite3_close_at) sqlite3 *handle = NULL;
    *listing = (struct seen_listing){0};
    status result = OK;
    if (file_exists(path)) {
        int code = open_handle(&handle, path, SQLITE_OPEN_READONLY);
        if (code == SQLITE_OK)
            code = list(listing, handle);
        if (!is_none(handle, code))
            result = fail(handle, path, code, error);
    }
    return result;
}

void seen_listing_free(struct seen_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->places[i].kind);
        free(listing->places[i].root);
    }
    free(listing->places);
    *listing = (struct seen_listing){0};
}

/* Whether no place is left. */
static bool forget(sqlite3 *handle, const char *root)
{
    SCOPED(sqlite3_finalize_at) sqlite3_stmt *left = NULL;
    char *sql =
        sqlite3_mprintf("BEGIN IMMEDIATE; DELETE FROM seen WHERE place IN (SELECT place FROM places WHERE root = %Q); "
                        "DELETE FROM places WHERE root = %Q; COMMIT",
                        root, root);
    bool none = sqlite3_exec(handle, sql, NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(handle, "SELECT 1 FROM places", -1, &left, NULL) == SQLITE_OK &&
                sqlite3_step(left) == SQLITE_DONE;
    sqlite3_free(sql);
    return none;
}

status seen_forget(const char *folder, const char *root, struct error *error)
{
    OWNED char *path = path_format("%s/%s", folder, SEEN_FILE);
    sqlite3 *handle = NULL;
    bool all = root == NULL;
    if (!all && file_exists(path) && open_handle(&handle, path, SQLITE_OPEN_READWRITE) == SQLITE_OK)
        all = forget(handle, root);
    sqlite3_close(handle);
    return all && unlink(path) != 0 && errno != ENOENT ? error_errno(error, errno, "%s: cannot be removed", path) : OK;
}
