#include "results/store/database_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "core/threads.h"
#include "results/statistics/statistics.h"
#include "results/store/per_image.h"

#define PAUSE_MS 5
#define LINGER_MS 400           /* wait of a last write after a request to stop */
#define STEPS_PER_LOOK 10000    /* of SQLite's machine: less than a millisecond */
#define VALUE_LIMIT (256 << 20) /* bytes of one text or blob, so that a hostile file cannot ask for more */

/* As SQLite makes it; returns its code. */
static int whole_path(const char *path, char whole[PATH_MAX + 1])
{
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    return system->xFullPathname(system, path, PATH_MAX + 1, whole);
}

/* The file that a link leads to, there or not: SQLite's log lies beside it. The caller frees. */
static char *follow_links(const char *path)
{
    char whole[PATH_MAX + 1];
    return xstrdup(whole_path(path, whole) == SQLITE_OK_SYMLINK ? whole : path);
}

/* The file, or the folder for SQLite's log beside it, exists and is not writable. */
static bool is_read_only(const char *path)
{
    OWNED char *file = follow_links(path), *folder = path_parent(file);
    return (file_exists(file) && access(file, W_OK) != 0) || (file_exists(folder) && access(folder, W_OK) != 0);
}

/* Of the log beside the file; -1: there is none. A database that was closed has none with rows. */
static int64_t log_size(const char *path)
{
    struct stat log;
    OWNED char *file = follow_links(path), *name = path_format("%s-wal", file);
    return stat(name, &log) == 0 ? log.st_size : -1;
}

/* The log first: a database that is being created has its first page before it has a log. */
status database_check_log(const char *path, struct error *error)
{
    struct stat about = {0};
    if (log_size(path) <= 0)
        return OK;
    bool there = stat(path, &about) == 0;
    if (about.st_size > 0)
        return OK;
    OWNED char *file = follow_links(path);
    error_set(error, ERROR_IO,
              "%s: %s, but %s-wal beside it holds rows of an earlier database; put that file back, or delete %s-wal "
              "and %s-shm with these rows",
              path, there ? "is empty" : "there is no such file", file, file, file);
    return ERROR_IO;
}

/* --- Faults --- */

/* When SQLite reports a failed write, errno may be lost; the cause is then nearly always a full disk. */
static bool disk_is_full(int code, int number)
{
    bool unexplained = number == 0 && (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE);
    return (code & 0xff) == SQLITE_FULL || unexplained || number == ENOSPC || number == EDQUOT || number == EFBIG;
}

static status fail_io(const struct database *database, int code, struct error *error)
{
    int number = sqlite3_system_errno(database->handle);
    if (disk_is_full(code, number))
        return error_set(error, ERROR_IO,
                         "%s: the disk is full or the file may not grow; %sfree some space and continue",
                         database->path, database->writable ? "uncommitted rows are not written; " : "");
    /* SQLite may report the errno of a later file than the one that it could not open. */
    bool hidden = (code & 0xff) == SQLITE_CANTOPEN && database->writable && is_read_only(database->path);
    if ((code & 0xff) == SQLITE_READONLY || hidden)
        return error_set(error, ERROR_IO,
                         "%s: cannot be written: the file, its folder or the medium is read-only; copy it elsewhere or "
                         "change its permissions",
                         database->path);
    if (number != 0)
        return error_errno(error, number, "%s: %s", database->path, sqlite3_errstr(code));
    return error_set(error, ERROR_IO, "%s: %s", database->path, sqlite3_errmsg(database->handle));
}

static status fail_busy(const struct database *database, struct error *error)
{
    if (stop_requested(database->stop))
        return error_set(error, ERROR_STOPPED, "%s: stopped while another program had the database locked",
                         database->path);
    return error_set(
        error, ERROR_BUSY,
        "%s: another program kept the database locked for %g seconds, or its file system has no locks; end "
        "that program, try again, or name another database",
        database->path, database->patience / 1000.0);
}

