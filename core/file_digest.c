#include "core/file_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/seen.h"

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
    struct file_stamp after = file_stamp_of(&found);
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
        *stamp = file_stamp_of(&found);
    else
        close(*descriptor);
    return result;
}

status file_digest_read(struct file_digest *digest, const char *path, const struct file_digest_settings *settings,
                        struct error *error)
{
    int descriptor;
    struct seen *seen;
    *digest = (struct file_digest){0};
    TRY(open_file(path, &descriptor, &digest->stamp, error));
    char *full = realpath(path, NULL);
    uint64_t kept_from = settings->kept_from > 0 ? settings->kept_from : FILE_DIGEST_LARGE;
    bool kept = full != NULL && digest->stamp.size >= kept_from;
    const struct seen_place place = {.kind = FILE_DIGEST_KIND, .root = full, .version = "sha256"};
    (void)seen_open(&seen, kept ? settings->folder : NULL, &place, NULL);
    status result = OK;
    if (seen_find(seen, "", &digest->stamp, digest->hash, sizeof digest->hash)) {
        digest->bytes = digest->stamp.size;
    } else {
        bool settled = file_stamp_is_settled(&digest->stamp, (settings->clock != NULL ? settings->clock : clock_now)());
        result = read_opened(descriptor, path, digest, settings, error);
        if (result == OK && settled)
            (void)seen_write(seen, &(struct seen_record){"", digest->stamp, digest->hash, sizeof digest->hash}, 1,
                             NULL);
    }
    seen_close(seen);
    close(descriptor);
    free(full);
    return result;
}
