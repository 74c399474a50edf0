/* Runs a fuzz target over its seeds without libFuzzer: each seed as it is, cut off everywhere, and with every byte changed;
 * of the damaged ones, one in MTIL_TEST_EVERY. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "tests/fuzz/target.h"

/* The target sees a block of its own that ends where the data ends. */
static int run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = xmalloc(size);
    memcpy(copy, data, size);
    int result = fuzz_target(copy, size);
    free(copy);
    return result;
}

static size_t test_every(void)
{
    const char *every = getenv("MTIL_TEST_EVERY");
    return every != NULL && atoi(every) > 0 ? (size_t)atoi(every) : 1;
}

static int run_damaged(struct bytes *seed)
{
    static const uint8_t changes[] = {0x01, 0x20, 0x80, 0xff};
    int failed = run_copy(seed->data, seed->size);
    for (size_t size = 0; size < seed->size; size += test_every())
        failed |= run_copy(seed->data, size);
    for (size_t i = 0; i < seed->size; i += test_every()) {
        for (size_t j = 0; j < sizeof changes; j++) {
            seed->data[i] ^= changes[j];
            failed |= run_copy(seed->data, seed->size);
            seed->data[i] ^= changes[j];
        }
    }
    return failed;
}

static int run_seed(const char *name)
{
    enum { SEED_LIMIT = 1 << 16 };
    struct bytes seed;
    struct error error;
    char *path = path_format("%s/%s", CORPUS, name);
    int failed = 1;
    if (file_read(path, SEED_LIMIT, &seed, &error) == OK) {
        failed = run_damaged(&seed);
        bytes_free(&seed);
    } else {
        printf("%s\n", error.message);
    }
    free(path);
    return failed;
}

int main(void)
{
    struct directory seeds;
    struct error error;
    if (directory_list(&seeds, CORPUS, &error) != OK) {
        printf("%s\n", error.message);
        return 1;
    }
    int failed = seeds.count == 0;
    for (size_t i = 0; i < seeds.count; i++)
        failed |= run_seed(seeds.names[i]);
    printf("%zu seeds, whole and damaged: %s\n", seeds.count, failed ? "failed" : "survived");
    directory_free(&seeds);
    return failed;
}