status database_fail(const struct database *database, int code, struct error *error)
{
    const char *path = database->path, *said = sqlite3_errmsg(database->handle);
    switch (code & 0xff) {
    case SQLITE_NOTADB:
        return error_set(error, ERROR_FORMAT, "%s: expected a results database (SQLite), found something else", path);
    case SQLITE_CORRUPT:
        return error_set(error, ERROR_FORMAT,
                         "%s: the database is damaged (%s); restore a copy, or save the rest with "
                         "`sqlite3 FILE .recover`",
                         path, said);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail_busy(database, error);
    case SQLITE_INTERRUPT:
        return error_set(error, ERROR_STOPPED, "%s: stopped", path);
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return fail_io(database, code, error);
    case SQLITE_NOMEM:
        return error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    default:
        return error_set(error, ERROR_ARGUMENT, "%s: %s", path, said);
    }
}

/* --- Functions of a caller --- */

struct function {
    database_function *call;
    void *context;
};

static void call_function(sqlite3_context *context, int count, sqlite3_value **argument)
{
    const struct function *function = sqlite3_user_data(context);
    const char *value[2] = {"", ""};
    SCOPED(text_free) struct text answer = {0};
    for (int i = 0; i < count; i++)
        value[i] = sqlite3_value_text(argument[i]) ? (const char *)sqlite3_value_text(argument[i]) : "";
    function->call(function->context, value[0], value[1], &answer);
    sqlite3_result_text(context, answer.data, (int)answer.size, SQLITE_TRANSIENT);
}

status database_add_function(struct database *database, const char *name, database_function *call, void *context,
                             struct error *error)
{
    struct function *function = xmalloc(sizeof *function);
    *function = (struct function){call, context};
    int code = sqlite3_create_function_v2(database->handle, name, 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, function,
                                          call_function, NULL, NULL, free);
    return code == SQLITE_OK ? OK : database_fail(database, code, error);
}

/* --- Requests to stop --- */

int database_is_to_stop(void *context)
{
    const struct database *database = context;
    return !database->writes && stop_requested(database->stop);
}

/* Whether to go on waiting for the lock of another; SQLite counts the calls of a wait from 0. */
static int wait_for_lock(void *context, int calls)
{
    struct database *database = context;
    if (calls == 0)
        database->waited = database->lingered = 0;
    if (database->waited >= database->patience || database->lingered >= LINGER_MS)
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    database->waited += PAUSE_MS;
    if (stop_requested(database->stop))
        database->lingered += PAUSE_MS;
    return 1;
}

static void watch(struct database *database)
{
    sqlite3_busy_handler(database->handle, wait_for_lock, database);
    sqlite3_progress_handler(database->handle, STEPS_PER_LOOK, database_is_to_stop, database);
}

/* --- Opening --- */

