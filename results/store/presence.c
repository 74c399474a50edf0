#include "results/store/presence.h"

#include <errno.h>

static status fail(const char *path, const char *what, struct error *error)
{
    return error_set(error, ERROR_IO,
                     "%s: was %s while this program used it; put the file that was there back and give the same "
                     "command again",
                     path, what);
}

static status compare(const char *path, dev_t device, ino_t inode, struct stat *found, struct error *error)
{
    if (stat(path, found) != 0)
        return errno == ENOENT || errno == ENOTDIR ? fail(path, "deleted or renamed", error)
                                                   : error_errno(error, errno, "%s: can no longer be reached", path);
    return found->st_dev == device && found->st_ino == inode ? OK : fail(path, "replaced by another file", error);
}

status presence_check(struct presence *file, struct error *error)
{
    struct stat found;
    if (file->seen)
        TRY(compare(file->path, file->device, file->inode, &found, error));
    else if (stat(file->path, &found) != 0)
        return OK;
    file->seen = true;
    file->device = found.st_dev;
    file->inode = found.st_ino;
    file->size = found.st_size;
    file->changed = found.st_mtim;
    return OK;
}

status presence_check_descriptor(int descriptor, const char *path, struct error *error)
{
    struct stat own, found;
    if (fstat(descriptor, &own) != 0)
        return error_errno(error, errno, "%s", path);
    return compare(path, own.st_dev, own.st_ino, &found, error);
}
