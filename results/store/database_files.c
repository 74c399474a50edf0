#include "results/store/database_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"

static const char *const endings[DATABASE_FILES] = {"", "-wal", "-shm"};

bool database_is_read_only(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    bool found = (access(path, F_OK) == 0 && access(path, W_OK) != 0) ||
                 (folder != NULL && access(folder, F_OK) == 0 && access(folder, W_OK) != 0);
    free(folder);
    return found;
}

/* -1: there is none. */
static off_t log_size(const char *path)
{
    char *log = path_format("%s-wal", path);
    struct stat information;
    off_t size = log && stat(log, &information) == 0 ? information.st_size : -1;
    free(log);
    return size;
}

bool database_has_log(const char *path)
{
    return log_size(path) > 0;
}

bool database_has_empty_log(const char *path)
{
    return log_size(path) == 0;
}

/* The log first: a database that is being created has its first page before it has a log. */
status database_check_log(const char *path, struct error *error)
{
    struct stat information;
    if (!database_has_log(path))
        return OK;
    bool there = stat(path, &information) == 0;
    if (there && information.st_size > 0)
        return OK;
    return error_set(error, ERROR_IO,
                     "%s: %s, but %s-wal beside it holds rows of an earlier database; put that "
                     "file back, or delete %s-wal and %s-shm with these rows",
                     path, there ? "is empty" : "there is no such file", path, path, path);
}

status database_files_watch(struct database_files *files, const char *path, bool (*sound)(const char *path),
                            struct error *error)
{
    files->sound = sound;
    for (int i = 0; i < DATABASE_FILES; i++) {
        files->file[i].path = path_format("%s%s", path, endings[i]);
        if (!files->file[i].path)
            return error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    }
    TRY(presence_check(&files->file[0], error));
    files->changed = files->file[0].changed;
    return OK;
}

/* A file that shrank was cut, or VACUUM has made it smaller. */
static status check_size(struct database_files *files, off_t before, struct error *error)
{
    struct presence *file = &files->file[0];
    off_t size = file->size;
    if (size >= before || (size > 0 && files->sound(file->path)))
        return OK;
    file->size = before; /* it stays a fault */
    return error_set(error, ERROR_IO,
                     "%s: was cut from %" PRId64 " to %" PRId64
                     " bytes while this program used it; put a whole copy in "
                     "its place, or name another database",
                     file->path, (int64_t)before, (int64_t)size);
}

status database_files_check(struct database_files *files, struct error *error)
{
    struct presence *file = &files->file[0];
    if (!file->path)
        return OK;
    off_t before = file->size;
    for (int i = 0; i < DATABASE_FILES; i++)
        TRY(presence_check(&files->file[i], error));
    return check_size(files, before, error);
}

status database_files_check_pages(struct database_files *files, struct error *error)
{
    struct presence *file = &files->file[0];
    TRY(database_files_check(files, error));
    bool unchanged = file->changed.tv_sec == files->changed.tv_sec && file->changed.tv_nsec == files->changed.tv_nsec;
    if (!file->path || unchanged)
        return OK;
    if (!files->sound(file->path))
        return error_set(error, ERROR_IO,
                         "%s: is damaged: something other than SQLite wrote to it while this program used it; put a "
                         "whole copy in its place, or name another database",
                         file->path);
    files->changed = file->changed;
    return OK;
}

void database_files_free(struct database_files *files)
{
    for (int i = 0; i < DATABASE_FILES; i++)
        free(files->file[i].path);
    *files = (struct database_files){0};
}
