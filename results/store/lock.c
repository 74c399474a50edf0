#include "results/store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/stop.h"

#define RETRY_MS 10

status lock_file_open(struct lock_file *locks, const char *database_path, bool writable, struct error *error)
{
    *locks = (struct lock_file){.descriptor = -1, .path = path_format("%s-lock", database_path)};
    if (!locks->path)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", database_path);
    if (writable)
        return file_open_own(AT_FDCWD, locks->path, O_RDWR, &locks->descriptor, error);
    locks->descriptor = open(locks->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return OK;
}

void lock_file_close(struct lock_file *locks)
{
    if (locks->descriptor >= 0)
        close(locks->descriptor);
    free(locks->path);
    *locks = (struct lock_file){.descriptor = -1};
}

/* Returns errno, or 0; F_OFD_GETLK leaves in *type whether another has it. */
static int control(const struct lock_file *locks, int command, int64_t number, short *type)
{
    struct flock range = {.l_type = *type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    int code;
    do
        code = fcntl(locks->descriptor, command, &range);
    while (code != 0 && errno == EINTR);
    *type = range.l_type;
    return code == 0 ? 0 : errno;
}

status lock_take(struct lock_file *locks, int64_t number, int patience, bool *taken, struct error *error)
{
    for (int waited = 0;; waited += RETRY_MS) {
        int code = control(locks, F_OFD_SETLK, number, &(short){F_WRLCK});
        *taken = code == 0;
        if (code != 0 && code != EAGAIN && code != EACCES)
            return error_errno(error, code, "%s: cannot be locked; does its file system support locks?", locks->path);
        if (*taken || waited >= patience || stop_requested(locks->stop))
            return OK;
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    }
}

void lock_give(struct lock_file *locks, int64_t number)
{
    control(locks, F_OFD_SETLK, number, &(short){F_UNLCK});
}

bool lock_is_taken(const struct lock_file *locks, int64_t number)
{
    short type = F_WRLCK;
    return locks->descriptor >= 0 && control(locks, F_OFD_GETLK, number, &type) == 0 && type != F_UNLCK;
}
