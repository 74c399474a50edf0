/* SHA-256 (FIPS 180-4), for comparing images with recorded hashes. */
#ifndef MTIL_TESTS_REPLAY_SHA256_H
#define MTIL_TESTS_REPLAY_SHA256_H

#include <stddef.h>

/* The hash of size bytes in 64 hexadecimal digits and a NUL. */
void sha256_hex(const void *data, size_t size, char hex[65]);

#endif
