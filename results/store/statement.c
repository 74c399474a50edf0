/* Statements of a database: prepared, bound, stepped and read; and transactions. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"

#include "results/store/database_internal.h"

status statement_open(struct statement **opened, struct database *database, const char *sql, struct error *error)
{
    *opened = NULL;
    SCOPED(statement_close_at) struct statement *statement = xcalloc(1, sizeof *statement);
    statement->database = database;
    const char *rest = "";
    int code = sqlite3_prepare_v3(database->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement->handle, &rest);
    sqlite3_stmt *more = NULL; /* comments are none */
    status result = OK;
    if (code != SQLITE_OK)
        result = database_fail(database, code, error);
    else if (!statement->handle || sqlite3_prepare_v2(database->handle, rest, -1, &more, NULL) != SQLITE_OK || more)
        result = error_set(error, ERROR_ARGUMENT, "expected one SQL statement, found %s",
                           statement->handle ? "more behind it" : "none");
    sqlite3_finalize(more);
    TRY(result);
    *opened = TAKE(statement);
    return OK;
}

/* sqlite3_stmt_readonly accepts BEGIN, ATTACH and some PRAGMAs, so only the parts of a query are allowed here. A first use of
 * json_each declares its columns, which looks like an update of the schema. */
static int allow_reading(void *context, int action, const char *first, const char *second, const char *schema,
                         const char *trigger)
{
    bool declares = action == SQLITE_UPDATE && strcmp(first, "sqlite_master") == 0;
    bool harmless = declares || action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE ||
                    (action == SQLITE_FUNCTION && strcmp(second, "load_extension") != 0);
    if (!harmless)
        *(bool *)context = true;
    return harmless ? SQLITE_OK : SQLITE_DENY;
}

status statement_open_reader(struct statement **statement, struct database *database, const char *sql,
                             struct error *error)
{
    bool refused = false;
    sqlite3_set_authorizer(database->handle, allow_reading, &refused);
    status result = statement_open(statement, database, sql, error);
    sqlite3_set_authorizer(database->handle, NULL, NULL);
    if (result == OK && !sqlite3_stmt_readonly((*statement)->handle)) {
        statement_close(*statement);
        *statement = NULL;
        refused = true;
    }
    if (refused)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: a query only reads: expected SELECT, WITH, VALUES or EXPLAIN, found \"%.60s\"",
                         database->path, sql);
    return result;
}

void statement_close(struct statement *statement)
{
    if (!statement)
        return;
    sqlite3_finalize(statement->handle);
    free(statement);
}

static status bind_value(struct statement *statement, int index, const struct value *value, struct error *error)
{
    sqlite3_stmt *handle = statement->handle;
    int code = SQLITE_OK;
    if (value->kind == VALUE_INTEGER)
        code = sqlite3_bind_int64(handle, index, value->integer);
    else if (value->kind == VALUE_REAL)
        code = sqlite3_bind_double(handle, index, value->real);
    else if (value->kind == VALUE_TEXT)
        code = sqlite3_bind_text64(handle, index, value->bytes.data, value->bytes.size, SQLITE_STATIC, SQLITE_UTF8);
    else if (value->kind == VALUE_BLOB)
        code = sqlite3_bind_blob64(handle, index, value->bytes.size ? value->bytes.data : "", value->bytes.size,
                                   SQLITE_STATIC);
    else
        code = sqlite3_bind_null(handle, index);
    return code == SQLITE_OK ? OK : database_fail(statement->database, code, error);
}

status statement_bind(struct statement *statement, const struct value *values, size_t count, struct error *error)
{
    sqlite3_reset(statement->handle);
    size_t parameters = (size_t)sqlite3_bind_parameter_count(statement->handle);
    for (size_t i = 0; i < count && i < parameters; i++)
        TRY(bind_value(statement, (int)i + 1, &values[i], error));
    return OK;
}

