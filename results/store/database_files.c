/* The files of a database beside a running program. They are opened only through SQLite, because closing a descriptor of
 * them would drop its locks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "results/store/database_internal.h"

static const char *const endings[DATABASE_FILES] = {"", "-wal", "-shm", "-lock"};

bool database_is_read_only(const char *path)
{
    char *folder = path_parent(path);
    bool found =
        (file_exists(path) && access(path, W_OK) != 0) || (folder && file_exists(folder) && access(folder, W_OK) != 0);
    free(folder);
    return found;
}

int64_t database_log_size(const char *path)
{
    struct stat log;
    char *name = path_format("%s-wal", path);
    bool there = name && stat(name, &log) == 0;
    free(name);
    return there ? log.st_size : -1;
}

/* The log first: a database that is being created has its first page before it has a log. */
status database_check_log(const char *path, struct error *error)
{
    struct stat file;
    if (database_log_size(path) <= 0)
        return OK;
    bool there = stat(path, &file) == 0;
    if (there && file.st_size > 0)
        return OK;
    return error_set(error, ERROR_IO,
                     "%s: %s, but %s-wal beside it holds rows of an earlier database; put that "
                     "file back, or delete %s-wal and %s-shm with these rows",
                     path, there ? "is empty" : "there is no such file", path, path, path);
}

bool database_is_sound(const struct database *database)
{
    struct database *fresh;
    int64_t sound = 0;
    if (database_open(&fresh, database_full_path(database), false, NULL) != OK)
        return false;
    status result = database_integer(fresh,
                                     "SELECT quick_check = 'ok' AND EXISTS (SELECT 1 FROM sqlite_schema) "
                                     "FROM pragma_quick_check(1)",
                                     &sound, NULL);
    database_close(fresh);
    return result == OK && sound;
}

/* What shrank was cut, unless VACUUM has made it smaller, or a checkpoint the log. */
static status check_file(const struct database *database, const char *path, struct stat *was, struct error *error)
{
    struct stat now = *was;
    TRY(file_check_same(path, &now, error));
    if (now.st_size < was->st_size && !database_is_sound(database))
        return error_set(error, ERROR_IO,
                         "%s: was cut from %" PRId64 " to %" PRId64
                         " bytes while this program used it; put a whole copy in its place, or name another database",
                         path, (int64_t)was->st_size, (int64_t)now.st_size);
    *was = now;
    return OK;
}

status database_check_files(struct database *database, struct error *error)
{
    const char *file = database_full_path(database);
    status result = OK;
    for (size_t i = 0; i < DATABASE_FILES && result == OK && file && *file; i++) {
        char *path = path_format("%s%s", file, endings[i]);
        result = path ? check_file(database, path, &database->file[i], error)
                      : error_set(error, ERROR_MEMORY, "%s: out of memory", file);
        free(path);
    }
    return result;
}
