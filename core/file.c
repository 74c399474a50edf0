#include "core/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/text.h"

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFLNK:
        return "a symbolic link; remove it";
    case S_IFIFO:
        return "a named pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
    case S_IFBLK:
        return "a device";
    default:
        return "something that is not a regular file";
    }
}

static status refuse_kind(const char *path, mode_t mode, struct error *error)
{
    return error_set(error, ERROR_IO, "%s: expected a file, found %s", path, kind_of(mode));
}

status file_check_kind(const char *path, struct error *error)
{
    struct stat information;
    bool other = stat(path, &information) == 0 && !S_ISREG(information.st_mode);
    return other ? refuse_kind(path, information.st_mode, error) : OK;
}

/* Without O_NONBLOCK opening a pipe without a writer would block; it has no effect on regular files. */
status file_open(const char *path, int *descriptor, uint64_t *size, struct error *error)
{
    struct stat information;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        int number = errno;
        if (number == ENXIO && stat(path, &information) == 0) /* a socket cannot even be opened */
            return refuse_kind(path, information.st_mode, error);
        return error_errno(error, number, "%s: cannot open for reading", path);
    }
    if (fstat(file, &information) != 0) {
        int number = errno;
        close(file);
        return error_errno(error, number, "%s: cannot read its size", path);
    }
    if (!S_ISREG(information.st_mode)) {
        close(file);
        return refuse_kind(path, information.st_mode, error);
    }
    *descriptor = file;
    *size = (uint64_t)information.st_size;
    return OK;
}

status file_read_at(int descriptor, const char *path, void *target, size_t size, uint64_t offset, struct error *error)
{
    for (size_t got = 0; got < size;) {
        ssize_t part = pread(descriptor, (uint8_t *)target + got, size - got, (off_t)(offset + got));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return error_errno(error, errno, "%s: cannot read %zu bytes", path, size);
        if (part == 0)
            return error_set(error, ERROR_FORMAT, "%s: ends early: expected %zu bytes from byte %llu on, found %zu",
                             path, size, (unsigned long long)offset, got);
        got += (size_t)part;
    }
    return OK;
}

/* --- What is not the file that was meant --- */

static bool begins(const struct bytes *bytes, const char *word)
{
    size_t length = strlen(word);
    return bytes->size >= length && strncasecmp((const char *)bytes->data, word, length) == 0;
}

static const char *find_substitute(struct bytes beginning, bool unpacks)
{
    if (begins(&beginning, "version https://git-lfs"))
        return "a Git LFS pointer to it; run `git lfs pull` in its repository";
    if (!unpacks && begins(&beginning, "\x1f\x8b"))
        return "gzip data; unpack it with gunzip";
    size_t mark = begins(&beginning, "\xef\xbb\xbf") ? 3 : 0;
    beginning.data += mark;
    beginning.size -= mark;
    while (beginning.size > 0 && isspace(*beginning.data)) {
        beginning.data++;
        beginning.size--;
    }
    bool refusal = begins(&beginning, "<?xml") && memmem(beginning.data, beginning.size, "<Error>", 7) != NULL;
    if (begins(&beginning, "<!doctype html") || begins(&beginning, "<html") || refusal)
        return "a web page or a server's answer, saved in its place; download the file itself";
    return NULL;
}

static status check_beginning(const char *path, struct bytes beginning, bool unpacks, struct error *error)
{
    const char *found = find_substitute(beginning, unpacks);
    return found == NULL ? OK : error_set(error, ERROR_FORMAT, "%s: expected a file's contents, found %s", path, found);
}

status file_check_meant(const char *path, bool unpacks, struct error *error)
{
    uint8_t beginning[256];
    int file;
    uint64_t size;
    if (file_open(path, &file, &size, NULL) != OK)
        return OK;
    ssize_t got = pread(file, beginning, sizeof beginning, 0);
    close(file);
    return got > 0 ? check_beginning(path, (struct bytes){beginning, (size_t)got}, unpacks, error) : OK;
}

status file_read(const char *path, size_t limit, struct bytes *bytes, struct error *error)
{
    status result = file_read_any(path, limit, bytes, error);
    if (result == ERROR_FORMAT) /* it is too large */
        TRY(file_check_meant(path, false, error));
    NEXT(result, check_beginning(path, *bytes, false, error));
    if (result != OK)
        bytes_free(bytes);
    return result;
}

