#include "results/report/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

#define PAGE "index.html"

enum { MARK_WITHIN = 512 };

/* --- What may be replaced --- */

static bool has_mark(const char *page)
{
    char begin[MARK_WITHIN + 1] = "";
    int file;
    uint64_t size;
    if (file_open(page, &file, &size, NULL) != OK)
        return false;
    bool read = file_read_at(file, page, begin, size < MARK_WITHIN ? (size_t)size : MARK_WITHIN, 0, NULL) == OK;
    close(file);
    return read && strstr(begin, REPORT_MARK) != NULL;
}

static status refuse(const char *path, const char *found, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected a new name, an empty folder or a report, found %s; name another folder", path,
                     found);
}

/* Somebody's notes beside the page would be lost with the folder. */
static status check_names(const char *path, const struct directory *names, struct error *error)
{
    bool page = false;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->names[i];
        page |= strcmp(name, PAGE) == 0;
        if (strcmp(name, PAGE) != 0 && strcmp(name, REPORT_FIGURES) != 0) {
            char found[300];
            snprintf(found, sizeof found, "a folder with \"%.200s\" in it", name);
            return refuse(path, found, error);
        }
    }
    char *file = path_format("%s/" PAGE, path);
    if (file == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for its name", path);
    bool marked = page && has_mark(file);
    free(file);
    return names->count == 0 || marked ? OK : refuse(path, "a folder with another page in it", error);
}

static status check_target(const char *path, struct error *error)
{
    struct stat about;
    if (path[0] == 0)
        return error_set(error, ERROR_ARGUMENT, "the name of the report's folder is empty");
    if (lstat(path, &about) != 0)
        return errno == ENOENT ? OK : error_errno(error, errno, "%s: cannot look there", path);
    if (!S_ISDIR(about.st_mode))
        return refuse(path, S_ISLNK(about.st_mode) ? "a link" : "a file", error);
    struct directory names;
    TRY(directory_list(&names, path, error));
    status result = check_names(path, &names, error);
    directory_free(&names);
    return result;
}

/* --- Writing --- */

/* Slashes at the end would put the new folder inside the old one. */
static char *trimmed(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return strndup(path, size);
}

/* What is needed to begin; what is there already is freed by report_folder_abandon. */
static status create_parts(struct report_folder *folder, struct error *error)
{
    char *parent = path_parent(folder->path);
    if (parent == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for its name", folder->path);
    status result = directory_create(parent, error);
    if (result == OK)
        temporary_clear(parent);
    free(parent);
    TRY(result);
    TRY(temporary_create_folder(&folder->temporary, folder->path, error));
    folder->fresh = path_format("%s/report", folder->temporary.path);
    return folder->fresh != NULL ? directory_create(folder->fresh, error)
                                 : error_set(error, ERROR_MEMORY, "%s: no memory for its name", folder->path);
}

status report_folder_begin(struct report_folder *folder, const char *path, struct error *error)
{
    *folder = (struct report_folder){0};
    TRY(check_target(path, error));
    folder->path = trimmed(path);
    status result = folder->path != NULL ? create_parts(folder, error)
                                         : error_set(error, ERROR_MEMORY, "%s: no memory for its name", path);
    if (result != OK)
        report_folder_abandon(folder);
    return result;
}

/* File systems that cannot exchange two names get two steps. */
static status move_aside(const struct report_folder *folder, struct error *error)
{
    char *aside = path_format("%s.old-%ld", folder->path, (long)getpid());
    if (aside == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for its name", folder->path);
    status result = OK;
    if (rename(folder->path, aside) != 0)
        result = error_errno(error, errno, "%s: cannot be replaced", folder->path);
    else if (rename(folder->fresh, folder->path) != 0) {
        result = error_errno(error, errno, "%s: cannot be put in place", folder->path);
        if (rename(aside, folder->path) != 0)
            error_context(error, "the report that was there is now %s", aside);
    } else {
        rename(aside, folder->fresh); /* to go with the temporary folder */
    }
    free(aside);
    return result;
}

static status put_in_place(const struct report_folder *folder, struct error *error)
{
    if (rename(folder->fresh, folder->path) == 0) /* nothing there, or an empty folder */
        return OK;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return error_errno(error, errno, "%s: cannot be put in place", folder->path);
    TRY(check_target(folder->path, error)); /* again: writing took a while */
    if (renameat2(AT_FDCWD, folder->fresh, AT_FDCWD, folder->path, RENAME_EXCHANGE) != 0)
        return move_aside(folder, error);
    return OK;
}

/* What was there is in the temporary folder now, and goes with it. */
status report_folder_commit(struct report_folder *folder, struct error *error)
{
    status result = file_sync_all(folder->fresh, error);
    if (result == OK)
        result = put_in_place(folder, error);
    if (result == OK)
        file_sync_name(folder->path);
    report_folder_abandon(folder);
    return result;
}

void report_folder_abandon(struct report_folder *folder)
{
    temporary_remove(&folder->temporary);
    free(folder->path);
    free(folder->fresh);
    *folder = (struct report_folder){0};
}