status statement_bind_named(struct statement *statement, const struct named_value *values, size_t count,
                            struct error *error)
{
    sqlite3_reset(statement->handle);
    for (size_t i = 0; i < count; i++) {
        int index = sqlite3_bind_parameter_index(statement->handle, values[i].name);
        if (index > 0)
            TRY(bind_value(statement, index, &values[i].value, error));
    }
    return OK;
}

bool statement_takes(const struct statement *statement, const struct named_value *values, size_t count)
{
    bool same = (size_t)sqlite3_bind_parameter_count(statement->handle) == count;
    for (size_t i = 0; same && i < count; i++)
        same = strcmp(sqlite3_bind_parameter_name(statement->handle, (int)i + 1) + 1, values[i].name) == 0;
    return same;
}

/* After a request to stop no read begins, except in a transaction that writes, which may save the run. */
status statement_step(struct statement *statement, bool *row, struct error *error)
{
    struct database *database = statement->database;
    database->writes = !sqlite3_stmt_readonly(statement->handle) || !sqlite3_get_autocommit(database->handle);
    int code = database_is_to_stop(database) ? SQLITE_INTERRUPT : sqlite3_step(statement->handle);
    database->writes = false;
    *row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return OK;
    status result = code == SQLITE_DONE ? OK : database_fail(statement->database, code, error);
    sqlite3_reset(statement->handle);
    return result;
}

status statement_run(struct statement *statement, const struct value *values, size_t count, struct error *error)
{
    TRY(statement_bind(statement, values, count, error));
    bool row;
    TRY(statement_step(statement, &row, error));
    sqlite3_reset(statement->handle);
    return OK;
}

size_t statement_columns(const struct statement *statement)
{
    return (size_t)sqlite3_column_count(statement->handle);
}

const char *statement_title(const struct statement *statement, size_t column)
{
    const char *title = sqlite3_column_name(statement->handle, (int)column);
    return title ? title : "";
}

struct value statement_value(struct statement *statement, size_t column)
{
    sqlite3_stmt *handle = statement->handle;
    int at = (int)column;
    switch (sqlite3_column_type(handle, at)) {
    case SQLITE_INTEGER:
        return value_integer(sqlite3_column_int64(handle, at));
    case SQLITE_FLOAT:
        return value_real(sqlite3_column_double(handle, at));
    case SQLITE_TEXT: {
        const void *data = sqlite3_column_text(handle, at);
        return (struct value){.kind = VALUE_TEXT,
                              .bytes = {data ? data : "", (size_t)sqlite3_column_bytes(handle, at)}};
    }
    case SQLITE_BLOB: {
        const void *data = sqlite3_column_blob(handle, at);
        return value_blob(data, (size_t)sqlite3_column_bytes(handle, at));
    }
    default:
        return value_null();
    }
}

int64_t statement_integer(struct statement *statement, size_t column)
{
    return sqlite3_column_int64(statement->handle, (int)column);
}

const char *statement_text(struct statement *statement, size_t column)
{
    const unsigned char *text = sqlite3_column_text(statement->handle, (int)column);
    return text ? (const char *)text : "";
}

char *statement_string(struct statement *statement, size_t column)
{
    const unsigned char *found = sqlite3_column_text(statement->handle, (int)column);
    return found ? xstrdup((const char *)found) : NULL;
}

/* --- Questions and commands --- */

/* Opens it with its values, or leaves none open. */
static status ask(struct statement **statement, struct database *database, const char *sql, const struct value *values,
                  size_t count, struct error *error)
{
    TRY(statement_open(statement, database, sql, error));
    status result = statement_bind(*statement, values, count, error);
    if (result == OK)
        return OK;
    statement_close(*statement);
    *statement = NULL;
    return result;
}

status database_row(struct database *database, const char *sql, const struct value *values, size_t count,
                    struct statement **row, struct error *error)
{
    bool found = false;
    TRY(ask(row, database, sql, values, count, error));
    status result = statement_step(*row, &found, error);
    if (!found) {
        statement_close(*row);
        *row = NULL;
    }
    return result;
}

