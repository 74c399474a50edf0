#include "core/file_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
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

status temporary_create_folder(struct temporary *temporary, const char *target, struct error *error)
{
    OWNED char *parent = path_parent(target);
    temporary_clear(parent);
    return create(temporary, target, create_folder, error);
}

/* --- Removal --- */

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    bool lock_itself = place->level == 1 && strcmp(path + place->base, TEMPORARY_LOCK) == 0;
    if (place->level > 0 && !lock_itself)
        remove(path);
    return 0;
}

/* Removes the lock last; without it a partly removed folder would never be cleaned up. */
void directory_remove(const char *path)
{
    OWNED char *name = path_format("%s/" TEMPORARY_LOCK, path);
    nftw(path, remove_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    unlink(name);
    rmdir(path);
}

/* After the file was renamed to its target. */
static void release(struct temporary *temporary)
{
    if (temporary->path != NULL)
        close(temporary->lock);
    free(temporary->path);
    *temporary = (struct temporary){.lock = -1};
}

void temporary_remove(struct temporary *temporary)
{
    if (temporary->path != NULL && file_is_directory(temporary->path))
        directory_remove(temporary->path);
    else if (temporary->path != NULL)
        unlink(temporary->path);
    release(temporary);
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
static int open_locked(const char *path)
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
    int file = open_locked(path);
    if (file < 0)
        return;
    unlink(path);
    close(file);
}

/* A folder without a lock file was just created or is almost removed; it is empty then. */
static void clear_folder(const char *path)
{
    OWNED char *name = path_format("%s/" TEMPORARY_LOCK, path);
    int file = open_locked(name), number = errno;
    if (file >= 0) {
        directory_remove(path);
        close(file);
    } else if (number == ENOENT) {
        rmdir(path);
    }
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
        OWNED char *path = path_format("%s/%s", folder, entry->d_name);
        clear(path);
    }
    if (stream != NULL)
        closedir(stream);
}

static int clear_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    if (has_mark(path + place->base))
        clear(path);
    return 0;
}

void temporary_clear_below(const char *folder)
{
    nftw(folder, clear_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* --- One file --- */

/* Writes what the stream passes on (fopencookie). It returns 0 after a failure. */
static ssize_t write_bytes(void *cookie, const char *data, size_t size)
{
    struct file_writer *writer = cookie;
    for (size_t done = 0; done < size;) {
        ssize_t part = write(writer->temporary.lock, data + done, size - done);
        if (part > 0) {
            done += (size_t)part;
        } else if (part == 0 || errno != EINTR) {
            writer->failure = part == 0 ? ENOSPC : errno;
            return 0;
        }
    }
    return (ssize_t)size;
}

status file_writer_open_one_of_many(struct file_writer *writer, const char *path, struct error *error)
{
    *writer = (struct file_writer){.temporary = {.lock = -1}};
    TRY(file_check_kind(path, error));
    writer->path = xstrdup(path);
    status result = create(&writer->temporary, path, create_file, error);
    if (result == OK)
        writer->stream = fopencookie(writer, "w", (cookie_io_functions_t){.write = write_bytes});
    if (result == OK && writer->stream == NULL)
        result = error_set(error, ERROR_MEMORY, "%s: no memory to write it", path);
    if (result != OK)
        file_writer_abandon(writer);
    return result;
}

status file_writer_open(struct file_writer *writer, const char *path, struct error *error)
{
    OWNED char *folder = path_parent(path);
    temporary_clear(folder);
    TRY(file_writer_open_one_of_many(writer, path, error));
    writer->lasting = true;
    return OK;
}

status file_writer_write(struct file_writer *writer, const void *data, size_t size, struct error *error)
{
    if (size == 0 || fwrite(data, 1, size, writer->stream) == size)
        return OK;
    error_errno(error, writer->failure, "%s: cannot write %zu bytes", writer->path, size);
    file_writer_abandon(writer);
    return ERROR_IO;
}

/* 0, or errno. */
static int sync_file(int file)
{
    int code;
    do
        code = fsync(file);
    while (code != 0 && errno == EINTR);
    return code == 0 ? 0 : errno;
}

/* Renames while the lock is still held. */
status file_writer_close(struct file_writer *writer, struct error *error)
{
    bool good = ferror(writer->stream) == 0;
    good = fclose(writer->stream) == 0 && good;
    writer->stream = NULL;
    int number = good ? 0 : writer->failure != 0 ? writer->failure : EIO;
    if (number == 0 && writer->lasting)
        number = sync_file(writer->temporary.lock);
    if (number == 0 && rename(writer->temporary.path, writer->path) != 0)
        number = errno;
    if (number != 0) {
        error_errno(error, number, "%s: cannot finish writing", writer->path);
        file_writer_abandon(writer);
        return ERROR_IO;
    }
    if (writer->lasting)
        file_sync_name(writer->path);
    release(&writer->temporary);
    file_writer_abandon(writer);
    return OK;
}

status file_sync_all(const char *path, struct error *error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || syncfs(file) != 0) {
        error_errno(error, errno, "%s: cannot sync", path);
        if (file >= 0)
            close(file);
        return ERROR_IO;
    }
    close(file);
    return OK;
}

void file_writer_abandon(struct file_writer *writer)
{
    if (writer->stream != NULL)
        fclose(writer->stream);
    temporary_remove(&writer->temporary);
    free(writer->path);
    *writer = (struct file_writer){.temporary = {.lock = -1}};
}

status file_write(const char *path, const void *data, size_t size, struct error *error)
{
    struct file_writer writer;
    TRY(file_writer_open(&writer, path, error));
    TRY(file_writer_write(&writer, data, size, error));
    return file_writer_close(&writer, error);
}

/* --- A group of files --- */

status file_group_begin(struct file_group *group, const char *folder, struct error *error)
{
    *group = (struct file_group){.folder = xstrdup(folder), .temporary = {.lock = -1}};
    TRY(directory_create(folder, error));
    OWNED char *target = path_format("%s/files", folder);
    return temporary_create_folder(&group->temporary, target, error);
}

static char *unnamed(const struct file_group *group, size_t index)
{
    return path_format("%s/%zu", group->temporary.path, index);
}

status file_group_add(struct file_group *group, const char *name, const void *data, size_t size, struct error *error)
{
    struct file_writer writer;
    GROW(group->paths, group->count);
    OWNED char *path = path_format("%s/%s", group->folder, name), *now = unnamed(group, group->count);
    status fits = file_check_kind(path, error), result = fits;
    NEXT(result, file_writer_open_one_of_many(&writer, now, error));
    NEXT(result, file_writer_write(&writer, data, size, error));
    NEXT(result, file_writer_close(&writer, error));
    if (result != OK && fits == OK)
        error_context(error, "%s", path);
    if (result == OK)
        group->paths[group->count++] = TAKE(path);
    return result;
}

static status put_in_place(const struct file_group *group, size_t index, struct error *error)
{
    const char *path = group->paths[index];
    OWNED char *now = unnamed(group, index), *folder = path_parent(path);
    TRY(directory_create(folder, error));
    if (rename(now, path) != 0)
        return error_errno(error, errno, "%s: cannot get its name; of %zu new files the last %zu have theirs", path,
                           group->count, group->count - 1 - index);
    return OK;
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
