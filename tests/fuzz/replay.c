/* Runs a fuzz target over its seeds without libFuzzer: each seed as it is, cut off everywhere, and with every byte changed;
 * of the damaged ones, one in MTIL_TEST_EVERY. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "tests/fuzz/target.h"
#include "tests/test.h"

/* The target sees a block of its own that ends where the data ends. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = xmalloc(size);
    memcpy(copy, data, size);
    assert_int_equal(fuzz_target(copy, size), 0);
    free(copy);
}

static void run_damaged(struct bytes *seed)
{
    static const uint8_t changes[] = {0x01, 0x20, 0x80, 0xff};
    run_copy(seed->data, seed->size);
    for (size_t size = 0; size < seed->size; size += test_every())
        run_copy(seed->data, size);
    for (size_t i = 0; i < seed->size; i += test_every()) {
        for (size_t j = 0; j < sizeof changes; j++) {
            seed->data[i] ^= changes[j];
            run_copy(seed->data, seed->size);
            seed->data[i] ^= changes[j];
        }
    }
}

TEST(seeds_are_survived_whole_and_damaged)
{
    enum { SEED_LIMIT = 1 << 16 };
    struct directory seeds;
    assert_ok(directory_list(&seeds, CORPUS, &error));
    assert_true(seeds.count > 0);
    for (size_t i = 0; i < seeds.count; i++) {
        struct bytes seed;
        char *path = path_format("%s/%s", CORPUS, seeds.names[i]);
        assert_ok(file_read_any(path, SEED_LIMIT, &seed, &error));
        run_damaged(&seed);
        bytes_free(&seed);
        free(path);
    }
    directory_free(&seeds);
}
