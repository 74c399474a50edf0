/* Runs as files of other programs: tables as CSV, and TensorBoard's event files, whose records are read back. */
#include "tests/results/check.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/digest.h"
#include "core/file.h"
#include "results/export/files.h"
#include "tests/results/sample.h"

struct fixture {
    char *path, *folder; /* of the database, and for the files */
    struct store *store;
    struct export_counts counts;
};

static int create(void **state)
{
    static struct fixture f;
    f.path = sample_path("results.sqlite");
    f.folder = path_format("%s-files", f.path);
    assert_ok(store_open(&f.store, f.path, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= 2; seed++)
        sample_finished_run(f.store, seed);
    *state = &f;
    return 0;
}

static int destroy(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    free(f->folder);
    sample_remove(f->path);
    return 0;
}

static size_t count_files(const struct fixture *f, const char *pattern)
{
    glob_t found;
    char *whole = path_format("%s/%s", f->folder, pattern);
    size_t count = glob(whole, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    free(whole);
    return count;
}

static struct bytes read_first(const struct fixture *f, const char *pattern)
{
    glob_t found;
    struct bytes bytes;
    char *whole = path_format("%s/%s", f->folder, pattern);
    assert_int_equal(glob(whole, 0, NULL, &found), 0);
    assert_ok(file_read(found.gl_pathv[0], FILE_LIMIT, &bytes, &error));
    globfree(&found);
    free(whole);
    return bytes;
}

static size_t count_lines(const struct fixture *f, const char *name)
{
    struct bytes bytes = read_first(f, name);
    size_t lines = 0;
    for (size_t i = 0; i < bytes.size; i++)
        lines += bytes.data[i] == '\n';
    bytes_free(&bytes);
    return lines;
}

static void tables_have_the_rows_of_the_chosen_runs(void **state)
{
    struct fixture *f = *state;
    assert_ok(export_csv(f->store, &(struct query_filter){0}, f->folder, &f->counts, &error));
    assert_int_equal(count_files(f, "*.csv"), f->counts.files);
    assert_int_equal(count_lines(f, "runs.csv"), 3);
    assert_int_equal(count_lines(f, "matrix.csv"), 1 + 2 * SAMPLE_TASKS * (SAMPLE_TASKS + 1));
    assert_int_equal(count_files(f, "per_image.csv"), 0);
    assert_ok(export_csv(f->store, &(struct query_filter){.seed = "2"}, f->folder, &f->counts, &error));
    assert_int_equal(count_lines(f, "steps.csv"), 1 + SAMPLE_TASKS * SAMPLE_ITERATIONS);
    struct bytes matrix = read_first(f, "matrix.csv");
    static const char header[] = "run,after_task,trained,task,name,correct,images,accuracy\r\n2,-1,";
    assert_memory_equal(matrix.data, header, sizeof header - 1);
    bytes_free(&matrix);
}

/* As on a full disk: no file may have more than a few bytes, which suffices for the first ones. */
static void all_files_or_none(void **state)
{
    struct fixture *f = *state;
    struct error failure;
    struct query_filter all = {0};
    struct rlimit before;
    assert_ok(export_csv(f->store, &(struct query_filter){.seed = "2"}, f->folder, &f->counts, &error));
    size_t files = count_files(f, "*"), events = count_lines(f, "expert_events.csv");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*action)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, before.rlim_max}), 0);
    status tables = export_csv(f->store, &all, f->folder, &f->counts, &failure);
    status board = export_tensorboard(f->store, &all, f->folder, &f->counts, &failure);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, action);
    assert_true(tables == ERROR_IO && board == ERROR_IO);
    assert_int_equal(count_files(f, "*"), files);
    assert_int_equal(count_lines(f, "expert_events.csv"), events);
}

static void what_cannot_be_is_refused(void **state)
{
    struct fixture *f = *state;
    char *blocked = path_format("%s/files", f->path);
    struct query_filter all = {0}, none = {.status = "failed"};
    assert_fails(export_csv(f->store, &none, f->folder, &f->counts, &error), ERROR_ARGUMENT, "no run");
    assert_fails(export_tensorboard(f->store, &none, f->folder, &f->counts, &error), ERROR_ARGUMENT, "no run");
    assert_fails(export_csv(f->store, &all, blocked, &f->counts, &error), ERROR_IO, f->path);
    assert_fails(export_tensorboard(f->store, &all, blocked, &f->counts, &error), ERROR_IO, f->path);
    free(blocked);
}

