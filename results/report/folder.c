#include "results/report/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"

#define PAGE "index.html"

enum { MARK_WITHIN = 512 };

static status out_of_memory(const char *path, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: no memory for its name", path);
}

/* --- What may be replaced --- */

static status refuse(const char *path, const char *found, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected a new name, an empty folder or a report, found %s; name another folder", path,
                     found);
}

static bool has_mark(const char *page)
{
    struct bytes bytes;
    if (file_read(page, FILE_LIMIT, &bytes, NULL) != OK)
        return false;
    bool found = memmem(bytes.data, bytes.size < MARK_WITHIN ? bytes.size : MARK_WITHIN, REPORT_MARK,
                        strlen(REPORT_MARK)) != NULL;
    bytes_free(&bytes);
    return found;
}

/* Somebody's notes beside the page would be lost with the folder. */
static status check_names(const char *path, const struct directory *names, struct error *error)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], PAGE) != 0 && strcmp(names->names[i], REPORT_FIGURES) != 0) {
            char found[300];
            snprintf(found, sizeof found, "a folder with \"%.200s\" in it", names->names[i]);
            return refuse(path, found, error);
        }
    char *page = path_format("%s/" PAGE, path);
    status result = page == NULL                          ? out_of_memory(path, error)
                    : names->count == 0 || has_mark(page) ? OK
                                                          : refuse(path, "a folder with another page in it", error);
    free(page);
    return result;
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

/* What is needed to begin; what is there already is freed by report_folder_abandon. */
static status create_parts(struct report_folder *folder, struct error *error)
{
    char *parent = path_parent(folder->path);
    status result = parent != NULL ? directory_create(parent, error) : out_of_memory(folder->path, error);
    if (result == OK)
        temporary_clear(parent);
    free(parent);
    NEXT(result, temporary_create_folder(&folder->temporary, folder->path, error));
    TRY(result);
    folder->fresh = path_format("%s/report", folder->temporary.path);
    return folder->fresh != NULL ? directory_create(folder->fresh, error) : out_of_memory(folder->path, error);
}

status report_folder_begin(struct report_folder *folder, const char *path, struct error *error)
{
    *folder = (struct report_folder){0};
    TRY(check_target(path, error));
    size_t size = strlen(path); /* slashes at the end would put the new folder inside the old one */
    while (size > 1 && path[size - 1] == '/')
        size--;
    folder->path = strndup(path, size);
    status result = folder->path != NULL ? create_parts(folder, error) : out_of_memory(path, error);
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
    status result = aside != NULL ? file_sync_all(folder->fresh, error) : out_of_memory(folder->path, error);
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
