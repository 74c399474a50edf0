#include "core/stamp.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

struct file_stamp file_stamp_of(const struct stat *found)
{
    return (struct file_stamp){.size = (uint64_t)found->st_size,
                               .inode = found->st_ino,
                               .modified = nanoseconds(found->st_mtim),
                               .changed = nanoseconds(found->st_ctim)};
}

status file_stamp_read(struct file_stamp *stamp, const char *path, struct error *error)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return error_errno(error, errno, "%s: cannot read its size and times", path);
    *stamp = file_stamp_of(&found);
    return OK;
}

bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->size == b->size && a->inode == b->inode && a->modified == b->modified && a->changed == b->changed;
}

bool file_is_other(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) != 0 || stat(other, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino;
}

/* File systems store times with a resolution of two seconds (FAT) or better. */
bool file_stamp_is_settled(const struct file_stamp *stamp, int64_t now)
{
    const int64_t tick = 2 * SECOND;
    return llabs(now - stamp->modified) > tick && llabs(now - stamp->changed) > tick;
}

int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now);
}