/* CRC-32C by its definition (RFC 3720, B.4), in TFRecord's masked form. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t bit = 0; bit < 8 * size; bit++)
        crc = crc >> 1 ^ (((crc ^ bytes[bit / 8] >> bit % 8) & 1) != 0 ? 0x82f63b78 : 0);
    return (~crc >> 15 | ~crc << 17) + 0xa282ead8;
}

/* Moves behind the record at *at, whose length and checksums are right. */
static struct bytes next_record(const struct bytes *file, size_t *at)
{
    uint64_t size;
    uint32_t of_size, of_data;
    memcpy(&size, file->data + *at, sizeof size);
    memcpy(&of_size, file->data + *at + 8, sizeof of_size);
    assert_int_equal(of_size, checksum(file->data + *at, 8));
    assert_true(size <= file->size - *at - 16);
    memcpy(&of_data, file->data + *at + 12 + size, sizeof of_data);
    assert_int_equal(of_data, checksum(file->data + *at + 12, size));
    *at += size + 16;
    return (struct bytes){.data = file->data + *at - 4 - size, .size = size};
}

/* How many numbers a tag has, and the last: field 1 of a value is its tag, field 2 its float. */
static size_t count_scalars(const struct bytes *file, const char *tag, float *last)
{
    size_t count = 0;
    char pattern[64];
    int size = snprintf(pattern, sizeof pattern, "\x0a%c%s\x15", (int)strlen(tag), tag);
    for (size_t at = 0; at < file->size;) {
        struct bytes record = next_record(file, &at);
        const char *found = memmem(record.data, record.size, pattern, (size_t)size);
        if (found != NULL)
            memcpy(last, found + size, sizeof *last);
        count += found != NULL;
    }
    return count;
}

static void expect_record(const struct bytes *file, size_t *at, const char *part, size_t size)
{
    struct bytes record = next_record(file, at);
    assert_non_null(memmem(record.data, record.size, part, size));
}
#define EXPECT_RECORD(file, at, part) expect_record(file, at, part, sizeof(part) - 1)

static void events_are_as_tensorboard_reads_them(void **state)
{
    struct fixture *f = *state;
    float value = -1;
    size_t at = 0;
    assert_int_equal(checksum((const uint8_t *)"123456789", 9),
                     (uint32_t)(0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8);
    for (int again = 0; again < 2; again++) {
        assert_ok(export_tensorboard(f->store, &(struct query_filter){0}, f->folder, &f->counts, &error));
        assert_int_equal(f->counts.files, 2);
        assert_int_equal(count_files(f, "sample/adapters-most_used-*/seed*/events.out.tfevents.*.mtil"), 2);
    }
    struct bytes file = read_first(f, "sample/*/seed2/*");
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
    EXPECT_RECORD(&file, &at,
                  "\x10\x00\x1a\x0d"
                  "brain.Event:2"); /* step 0, the format */
    EXPECT_RECORD(&file, &at, "| seed | 2 |");
    EXPECT_RECORD(&file, &at, "\x4a\x0a\x0a\x06\x0a\x04text\x20\x02"); /* plugin, class */
    EXPECT_RECORD(&file, &at, "\x0a\x06policy\x12\x0b\x1a\x09most_used");
    EXPECT_RECORD(&file, &at, "_hparams_/session_end_info");
    bytes_free(&file);
}

/* Names come from the user: none leads out of the folder. A loss that is not a number and an unfinished run pass. */
static void odd_runs_have_files_too(void **state)
{
    struct fixture *f = *state;
    struct run_start start;
    float value = 0;
    char hash[DIGEST_SIZE];
    struct run_description description = sample_description(-5);
    digest_text("odd", hash);
    description.suite = "../odd suite";
    description.suite_hash = hash;
    assert_ok(store_run_start(f->store, &description, &start, &error));
    assert_ok(sample_write_at_once(f->store, start.run, 5, -1, 0, 1, 3, &error));
    assert_ok(sample_add_step(f->store, start.run, 3, 7, (double)NAN, &error));
    assert_ok(export_tensorboard(f->store, &(struct query_filter){.run = start.run}, f->folder, &f->counts, &error));
    assert_int_equal(count_files(f, "*/*/*/*"), 1);
    struct bytes file = read_first(f, "_._odd_suite/*/seed-5/*");
    assert_int_equal(count_scalars(&file, "training/loss", &value), SAMPLE_ITERATIONS + 3);
    assert_true(value != value);
    assert_int_equal(count_scalars(&file, "metrics/last", &value), 0);
    bytes_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables_have_the_rows_of_the_chosen_runs, create, destroy),
        cmocka_unit_test_setup_teardown(all_files_or_none, create, destroy),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, create, destroy),
        cmocka_unit_test_setup_teardown(events_are_as_tensorboard_reads_them, create, destroy),
        cmocka_unit_test_setup_teardown(odd_runs_have_files_too, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