status database_each(struct database *database, const char *sql, const struct value *values, size_t count,
                     row_taker *take, void *context, struct error *error)
{
    SCOPED(statement_close_at) struct statement *statement = NULL;
    TRY(ask(&statement, database, sql, values, count, error));
    status result;
    for (bool row; (result = statement_step(statement, &row, error)) == OK && row;)
        if (take != NULL && (result = take(context, statement, error)) != OK)
            break;
    return result;
}

status database_ask(struct database *database, const char *sql, const struct value *values, size_t count,
                    int64_t *integer, struct error *error)
{
    SCOPED(statement_close_at) struct statement *row = NULL;
    *integer = 0;
    TRY(database_row(database, sql, values, count, &row, error));
    if (row)
        *integer = statement_integer(row, 0);
    return OK;
}

status database_integer(struct database *database, const char *sql, int64_t *integer, struct error *error)
{
    return database_ask(database, sql, NO_VALUES, integer, error);
}

status database_run(struct database *database, const char *sql, const struct value *values, size_t count,
                    struct error *error)
{
    return database_each(database, sql, values, count, NULL, NULL, error);
}

/* --- Transactions ---
 * The files are opened only through SQLite, because closing a descriptor of them would drop its locks. */

/* A PRAGMA, since newer versions of SQLite take 1 in pragma_quick_check(1) for the name of a table. */
status database_check_pages(const struct database *database, bool *whole, struct error *error)
{
    SCOPED(database_close_at) struct database *fresh = NULL;
    SCOPED(statement_close_at) struct statement *row = NULL;
    struct error found;
    struct stat file;
    *whole = false;
    if (stat(database_full_path(database), &file) == 0 && file.st_size == 0)
        return OK;
    status result = database_open(&fresh, database_full_path(database), STORE_READ, NULL, &found);
    NEXT(result, database_row(fresh, "PRAGMA quick_check(1)", NO_VALUES, &row, &found));
    *whole = result == OK && strcmp(statement_text(row, 0), "ok") == 0;
    return result == OK || result == ERROR_FORMAT ? OK : error_set(error, result, "%s", found.message);
}

/* What shrank was cut, unless VACUUM has made it smaller, or a checkpoint the log. */
static status check_file(const struct database *database, const char *path, struct stat *was, struct error *error)
{
    struct stat now = *was;
    bool whole = true;
    TRY(file_check_same(path, &now, error));
    status asked = now.st_size < was->st_size ? database_check_pages(database, &whole, error) : OK;
    if (asked != OK && asked != ERROR_IO) /* of what is missing, SQLite says an error of the disk */
        return asked;
    if (!whole)
        return error_set(error, ERROR_IO,
                         "%s: was cut from %" PRId64 " to %" PRId64
                         " bytes while this program used it; put a whole copy in its place, or name another database",
                         path, (int64_t)was->st_size, (int64_t)now.st_size);
    *was = now;
    return OK;
}

status database_check_files(struct database *database, struct error *error)
{
    static const char *const endings[DATABASE_FILES] = {"", "-wal", "-shm", "-lock"};
    const char *file = database_full_path(database);
    for (size_t i = 0; i < DATABASE_FILES && *file; i++) {
        OWNED char *path = path_format("%s%s", file, endings[i]);
        TRY(check_file(database, path, &database->file[i], error));
    }
    return OK;
}

status database_begin(struct database *database, bool *began, struct error *error)
{
    *began = sqlite3_get_autocommit(database->handle) != 0;
    if (!*began)
        return OK;
    status result = database_execute(database, "BEGIN IMMEDIATE", error);
    status same = database_check_files(database, error); /* says more than SQLite */
    if (same != OK)
        database_rollback(database);
    return same != OK ? same : result;
}

status database_end(struct database *database, bool began, status result, struct error *error)
{
    if (!began)
        return result;
    NEXT(result, database_execute(database, "COMMIT", error));
    NEXT(result, database_check_files(database, error));
    if (result != OK)
        database_rollback(database);
    return result;
}
