/* Event files, byte by byte: lengths, checksums, the fields of the messages; and the files of runs. */
#include "tests/results/check.h"

#include <glob.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/file.h"
#include "results/export/tensorboard.h"
#include "tests/results/sample.h"

/* --- Reading --- */

/* CRC-32C by its definition (RFC 3720, B.4), in TFRecord's masked form. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bool odd = ((crc ^ bytes[bit / 8] >> bit % 8) & 1) != 0;
        crc = crc >> 1 ^ (odd ? 0x82f63b78 : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static uint64_t little(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

struct record {
    const uint8_t *data;
    size_t size;
};

/* The record at *at, with both checksums right; *at moves behind it. */
static struct record next_record(const struct bytes *file, size_t *at)
{
    const uint8_t *head = file->data + *at;
    assert_true(file->size - *at >= 16);
    uint64_t size = little(head, 8);
    assert_int_equal(little(head + 8, 4), checksum(head, 8));
    assert_true(size <= file->size - *at - 16);
    assert_int_equal(little(head + 12 + size, 4), checksum(head + 12, size));
    *at += size + 16;
    return (struct record){head + 12, size};
}

static bool holds(const struct record *record, const void *bytes, size_t size)
{
    return memmem(record->data, record->size, bytes, size) != NULL;
}

/* The number behind a tag, or false: field 1 of a value is its tag, field 2 its float. */
static bool read_scalar(const struct record *record, const char *tag, float *value)
{
    struct text pattern = {0};
    text_add(&pattern, "\x0a%c%s\x15", (int)strlen(tag), tag);
    const uint8_t *found = memmem(record->data, record->size, pattern.data, pattern.size);
    bool is_there = found != NULL;
    if (is_there)
        memcpy(value, found + pattern.size, sizeof *value);
    text_free(&pattern);
    return is_there;
}

static size_t count_scalars(const struct bytes *file, const char *tag, float *last)
{
    size_t count = 0;
    for (size_t at = 0; at < file->size;) {
        struct record record = next_record(file, &at);
        count += read_scalar(&record, tag, last);
    }
    return count;
}

/* --- Tests --- */

