#include "results/store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/stop.h"
#include "results/store/presence.h"

#define RETRY_MS 10

status lock_file_open(struct lock_file *locks, const char *database_path, struct error *error)
{
    *locks = (struct lock_file){.descriptor = -1, .path = path_format("%s-lock", database_path)};
    if (!locks->path)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", database_path);
    status result = file_open_own(AT_FDCWD, locks->path, O_RDWR, &locks->descriptor, error);
    if (result != OK)
        lock_file_close(locks);
    return result;
}

void lock_file_look(struct lock_file *locks, const char *database_path)
{
    *locks = (struct lock_file){.descriptor = -1, .path = path_format("%s-lock", database_path)};
    if (locks->path)
        locks->descriptor = open(locks->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

void lock_file_close(struct lock_file *locks)
{
    if (locks->descriptor >= 0)
        close(locks->descriptor);
    free(locks->path);
    *locks = (struct lock_file){.descriptor = -1};
}

status lock_file_check(const struct lock_file *locks, struct error *error)
{
    if (locks->descriptor < 0 || presence_check_descriptor(locks->descriptor, locks->path, NULL) == OK)
        return OK;
    return error_set(
        error, ERROR_IO,
        "%s: was deleted or replaced while this program held locks in it, so another process may write the "
        "same run; make sure that none does, and repeat the command",
        locks->path);
}

static int set_lock(const struct lock_file *locks, int64_t number, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    int code;
    do
        code = fcntl(locks->descriptor, F_OFD_SETLK, &range);
    while (code != 0 && errno == EINTR);
    return code == 0 ? 0 : errno;
}

status lock_take(struct lock_file *locks, int64_t number, int patience, bool *taken, struct error *error)
{
    for (int waited = 0;; waited += RETRY_MS) {
        int code = set_lock(locks, number, F_WRLCK);
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
    set_lock(locks, number, F_UNLCK);
}

bool lock_is_taken(const struct lock_file *locks, int64_t number)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    return locks->descriptor >= 0 && fcntl(locks->descriptor, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}
