/* The functions without EVP are deprecated since OpenSSL 3: they keep the state in the caller's struct and need no failure
 * path. */
#define OPENSSL_API_COMPAT 10100
#include "core/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/seen.h"
#include "core/threads.h"

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

status digest_file(const char *path, char hash[DIGEST_SIZE], struct error *error)
{
    struct file_digest digest;
    TRY(file_digest_read(&digest, path, &(struct file_digest_settings){0}, error));
    memcpy(hash, digest.hash, DIGEST_SIZE);
    return OK;
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
    for (ssize_t size = 1; size != 0;) {
        size = read(descriptor, block, PART);
        if (size < 0 && errno != EINTR)
            return error_errno(error, errno, "%s: cannot be read", path);
        if (size > 0) {
            digest_add(&running, block, (size_t)size);
            digest->bytes += (uint64_t)size;
        }
        if (settings->progress != NULL && digest->stamp.size >= FILE_DIGEST_LARGE)
            settings->progress(settings->context, (size_t)digest->bytes, (size_t)digest->stamp.size);
        if (stop_requested(settings->stop))
            return error_set(error, ERROR_STOPPED, "stopped while %s was read", path);
    }
    digest_end(&running, digest->hash);
    return OK;
}

static status read_stamp(int descriptor, const char *path, struct file_stamp *stamp, struct error *error)
{
    struct stat found;
    if (fstat(descriptor, &found) != 0)
        return error_errno(error, errno, "%s: cannot read its size and times", path);
    *stamp = file_stamp_of(&found);
    return OK;
}

static status read_opened(int descriptor, const char *path, struct file_digest *digest,
                          const struct file_digest_settings *settings, struct error *error)
{
    struct file_stamp after;
    TRY(read_all(descriptor, path, digest, settings, error));
    TRY(read_stamp(descriptor, path, &after, error));
    if (!file_stamp_same(&after, &digest->stamp))
        return error_set(error, ERROR_IO, "%s: changed while it was read; start again", path);
    return OK;
}

/* Of the file that is open, unless its digest is stored. */
static status find_or_read(int descriptor, const char *path, struct file_digest *digest,
                           const struct file_digest_settings *settings, struct error *error)
{
    struct seen *seen;
    TRY(read_stamp(descriptor, path, &digest->stamp, error));
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
    return result;
}

status file_digest_read(struct file_digest *digest, const char *path, const struct file_digest_settings *settings,
                        struct error *error)
{
    int descriptor;
    *digest = (struct file_digest){0};
    TRY(file_open(path, &descriptor, &(uint64_t){0}, error));
    status result = find_or_read(descriptor, path, digest, settings, error);
    close(descriptor);
    return result;
}
