/* The digest of a file's contents. That of a large file is stored (core/seen.h), so that it is not read before every
 * run.
 *
 *     struct file_digest digest;
 *     TRY(file_digest_read(&digest, path, &(struct file_digest_settings){.folder = folder}, error));
 *     … digest.hash, digest.bytes …
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/digest.h"
#include "core/stamp.h"

#define FILE_DIGEST_KIND "digest" /* of core/seen.h */

struct file_digest {
    char hash[DIGEST_SIZE];
    uint64_t bytes;
    struct file_stamp stamp; /* of the file that was read */
};

/* Optional parts may be NULL. */
struct file_digest_settings {
    const char *folder; /* of the cache, where digests are stored */
    uint64_t kept_from; /* smallest size of a file whose digest is stored, in bytes; 0: FILE_DIGEST_LARGE */
    void (*progress)(void *context, size_t done, size_t total); /* bytes, of a large file */
    bool (*stopped)(void *context);                             /* ends with ERROR_STOPPED */
    void *context;
    int64_t (*clock)(void); /* nanoseconds since 1970, for tests; NULL: the system's */
};

#define FILE_DIGEST_LARGE ((uint64_t)16 << 20)

/* Reads the file, unless its digest is stored and size, times and inode have not changed since. A digest is stored
 * only if the times of the file are clearly older than the moment it was read, because a write within the same tick
 * of the clock would not change them. Failing to store a digest is not an error. */
status file_digest_read(struct file_digest *digest, const char *path, const struct file_digest_settings *settings,
                        struct error *error);
