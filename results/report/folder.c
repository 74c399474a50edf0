#include "results/report/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/file.h"

#define PAGE "index.html"

enum { MARK_WITHIN = 512 };

/* --- What may be replaced --- */

static bool has_mark(const char *folder)
{
    struct bytes page = {0};
    char *path = path_format("%s/" PAGE, folder);
    bool found = file_read(path, FILE_LIMIT, &page, NULL) == OK &&
                 memmem(page.data, page.size < MARK_WITHIN ? page.size : MARK_WITHIN, REPORT_MARK, strlen(REPORT_MARK));
    bytes_free(&page);
    free(path);
    return found;
}

/* Somebody's notes beside the page would be lost with the folder. */
static status check_target(const char *path, struct error *error)
{
    struct stat about;
    struct directory names = {0};
    char found[300] = "";
    if (path[0] == 0)
        return error_set(error, ERROR_ARGUMENT, "the name of the report's folder is empty");
    if (lstat(path, &about) != 0)
        return errno == ENOENT ? OK : error_errno(error, errno, "%s: cannot look there", path);
    if (S_ISDIR(about.st_mode))
        TRY(directory_list(&names, path, error));
    else
        snprintf(found, sizeof found, S_ISLNK(about.st_mode) ? "a link" : "a file");
    if (names.count > 0 && !has_mark(path))
        snprintf(found, sizeof found, "a folder with another page in it");
    for (size_t i = 0; i < names.count; i++)
        if (strcmp(names.names[i], PAGE) != 0 && strcmp(names.names[i], REPORT_FIGURES) != 0)
            snprintf(found, sizeof found, "a folder with \"%.200s\" in it", names.names[i]);
    directory_free(&names);
    if (found[0] == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected a new name, an empty folder or a report, found %s; name another folder", path,
                     found);
}

/* --- Writing --- */

status report_folder_begin(struct report_folder *folder, const char *path, struct error *error)
{
    *folder = (struct report_folder){0};
    TRY(check_target(path, error));
    size_t size = strlen(path); /* slashes at the end would put the new folder inside the old one */
    while (size > 1 && path[size - 1] == '/')
        size--;
    folder->path = xstrndup(path, size);
    char *parent = path_parent(folder->path);
    status result = directory_create(parent, error);
    if (result == OK)
        temporary_clear(parent);
    free(parent);
    NEXT(result, temporary_create_folder(&folder->temporary, folder->path, error));
    if (result == OK) {
        folder->fresh = path_format("%s/report", folder->temporary.path);
        result = directory_create(folder->fresh, error);
    }
    if (result != OK)
        report_folder_abandon(folder);
    return result;
}

/* What was there goes with the temporary folder. */
static status put_in_place(const struct report_folder *folder, const char *aside, struct error *error)
{
    TRY(check_target(folder->path, error)); /* again: writing took a while */
    bool was_there = rename(folder->path, aside) == 0;
    if (!was_there && errno != ENOENT)
        return error_errno(error, errno, "%s: cannot be replaced", folder->path);
    if (rename(folder->fresh, folder->path) == 0)
        return OK;
    error_errno(error, errno, "%s: cannot be put in place", folder->path);
    if (was_there)
        rename(aside, folder->path);
    return ERROR_IO;
}

status report_folder_commit(struct report_folder *folder, struct error *error)
{
    char *aside = path_format("%s/earlier", folder->temporary.path);
    status result = file_sync_all(folder->fresh, error);
    NEXT(result, put_in_place(folder, aside, error));
    if (result == OK)
        file_sync_name(folder->path);
    free(aside);
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
