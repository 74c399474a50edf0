#include "core/digest.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file.h"

enum { PART = 1 << 20 }; /* bytes of a file read at a time */

/* Fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void expand(const uint8_t block[64], uint32_t schedule[64])
{
    for (size_t i = 0; i < 16; i++)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t far = schedule[i - 15], near = schedule[i - 2];
        schedule[i] = schedule[i - 16] + (rotate(far, 7) ^ rotate(far, 18) ^ far >> 3) + schedule[i - 7] +
                      (rotate(near, 17) ^ rotate(near, 19) ^ near >> 10);
    }
}

/* Eight rounds, after which every variable is back in its own place. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                                               \
    do {                                                                                                               \
        uint32_t first_ =                                                                                              \
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + constants[i] + schedule[i];     \
        d += first_;                                                                                                   \
        h = first_ + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));                       \
    } while (0)

static void absorb(uint32_t state[8], const uint8_t block[64])
{
    uint32_t schedule[64];
    expand(block, schedule);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7];
    for (size_t i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t after[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++)
        state[i] += after[i];
}

struct digest digest_begin(void)
{
    return (struct digest){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void digest_add(struct digest *digest, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    while (size > 0) {
        size_t filled = digest->size % 64, part = size < 64 - filled ? size : 64 - filled;
        memcpy(digest->block + filled, bytes, part);
        digest->size += part;
        bytes += part;
        size -= part;
        if (filled + part == 64)
            absorb(digest->state, digest->block);
    }
}

void digest_end(struct digest *digest, char hash[DIGEST_SIZE])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = digest->size * 8;
    digest_add(digest, padding, 1 + (119 - digest->size % 64) % 64);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    digest_add(digest, length, sizeof length);
    for (size_t i = 0; i < DIGEST_SIZE - 1; i++)
        hash[i] = "0123456789abcdef"[digest->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hash[DIGEST_SIZE - 1] = '\0';
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
    void *part = malloc(PART);
    status result = part != NULL ? digest_parts(&digest, descriptor, path, size, part, error)
                                 : error_set(error, ERROR_MEMORY, "%s: no memory to read it", path);
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