static void the_readers_checksum_is_the_standards(void **state)
{
    (void)state;
    assert_int_equal(checksum((const uint8_t *)"123456789", 9),
                     (uint32_t)(0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8);
}

static int create(void **state)
{
    struct store *store;
    *state = sample_path("results.sqlite");
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= 3; seed++)
        sample_finished_run(store, seed);
    store_close(store);
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

static size_t count_files(const char *folder, const char *pattern)
{
    glob_t found;
    char *whole = path_format("%s/%s", folder, pattern);
    size_t count = glob(whole, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    free(whole);
    return count;
}

static void read_file_of(const char *folder, const char *pattern, struct bytes *bytes)
{
    glob_t found;
    char *whole = path_format("%s/%s", folder, pattern);
    assert_int_equal(glob(whole, 0, NULL, &found), 0);
    assert_ok(file_read(found.gl_pathv[0], FILE_LIMIT, bytes, &error));
    globfree(&found);
    free(whole);
}

static void a_run_is_all_in_its_file(void **state)
{
    struct store *store;
    struct tensorboard_counts counts;
    struct bytes file;
    float value = -1;
    char *folder = path_format("%s-logs", (char *)*state);
    assert_ok(store_open(&store, *state, STORE_READ, &error));
    for (int again = 0; again < 2; again++) {
        assert_ok(tensorboard_export(store, &(struct query_filter){0}, folder, &counts, &error));
        assert_int_equal(counts.runs, 3);
        assert_int_equal(count_files(folder, "sample/adapters-most_used-*/seed*/events.out.tfevents.*.mtil"), 3);
    }
    read_file_of(folder, "sample/*/seed2/*", &file);
    assert_int_equal(count_scalars(&file, "training/loss", &value), SAMPLE_TASKS * SAMPLE_ITERATIONS);
    assert_int_equal(count_scalars(&file, "training/learning_rate", &value), SAMPLE_TASKS * SAMPLE_ITERATIONS);
    assert_true(value == 1e-3f);
    assert_int_equal(count_scalars(&file, "accuracy/digits", &value), SAMPLE_TASKS + 1);
    assert_true(value == 100.0f * (float)sample_correct(2, SAMPLE_TASKS - 1, 1) / SAMPLE_IMAGES);
    assert_int_equal(count_scalars(&file, "metrics/mean_accuracy", &value), SAMPLE_TASKS + 1);
    float mean = value;
    assert_int_equal(count_scalars(&file, "metrics/last", &value), 1);
    assert_true(value == mean);
    assert_int_equal(count_scalars(&file, "metrics/transfer", &value), 1);
    assert_int_equal(count_scalars(&file, "metrics/average", &value), 1);
    size_t at = 0;
    static const uint8_t version[] = {16, 0, 26, 13, 'b', 'r', 'a', 'i', 'n', '.', 'E', 'v', 'e', 'n', 't', ':', '2'};
    struct record first = next_record(&file, &at);
    assert_int_equal(first.size, 9 + sizeof version); /* behind the clock: step 0, the format */
    assert_memory_equal(first.data + 9, version, sizeof version);
    struct record about = next_record(&file, &at), suite = next_record(&file, &at);
    assert_true(holds(&about, "| seed | 2 |", 12));
    assert_true(holds(&suite, "| suite | sample |", 18));
    static const uint8_t metadata[] = {74, 10, 10, 6, 10, 4, 't', 'e', 'x', 't', 32, 2}; /* plugin, class */
    assert_memory_equal(suite.data + suite.size - sizeof metadata, metadata, sizeof metadata);
    struct record start = next_record(&file, &at), end = next_record(&file, &at);
    assert_true(holds(&start, "_hparams_/session_start_info", 28));
    assert_true(holds(&start, "\x0a\x06policy\x12\x0b\x1a\x09most_used", 21));
    assert_true(holds(&end, "_hparams_/session_end_info", 26));
    bytes_free(&file);
    store_close(store);
    free(folder);
}

static void filters_choose_and_nothing_chosen_is_told(void **state)
{
    struct store *store;
    struct tensorboard_counts counts;
    char *folder = path_format("%s-logs", (char *)*state), *blocked = path_format("%s/logs", (char *)*state);
    assert_ok(store_open(&store, *state, STORE_READ, &error));
    assert_ok(tensorboard_export(store, &(struct query_filter){.has_seed = true, .seed = 3}, folder, &counts, &error));
    assert_int_equal(counts.runs, 1);
    assert_int_equal(count_files(folder, "*/*/*/*"), 1);
    assert_fails(tensorboard_export(store, &(struct query_filter){.status = "failed"}, folder, &counts, &error),
                 ERROR_ARGUMENT, "no run");
    assert_fails(tensorboard_export(store, &(struct query_filter){0}, blocked, &counts, &error), ERROR_IO, *state);
    store_close(store);
    free(folder);
    free(blocked);
}

/* Names come from the user: none leads out of the folder. A loss that is not a number and an unfinished run pass. */
static void odd_runs_have_files_too(void **state)
{
    struct store *store;
    struct run_start start;
    struct tensorboard_counts counts;
    struct bytes file;
    float value = 0;
    char hash[DIGEST_SIZE], *folder = path_format("%s-logs", (char *)*state);
    struct run_description description = sample_description(-5);
    digest_text("odd", hash);
    description.suite = "../odd suite";
    description.suite_hash = hash;
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(sample_write_at_once(store, start.run, 5, -1, 0, 1, 3, &error));
    assert_ok(sample_add_step(store, start.run, 3, 7, (double)NAN, &error));
    assert_ok(tensorboard_export(store, &(struct query_filter){.run = start.run}, folder, &counts, &error));
    read_file_of(folder, "_._odd_suite/*/seed-5/*", &file);
    assert_int_equal(count_scalars(&file, "training/loss", &value), SAMPLE_ITERATIONS + 3);
    assert_true(value != value);
    assert_int_equal(count_scalars(&file, "metrics/last", &value), 0);
    bytes_free(&file);
    store_close(store);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_readers_checksum_is_the_standards),
        cmocka_unit_test_setup_teardown(a_run_is_all_in_its_file, create, destroy),
        cmocka_unit_test_setup_teardown(filters_choose_and_nothing_chosen_is_told, create, destroy),
        cmocka_unit_test_setup_teardown(odd_runs_have_files_too, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