status file_read_any(const char *path, size_t limit, struct bytes *bytes, struct error *error)
{
    int file;
    uint64_t size;
    *bytes = (struct bytes){0};
    TRY(file_open(path, &file, &size, error));
    status result = OK;
    uint8_t *data = NULL;
    if (size > limit)
        result = error_set(error, ERROR_FORMAT, "%s: has %llu bytes, at most %zu are expected here", path,
                           (unsigned long long)size, limit);
    else if (size == SIZE_MAX || (data = malloc((size_t)size + 1)) == NULL)
        result = error_set(error, ERROR_MEMORY, "%s: no memory for its %llu bytes", path, (unsigned long long)size);
    else
        result = file_read_at(file, path, data, (size_t)size, 0, error);
    close(file);
    if (result != OK) {
        free(data);
        return result;
    }
    data[size] = 0;
    *bytes = (struct bytes){data, (size_t)size};
    return OK;
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

/* --- Writing --- */

status file_check_same(const char *path, struct stat *was, struct error *error)
{
    struct stat now;
    bool known = was->st_ino != 0, found = stat(path, &now) == 0;
    if (!found && errno != ENOENT && errno != ENOTDIR)
        return error_errno(error, errno, "%s: can no longer be reached", path);
    if (known && (!found || now.st_dev != was->st_dev || now.st_ino != was->st_ino))
        return error_set(error, ERROR_IO,
                         "%s: was %s while this program used it; put back what was there, make sure that no other "
                         "program writes the same, and give the same command again",
                         path, found ? "replaced by another file" : "deleted or renamed");
    if (found)
        *was = now;
    return OK;
}

status file_open_own(int folder, const char *path, int flags, int *descriptor, struct error *error)
{
    struct stat about;
    const char *slash = strrchr(path, '/');
    *descriptor = openat(folder, folder >= 0 && slash != NULL ? slash + 1 : path,
                         flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (*descriptor < 0)
        return errno == ELOOP ? refuse_kind(path, S_IFLNK, error)
                              : error_errno(error, errno, "%s: cannot be opened for writing", path);
    if (fstat(*descriptor, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink <= 1)
        return OK;
    close(*descriptor);
    *descriptor = -1;
    return S_ISREG(about.st_mode)
               ? error_set(error, ERROR_IO, "%s: is a second name of another file (a hard link); remove it", path)
               : refuse_kind(path, about.st_mode, error);
}

char *path_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? xstrdup(".") : xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

char *path_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return path_format("%.*s%s", (int)(slash != NULL ? slash + 1 - path : 0), path, name);
}

char *path_absolute(const char *path)
{
    OWNED char *here = path[0] != '/' ? getcwd(NULL, 0) : NULL;
    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    return here != NULL ? path_format("%s/%s", here, path) : xstrdup(path);
}

char *path_stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
    return xstrndup(name, dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name));
}

/* A file system that does not support this is no reason to fail. */
void file_sync_name(const char *path)
{
    OWNED char *parent = path_parent(path);
    int folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
}

bool path_climbs(const char *path)
{
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0))
            return true;
    }
    return false;
}

static bool is_leftover(const char *name, int size)
{
    static const char names[] = "/__MACOSX/Thumbs.db/ehthumbs.db/desktop.ini/Icon\r/$RECYCLE.BIN/System Volume "
                                "Information/lost+found/@eaDir/@tmp/"
                                "@Recycle/@Recently-Snapshot/#recycle/#snapshot/Network Trash Folder/Temporary Items/";
    char word[64];
    if (name[0] == '.')
        return size > 2 || (size == 2 && name[1] != '.');
    snprintf(word, sizeof word, "/%.*s/", size, name);
    return strcasestr(names, word) != NULL || memmem(name, (size_t)size, "@Syno", 5) != NULL; /* a.jpg@SynoEAStream */
}

bool path_is_leftover(const char *path)
{
    for (size_t size; *path != 0; path += size + (path[size] == '/')) {
        size = strcspn(path, "/");
        if (size > 0 && is_leftover(path, (int)size))
            return true;
    }
    return false;
}

/* There can be no file of a name that is too long: texts are looked for as files, too. */
static bool is_absent(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ENAMETOOLONG;
}

bool file_exists(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0 || !is_absent(errno);
}

status file_find_directory(bool *directory, const char *path, struct error *error)
{
    struct stat information;
    bool found = stat(path, &information) == 0;
    *directory = found && S_ISDIR(information.st_mode);
    return found || is_absent(errno) || errno == ELOOP ? OK
                                                       : error_errno(error, errno, "%s: cannot be looked at", path);
}

bool file_is_directory(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0 && S_ISDIR(information.st_mode);
}

status file_size(const char *path, uint64_t *size, struct error *error)
{
    struct stat information;
    if (stat(path, &information) != 0)
        return error_errno(error, errno, "%s: cannot read its size", path);
    *size = (uint64_t)information.st_size;
    return OK;
}

status directory_create(const char *path, struct error *error)
{
    char *partial = xstrdup(path);
    for (char *p = partial + 1;; p++) {
        if (*p != '/' && *p != 0)
            continue;
        char end = *p;
        *p = 0;
        int number = mkdir(partial, 0777) == 0 ? 0 : errno;
        if (number == 0)
            file_sync_name(partial);
        if (number != 0 && !file_is_directory(partial)) {
            error_errno(error, number, "%s: cannot create this folder", partial);
            free(partial);
            return ERROR_IO;
        }
        *p = end;
        if (end == 0)
            break;
    }
    free(partial);
    return OK;
}

static status read_names(DIR *stream, struct directory *directory, const char *path, struct error *error)
{
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(stream);
        if (entry == NULL)
            return errno == 0 ? OK : error_errno(error, errno, "%s: cannot list this folder", path);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        GROW(directory->names, directory->count);
        char *name = xstrdup(entry->d_name);
        directory->names[directory->count++] = name;
    }
}

status directory_list(struct directory *directory, const char *path, struct error *error)
{
    *directory = (struct directory){0};
    DIR *stream = opendir(path);
    if (stream == NULL)
        return error_errno(error, errno, "%s: cannot list this folder", path);
    status result = read_names(stream, directory, path, error);
    closedir(stream);
    if (result != OK) {
        directory_free(directory);
        return result;
    }
    if (directory->count > 1)
        qsort(directory->names, directory->count, sizeof *directory->names, array_by_text);
    return OK;
}

void directory_free(struct directory *directory)
{
    for (size_t i = 0; i < directory->count; i++)
        free(directory->names[i]);
    free(directory->names);
    *directory = (struct directory){0};
}

char *path_format(const char *format, ...)
{
    struct text path = {0};
    va_list arguments;
    va_start(arguments, format);
    text_add_list(&path, format, arguments);
    va_end(arguments);
    return path.data;
}

/* --- Stamps --- */

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

const char *embedded_text(const struct embedded_file *table, const char *name)
{
    while (strcmp(table->name, name) != 0)
        table++;
    return (const char *)table->data;
}
