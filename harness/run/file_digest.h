/* The digest of a file's contents. That of a large file is kept beside the cache, so that it is read once and not before
 * every run.
 *
 *     struct file_digest digest;
 *     TRY(file_digest_read(&digest, path, &(struct file_digest_settings){.folder = folder}, error));
 *     … digest.hash, digest.bytes …
 */
#ifndef MTIL_HARNESS_RUN_FILE_DIGEST_H
#define MTIL_HARNESS_RUN_FILE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/digest.h"
#include "core/status.h"

#define FILE_DIGEST_ENDING ".digest"
enum { FILE_DIGEST_LONGEST = 8192 }; /* bytes of what is kept; its first line is the path */

/* What changes when a file does. Times in nanoseconds since 1970. */
struct file_stamp {
    uint64_t size, inode;
    int64_t modified, changed;
};
status file_stamp_read(struct file_stamp *stamp, const char *path, struct error *error);
bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b);

struct file_digest {
    char hash[DIGEST_SIZE];
    uint64_t bytes;
    struct file_stamp stamp; /* of the file that was read */
};

/* What is NULL is done without. */
struct file_digest_settings {
    const char *folder;                                         /* where digests are kept */
    uint64_t kept_from;                                         /* bytes from which on they are; 0: FILE_DIGEST_LARGE */
    void (*progress)(void *context, size_t done, size_t total); /* bytes, of a large file */
    bool (*stopped)(void *context);                             /* ERROR_STOPPED then */
    void *context;
    int64_t (*clock)(void); /* nanoseconds since 1970, for tests; NULL: the system's */
};

#define FILE_DIGEST_LARGE ((uint64_t)16 << 20)

/* Reads the file, unless its digest was kept and neither size, times nor inode have changed since. A digest is kept only
 * of a file whose times are clearly older than the moment it was read: what is written within the same tick of the clock
 * would leave them as they are. That nothing can be kept is no failure. */
status file_digest_read(struct file_digest *digest, const char *path, const struct file_digest_settings *settings,
                        struct error *error);

#endif
