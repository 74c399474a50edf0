#include "core/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

#define MARK ".tmp-mtil-"

enum { DIGITS = 8, TRIES = 100, FOLDERS_OPEN = 8 };

/* --- Locks --- */

/* Returns 0 or errno. The lock belongs to the open file, so closing another descriptor of the file does not release it. */
static int lock(int file)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int code;
    do
        code = fcntl(file, F_OFD_SETLK, &range);
    while (code != 0 && errno == EINTR);
    return code == 0 ? 0 : errno;
}

/* A file between its creation and its lock looks like a leftover, and another process may remove it. */
static bool keep(int file)
{
    struct stat about;
    int code = lock(file);
    return code != EAGAIN && code != EACCES && fstat(file, &about) == 0 && about.st_nlink > 0;
}

/* --- Creation --- */

static char *new_name(const char *target)
{
    uint32_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return NULL;
    return path_format("%s" MARK "%08x", target, number);
}

static int create_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Returns the descriptor of the folder's lock. */
static int create_folder(const char *path)
{
    if (mkdir(path, 0777) != 0)
        return -1;
    char *name = path_format("%s/" TEMPORARY_LOCK, path);
    int file = create_file(name), number = errno;
    free(name);
    if (file < 0)
        rmdir(path);
    errno = number == ENOENT ? EEXIST : number; /* it was removed as a leftover; try another name */
    return file;
}

static status create(struct temporary *temporary, const char *target, int (*make)(const char *path),
                     struct error *error)
{
    *temporary = (struct temporary){.lock = -1};
    for (int i = 0; i < TRIES; i++) {
        char *path = new_name(target);
        int file = make(path), number = errno;
        if (file >= 0 && keep(file)) {
            *temporary = (struct temporary){path, file};
            return OK;
        }
        free(path);
        if (file >= 0)
            close(file);
        else if (number != EEXIST)
            return error_errno(error, number, "%s: cannot write here", target);
    }
    return error_set(error, ERROR_BUSY, "%s: cannot write here: another process removes new files", target);
}

status temporary_create_file(struct temporary *temporary, const char *target, struct error *error)
{
    return create(temporary, target, create_file, error);
}

status temporary_create_folder(struct temporary *temporary, const char *target, struct error *error)
{
    return create(temporary, target, create_folder, error);
}

/* --- Removal --- */

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind;
    bool lock_itself = place->level == 1 && strcmp(path + place->base, TEMPORARY_LOCK) == 0;
    if (place->level > 0 && !lock_itself)
        remove(path);
    return 0;
}

/* Removes the lock last; without it a partly removed folder would never be cleaned up. */
static void remove_folder(const char *path)
{
    char *name = path_format("%s/" TEMPORARY_LOCK, path);
    nftw(path, remove_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    unlink(name);
    rmdir(path);
    free(name);
}

void temporary_release(struct temporary *temporary)
{
    if (temporary->path != NULL)
        close(temporary->lock);
    free(temporary->path);
    *temporary = (struct temporary){.lock = -1};
}

void temporary_remove(struct temporary *temporary)
{
    if (temporary->path != NULL && file_is_directory(temporary->path))
        remove_folder(temporary->path);
    else if (temporary->path != NULL)
        unlink(temporary->path);
    temporary_release(temporary);
}

/* --- Leftovers --- */

static bool has_mark(const char *name)
{
    size_t size = strlen(name), end = strlen(MARK) + DIGITS;
    if (size <= end || strncmp(name + size - end, MARK, strlen(MARK)) != 0)
        return false;
    return strspn(name + size - DIGITS, "0123456789abcdef") == DIGITS;
}

/* Locks a regular file that is not locked; −1: impossible. */
static int take(const char *path)
{
    struct stat about;
    int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) && lock(file) == 0)
        return file;
    int number = errno;
    if (file >= 0)
        close(file);
    errno = number;
    return -1;
}

static void clear_file(const char *path)
{
    int file = take(path);
    if (file < 0)
        return;
    unlink(path);
    close(file);
}

/* A folder without a lock file was just created or is almost removed; it is empty then. */
static void clear_folder(const char *path)
{
    char *name = path_format("%s/" TEMPORARY_LOCK, path);
    int file = take(name), number = errno;
    if (file >= 0) {
        remove_folder(path);
        close(file);
    } else if (number == ENOENT) {
        rmdir(path);
    }
    free(name);
}

/* What others own stays: a folder of theirs may become a link while it is emptied. */
static void clear(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0 || about.st_uid != geteuid())
        return;
    if (S_ISREG(about.st_mode))
        clear_file(path);
    else if (S_ISDIR(about.st_mode))
        clear_folder(path);
}

void temporary_clear(const char *folder)
{
    DIR *stream = opendir(folder);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        if (!has_mark(entry->d_name))
            continue;
        char *path = path_format("%s/%s", folder, entry->d_name);
        clear(path);
        free(path);
    }
    if (stream != NULL)
        closedir(stream);
}

static int clear_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind;
    if (has_mark(path + place->base))
        clear(path);
    return 0;
}

void temporary_clear_below(const char *folder)
{
    nftw(folder, clear_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}
