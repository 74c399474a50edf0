/* The functions without EVP are deprecated since OpenSSL 3: they keep the state in the caller's struct and need no failure
 * path. */
#define OPENSSL_API_COMPAT 10100
#include "core/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/seen.h"

enum { PART = 1 << 20 }; /* bytes of a file read at a time */

struct digest digest_begin(void)
{
    struct digest digest;
    SHA256_Init(&digest.state);
    return digest;
}

void digest_add(struct digest *digest, const void *data, size_t size)
{
    SHA256_Update(&digest->state, data, size);
}

void digest_end(struct digest *digest, char hash[DIGEST_SIZE])
{
    uint8_t bytes[SHA256_DIGEST_LENGTH];
    SHA256_Final(bytes, &digest->state);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(hash + 2 * i, 3, "%02x", bytes[i]);
}

void digest_bytes(const void *data, size_t size, char hash[DIGEST_SIZE])
{
    struct digest digest = digest_begin();
    digest_add(&digest, data, size);
    digest_end(&digest, hash);
}

static status digest_parts(struct digest *digest, int descriptor, const char *path, uint64_t size, void *part,
                           struct error *error)
{
    for (uint64_t done = 0; done < size; done += PART) {
        size_t count = size - done < PART ? (size_t)(size - done) : PART;
        TRY(file_read_at(descriptor, path, part, count, done, error));
        digest_add(digest, part, count);
    }
    return OK;
}

status digest_file(const char *path, char hash[DIGEST_SIZE], struct error *error)
{
    int descriptor;
    uint64_t size;
    TRY(file_open(path, &descriptor, &size, error));
    struct digest digest = digest_begin();
    void *part = xmalloc(PART);
    status result = digest_parts(&digest, descriptor, path, size, part, error);
    digest_end(&digest, hash);
    free(part);
    close(descriptor);
    return result;
}

void digest_text(const char *text, char hash[DIGEST_SIZE])
{
    digest_bytes(text, strlen(text), hash);
}

uint64_t digest_quick(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

/* --- Files whose digest is stored --- */

static status read_all(int descriptor, const char *path, struct file_digest *digest,
                       const struct file_digest_settings *settings, struct error *error)
{
    struct digest running = digest_begin();
    OWNED uint8_t *block = xmalloc(PART);
    status result = OK;
    digest->bytes = 0;
    for (ssize_t size = 1; result == OK && size > 0;) {
        size = read(descriptor, block, PART);
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
    OWNED char *full = realpath(path, NULL);
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
    return result;
}
