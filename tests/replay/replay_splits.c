/* splits.json: permutations of n items under a seed, by some of their values and their digests. The generator's first numbers,
 * which lie there too, are what the permutations begin with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "datasets/split/split.h"
#include "tests/replay/replay_data.h"

static bool same_hash(const uint32_t *order, size_t count, const json_t *expected)
{
    enum { DIGITS = 11 };
    char *text = xmalloc(count * DIGITS + 1), hex[DIGEST_SIZE];
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += (size_t)sprintf(text + size, "%s%u", i > 0 ? "," : "", order[i]);
    digest_bytes(text, size, hex);
    free(text);
    return json_is_string(expected) && strcmp(hex, json_string_value(expected)) == 0;
}

static bool same_values(const uint32_t *order, size_t count, const json_t *expected)
{
    bool same = json_array_size(expected) <= count;
    for (size_t i = 0; same && i < json_array_size(expected); i++)
        same = order[i] == json_integer_value(json_array_get(expected, i));
    return same;
}

/* Seeds of 64 bits come as strings (pyjson_read); negative ones as torch takes them. */
static uint64_t read_seed(const json_t *value)
{
    return json_is_string(value) ? strtoull(json_string_value(value), NULL, 10) : (uint64_t)json_integer_value(value);
}

/* The whole of a case; what it does not say is not compared. */
static bool case_holds(const json_t *expected, const uint32_t *order, size_t n, size_t train)
{
    const json_t *train_size = json_object_get(expected, "train"), *test_size = json_object_get(expected, "test"),
                 *last = json_object_get(expected, "last20"), *test_hash = json_object_get(expected, "test_sha256"),
                 *hash = json_object_get(expected, "perm_sha256");
    size_t last_count = json_array_size(last);
    return (train_size == NULL || train == (size_t)json_integer_value(train_size)) &&
           (test_size == NULL || n - train == (size_t)json_integer_value(test_size)) &&
           same_values(order, n, json_object_get(expected, "first20")) && last_count <= n &&
           same_values(order + n - last_count, last_count, last) &&
           (test_hash == NULL || same_hash(order + train, n - train, test_hash)) &&
           (hash == NULL || same_hash(order, n, hash));
}

static void check_case(struct report *report, const json_t *expected)
{
    json_int_t n = pyjson_integer(expected, "n");
    uint64_t seed = read_seed(json_object_get(expected, "seed"));
    if (!json_is_integer(json_object_get(expected, "n")) || n < 0 || (uint64_t)n >= SPLIT_ITEMS_MOST) {
        skip_item("splits", "a split of %lld items: below %llu are expected", (long long)n,
                  (unsigned long long)SPLIT_ITEMS_MOST);
        return;
    }
    uint32_t *order = xmalloc(((size_t)n + 1) * sizeof *order);
    split_permutation(seed, (size_t)n, order);
    report_exact(report, "splits", case_holds(expected, order, (size_t)n, split_train_count((size_t)n)),
                 "n = %lld, seed %llu: another permutation", (long long)n, (unsigned long long)seed);
    free(order);
}

void part_splits(struct report *report, const char *folder)
{
    json_t *splits = part_json(report, "splits", folder, "splits.json"), *cases = json_object_get(splits, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(report, json_array_get(cases, i));
    json_decref(splits);
}
