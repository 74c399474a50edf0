/* SHA-256 (FIPS 180-4, by OpenSSL), in hexadecimal: identities of suites, test sets and files.
 *
 *     char hash[DIGEST_SIZE];
 *     digest_text(suite_text, hash);
 *     struct digest digest = digest_begin();              // or piece by piece
 *     digest_add(&digest, data, size);
 *     digest_end(&digest, hash);
 *
 *     struct file_digest whole;                           // of a file that may be large: stored, so that it is not read again
 *     TRY(file_digest_read(&whole, path, &(struct file_digest_settings){.folder = folder}, error));
 *     … whole.hash, whole.bytes …
 */
#pragma once

#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/file.h"

#define DIGEST_SIZE 65 /* 64 digits and a NUL */

struct stop;

struct digest {
    SHA256_CTX state;
};

struct digest digest_begin(void);
void digest_add(struct digest *digest, const void *data, size_t size);
void digest_end(struct digest *digest, char hash[DIGEST_SIZE]);

void digest_text(const char *text, char hash[DIGEST_SIZE]);
void digest_bytes(const void *data, size_t size, char hash[DIGEST_SIZE]);
status digest_file(const char *path, char hash[DIGEST_SIZE], struct error *error);

/* XXH3 with a seed, 64 bits: fast, detects changes, but not forgery. */
uint64_t digest_quick(const void *data, size_t size, uint64_t seed);

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
    void *context;
    const struct stop *stop; /* ends with ERROR_STOPPED */
    int64_t (*clock)(void);  /* nanoseconds since 1970, for tests; NULL: the system's */
};

#define FILE_DIGEST_LARGE ((uint64_t)16 << 20)

/* Reads the file, unless its digest is stored and size, times and inode have not changed since. A digest is stored
 * only if the times of the file are clearly older than the moment it was read, because a write within the same tick
 * of the clock would not change them. Failing to store a digest is not an error. */
status file_digest_read(struct file_digest *digest, const char *path, const struct file_digest_settings *settings,
                        struct error *error);
