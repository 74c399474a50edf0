#include "core/file_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"
#include "core/file.h"

status file_group_begin(struct file_group *group, const char *folder, struct error *error)
{
    *group = (struct file_group){.folder = xstrdup(folder), .temporary = {.lock = -1}};
    TRY(directory_create(folder, error));
    temporary_clear(folder);
    char *target = path_format("%s/files", folder);
    status result = temporary_create_folder(&group->temporary, target, error);
    free(target);
    return result;
}

static char *unnamed(const struct file_group *group, size_t index)
{
    return path_format("%s/%zu", group->temporary.path, index);
}

status file_group_add(struct file_group *group, const char *name, const void *data, size_t size, struct error *error)
{
    struct file_writer writer;
    GROW(group->paths, group->count);
    char *path = path_format("%s/%s", group->folder, name), *now = unnamed(group, group->count);
    status fits = file_check_kind(path, error), result = fits;
    NEXT(result, file_writer_open_one_of_many(&writer, now, error));
    NEXT(result, file_writer_write(&writer, data, size, error));
    NEXT(result, file_writer_close(&writer, error));
    if (result != OK && fits == OK)
        error_context(error, "%s", path);
    if (result == OK)
        group->paths[group->count++] = path;
    else
        free(path);
    free(now);
    return result;
}

static status put_in_place(const struct file_group *group, size_t index, struct error *error)
{
    const char *path = group->paths[index];
    char *now = unnamed(group, index), *folder = path_parent(path);
    status result = directory_create(folder, error);
    if (result == OK && rename(now, path) != 0)
        result = error_errno(error, errno, "%s: cannot get its name; of %zu new files the last %zu have theirs", path,
                             group->count, group->count - 1 - index);
    free(now);
    free(folder);
    return result;
}

static bool in_one_folder(const char *path, const char *other)
{
    size_t folder = (size_t)(strrchr(path, '/') - path) + 1;
    return strncmp(path, other, folder) == 0 && strchr(other + folder, '/') == NULL;
}

status file_group_commit(struct file_group *group, struct error *error)
{
    status result = file_sync_all(group->temporary.path, error);
    for (size_t i = group->count; i-- > 0 && result == OK;) {
        result = put_in_place(group, i, error);
        if (i == 0 || !in_one_folder(group->paths[i], group->paths[i - 1]))
            file_sync_name(group->paths[i]);
    }
    return result;
}

void file_group_abandon(struct file_group *group)
{
    temporary_remove(&group->temporary);
    for (size_t i = 0; i < group->count; i++)
        free(group->paths[i]);
    free(group->paths);
    free(group->folder);
    *group = (struct file_group){.temporary = {.lock = -1}};
}
