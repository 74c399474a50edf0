#include "harness/run/file_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"

#define SECOND 1000000000

/* --- Stamps --- */

static struct file_stamp stamp_of(const struct stat *found)
{
    return (struct file_stamp){.size = (uint64_t)found->st_size,
                               .inode = found->st_ino,
                               .modified = (int64_t)found->st_mtim.tv_sec * SECOND + found->st_mtim.tv_nsec,
                               .changed = (int64_t)found->st_ctim.tv_sec * SECOND + found->st_ctim.tv_nsec};
}

status file_stamp_read(struct file_stamp *stamp, const char *path, struct error *error)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return error_errno(error, errno, "%s: cannot read its size and times", path);
    *stamp = stamp_of(&found);
    return OK;
}

bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->size == b->size && a->inode == b->inode && a->modified == b->modified && a->changed == b->changed;
}

static int64_t system_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/* File systems store times with a resolution of two seconds (FAT) or better. */
static bool is_settled(const struct file_stamp *stamp, int64_t now)
{
    const int64_t tick = 2 * (int64_t)SECOND;
    return llabs(now - stamp->modified) > tick && llabs(now - stamp->changed) > tick;
}

/* --- Stored digests: path, stamp and digest, and a digest of these lines --- */

static char *kept_path(const char *folder, const char *file)
{
    char hash[DIGEST_SIZE];
    const char *slash = strrchr(file, '/');
    digest_text(file, hash);
    return path_format("%s/%.100s-%.16s" FILE_DIGEST_ENDING, folder, slash != NULL ? slash + 1 : file, hash);
}

static char *describe(const char *file, const struct file_digest *digest)
{
    const struct file_stamp *stamp = &digest->stamp;
    char hash[DIGEST_SIZE];
    char *lines = path_format("%s\n%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 "\n%s\n", file, stamp->size,
                              stamp->inode, stamp->modified, stamp->changed, digest->hash);
    if (lines == NULL)
        return NULL;
    digest_text(lines, hash);
    char *whole = path_format("%s%s\n", lines, hash);
    free(lines);
    return whole;
}

/* Whether the stored text is exactly what would be written for this file with the digest it contains. */
static bool recall(const char *path, const char *file, struct file_digest *digest)
{
    enum { LAST_LINES = 2 * DIGEST_SIZE };
    struct bytes bytes;
    if (!file_exists(path) || file_read(path, FILE_DIGEST_LONGEST, &bytes, NULL) != OK)
        return false;
    bool known = bytes.size >= LAST_LINES;
    if (known) {
        memcpy(digest->hash, bytes.data + bytes.size - LAST_LINES, DIGEST_SIZE - 1);
        digest->hash[DIGEST_SIZE - 1] = 0;
        char *expected = describe(file, digest);
        known = expected != NULL && strcmp(expected, (const char *)bytes.data) == 0;
        free(expected);
    }
    bytes_free(&bytes);
    return known;
}

static void keep(const char *folder, const char *path, const char *file, const struct file_digest *digest)
{
    char *lines = describe(file, digest);
    if (lines != NULL && directory_create(folder, NULL) == OK)
        (void)file_write(path, lines, strlen(lines), NULL);
    free(lines);
}

/* --- Reading --- */

static status read_all(int descriptor, const char *path, struct file_digest *digest,
                       const struct file_digest_settings *settings, struct error *error)
{
    enum { BLOCK = 1 << 20 };
    struct digest running = digest_begin();
    uint8_t *block = xmalloc(BLOCK);
    status result = OK;
    digest->bytes = 0;
    for (ssize_t size = 1; result == OK && size > 0;) {
        size = read(descriptor, block, BLOCK);
        if (size < 0 && errno == EINTR)
            size = 1;
        else if (size < 0)
            result = error_errno(error, errno, "%s: cannot be read", path);
        else {
            digest_add(&running, block, (size_t)size);
            digest->bytes += (uint64_t)size;
        }
        if (result == OK && settings->progress != NULL && digest->stamp.size >= FILE_DIGEST_LARGE)
            settings->progress(settings->context, (size_t)digest->bytes, (size_t)digest->stamp.size);
        if (result == OK && settings->stopped != NULL && settings->stopped(settings->context))
            result = error_set(error, ERROR_STOPPED, "stopped while %s was read", path);
    }
    digest_end(&running, digest->hash);
    free(block);
    return result;
}

static status read_opened(int descriptor, const char *path, struct file_digest *digest,
                          const struct file_digest_settings *settings, struct error *error)
{
    struct stat found;
    TRY(read_all(descriptor, path, digest, settings, error));
    if (fstat(descriptor, &found) != 0)
        return error_errno(error, errno, "%s: cannot read its size and times", path);
    struct file_stamp after = stamp_of(&found);
    if (!file_stamp_same(&after, &digest->stamp))
        return error_set(error, ERROR_IO, "%s: changed while it was read; start again", path);
    return OK;
}

static status open_file(const char *path, int *descriptor, struct file_stamp *stamp, struct error *error)
{
    struct stat found;
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a pipe without a writer */
    if (*descriptor < 0)
        return error_errno(error, errno, "%s: cannot be opened", path);
    status result =
        fstat(*descriptor, &found) == 0 ? OK : error_errno(error, errno, "%s: cannot read its size and times", path);
    if (result == OK && !S_ISREG(found.st_mode))
        result = error_set(error, ERROR_FORMAT, "%s: expected a file", path);
    if (result == OK)
        *stamp = stamp_of(&found);
    else
        close(*descriptor);
    return result;
}

status file_digest_read(struct file_digest *digest, const char *path, const struct file_digest_settings *settings,
                        struct error *error)
{
    int descriptor;
    *digest = (struct file_digest){0};
    TRY(open_file(path, &descriptor, &digest->stamp, error));
    uint64_t kept_from = settings->kept_from > 0 ? settings->kept_from : FILE_DIGEST_LARGE;
    char *full = realpath(path, NULL), *kept = NULL;
    if (settings->folder != NULL && full != NULL && digest->stamp.size >= kept_from)
        kept = kept_path(settings->folder, full);
    status result = OK;
    if (kept != NULL && recall(kept, full, digest)) {
        digest->bytes = digest->stamp.size;
    } else {
        bool settled = is_settled(&digest->stamp, (settings->clock != NULL ? settings->clock : system_clock)());
        result = read_opened(descriptor, path, digest, settings, error);
        if (result == OK && kept != NULL && settled)
            keep(settings->folder, kept, full, digest);
    }
    close(descriptor);
    free(full);
    free(kept);
    return result;
}