/* Opens and reads a little, so that a fault of the file shows here. */
static int open_handle(struct database *database, const char *name, int flags)
{
    sqlite3_close(database->handle);
    database->handle = NULL;
    int code = sqlite3_open_v2(name, &database->handle, flags | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return code;
    watch(database);
    return sqlite3_exec(database->handle, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
}

/* Opens by a URI that tells SQLite that nobody changes the file, so that it needs neither locks nor helper files. */
static int open_immutable(struct database *database, const char *path)
{
    SCOPED(text_free) struct text uri = {0};
    text_add(&uri, "file:");
    for (const char *at = path; *at; at++)
        text_add(&uri, strchr("%?#", *at) ? "%%%02X" : "%c", (unsigned char)*at);
    text_add(&uri, "?immutable=1");
    return open_handle(database, uri.data, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

/* A file or folder that may be read and not written, unlike one that a shortage of descriptors keeps from being opened. */
static bool is_out_of_reach(const struct database *database, int code)
{
    int number = sqlite3_system_errno(database->handle);
    bool short_of = number == EMFILE || number == ENFILE || number == ENOMEM;
    return !short_of && ((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY);
}

static status open_file(struct database *database, struct error *error)
{
    const char *path = database->path;
    OWNED char *name =
        path_format("%s%s", path[0] == '/' ? "" : "./", path); /* a path even if it is ":memory:", "file:…" */
    int code = open_handle(database, name,
                           database->writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
    bool out_of_reach = !database->writable && is_out_of_reach(database, code);
    bool readable = out_of_reach && access(name, R_OK) == 0, log = log_size(path) > 0;
    if (readable && !log)
        code = open_immutable(database, name);
    if ((code & 0xff) == SQLITE_NOTADB)
        TRY(file_check_meant(path, false, error));
    if (!readable || !log)
        return code == SQLITE_OK ? OK : database_fail(database, code, error);
    OWNED char *file = follow_links(path);
    error_set(error, ERROR_IO,
              "%s: %s-wal beside it holds rows that are not in it yet, and SQLite reads them only in a writable "
              "folder; copy both files to one and read the copy",
              path, file);
    return ERROR_IO;
}

/* The file is not trusted: no triggers, no functions with side effects from views, no huge values. */
static status configure(struct database *database, struct error *error)
{
    sqlite3 *handle = database->handle;
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, VALUE_LIMIT);
    int code = functions_register(handle);
    if (code == SQLITE_OK)
        code = per_image_register(handle);
    if (code == SQLITE_OK)
        code =
            sqlite3_exec(handle, "PRAGMA temp_store = MEMORY; EXPLAIN SELECT * FROM images(0, 0, 0)", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return database_fail(database, code, error);
    if (database->writable && sqlite3_db_readonly(handle, "main") == 1)
        return database_fail(database, SQLITE_READONLY, error);
    return OK;
}

static status check_path(const char *path, bool writable, struct error *error)
{
    char whole[PATH_MAX + 1];
    size_t most = (size_t)sqlite3_vfs_find(NULL)->mxPathname - strlen("-journal");
    if (path[0] == '\0')
        return error_set(error, ERROR_ARGUMENT, "the name of the results database is empty");
    if ((whole_path(path, whole) & 0xff) == SQLITE_OK && strlen(whole) > most)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: its whole path has %zu bytes, but SQLite takes %zu; use a shorter one", path,
                         strlen(whole), most);
    if (file_is_directory(path))
        return error_set(error, ERROR_ARGUMENT, "%s: expected a results database, found a folder", path);
    TRY(database_check_log(path, error));
    if (!writable && !file_exists(path))
        return error_set(error, ERROR_IO, "%s: there is no such file; `mtil run` writes results databases", path);
    return file_check_kind(path, error);
}

status database_open(struct database **opened, const char *path, enum store_mode mode, const struct stop *stop,
                     struct error *error)
{
    *opened = NULL;
    if (mode != STORE_MEMORY)
        TRY(check_path(path, mode == STORE_WRITE, error));
    SCOPED(database_close_at) struct database *database = xcalloc(1, sizeof *database);
    *database = (struct database){
        .path = xstrdup(path), .writable = mode != STORE_READ, .patience = DATABASE_PATIENCE, .stop = stop};
    int code = mode == STORE_MEMORY ? open_handle(database, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
                                    : SQLITE_OK;
    TRY(code != SQLITE_OK      ? database_fail(database, code, error)
        : mode == STORE_MEMORY ? OK
                               : open_file(database, error));
    TRY(configure(database, error));
    *opened = TAKE(database);
    return OK;
}

/* So that a copy of the file alone is complete, and no empty log is left. A writer moves the log into the file, unless
 * another process, such as a watching sweep, has the database open. A reader may not delete the empty log that SQLite
 * made for it; a connection that may write does so as it closes. */
static void empty_log(struct database *database)
{
    const char *opened = database_full_path(database); /* NULL: it could not be */
    OWNED char *path = opened ? xstrdup(opened) : NULL;
    if (database->writable) {
        sqlite3_busy_timeout(database->handle, LINGER_MS);
        sqlite3_wal_checkpoint_v2(database->handle, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL);
    } else if (path && log_size(path) == 0) {
        open_handle(database, path, SQLITE_OPEN_READWRITE);
    }
}

void database_close(struct database *database)
{
    if (!database)
        return;
    if (database->handle)
        empty_log(database);
    sqlite3_close_v2(database->handle);
    free(database->path);
    free(database);
}

const char *database_path(const struct database *database)
{
    return database->path;
}

const char *database_full_path(const struct database *database)
{
    return sqlite3_db_filename(database->handle, "main");
}

void database_set_patience(struct database *database, int milliseconds)
{
    database->patience = milliseconds;
}

status database_execute(struct database *database, const char *script, struct error *error)
{
    int code = sqlite3_exec(database->handle, script, NULL, NULL, NULL);
    return code == SQLITE_OK ? OK : database_fail(database, code, error);
}

void database_rollback(struct database *database)
{
    if (!sqlite3_get_autocommit(database->handle))
        sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
}

int64_t database_last_row(const struct database *database)
{
    return sqlite3_last_insert_rowid(database->handle);
}

int64_t database_changes(const struct database *database)
{
    return sqlite3_changes64(database->handle);
}
