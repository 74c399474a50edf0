/* The functions without EVP are deprecated since OpenSSL 3: they keep the state in the caller's struct and need no failure
 * path. */
#define OPENSSL_API_COMPAT 10100
#include "core/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/alloc.h"
#include "core/file.h"

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
