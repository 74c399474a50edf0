/* SHA-256 (FIPS 180-4, by OpenSSL), in hexadecimal: identities of suites, test sets and files.
 *
 *     char hash[DIGEST_SIZE];
 *     digest_text(suite_text, hash);
 *     struct digest digest = digest_begin();              // or piece by piece
 *     digest_add(&digest, data, size);
 *     digest_end(&digest, hash);
 */
#pragma once

#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define DIGEST_SIZE 65 /* 64 digits and a NUL */

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
