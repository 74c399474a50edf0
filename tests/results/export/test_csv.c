/* Tables as CSV files: which there are, and whose rows. */
#include "tests/results/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/file.h"
#include "results/export/csv.h"
#include "results/export/tensorboard.h"
#include "tests/results/sample.h"

static int create(void **state)
{
    struct store *store;
    *state = sample_path("results.sqlite");
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= 2; seed++)
        sample_finished_run(store, seed);
    store_close(store);
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

static struct bytes read_csv(const char *folder, const char *name)
{
    struct bytes bytes;
    char *path = path_format("%s/%s.csv", folder, name);
    assert_ok(file_read(path, FILE_LIMIT, &bytes, &error));
    free(path);
    return bytes;
}

static size_t count_lines(const char *folder, const char *name)
{
    struct bytes bytes = read_csv(folder, name);
    size_t lines = 0;
    for (size_t i = 0; i < bytes.size; i++)
        lines += bytes.data[i] == '\n';
    bytes_free(&bytes);
    return lines;
}

static void tables_have_the_rows_of_the_chosen_runs(void **state)
{
    struct store *store;
    struct csv_counts counts;
    char *folder = path_format("%s-csv", (char *)*state);
    assert_ok(store_open(&store, *state, STORE_READ, &error));
    assert_ok(csv_export(store, &(struct query_filter){0}, folder, &counts, &error));
    assert_int_equal(count_lines(folder, "runs"), 3);
    assert_int_equal(count_lines(folder, "matrix"), 1 + 2 * SAMPLE_TASKS * (SAMPLE_TASKS + 1));
    assert_int_equal(count_lines(folder, "steps"), 1 + 2 * SAMPLE_TASKS * SAMPLE_ITERATIONS);
    assert_ok(csv_export(store, &(struct query_filter){.has_seed = true, .seed = 2}, folder, &counts, &error));
    assert_int_equal(count_lines(folder, "steps"), 1 + SAMPLE_TASKS * SAMPLE_ITERATIONS);
    struct bytes matrix = read_csv(folder, "matrix");
    static const char header[] = "run,after_task,trained,task,name,correct,images,accuracy\r\n2,-1,";
    assert_memory_equal(matrix.data, header, sizeof header - 1);
    bytes_free(&matrix);
    char *packed = path_format("%s/per_image.csv", folder);
    assert_false(file_exists(packed));
    free(packed);
    store_close(store);
    free(folder);
}

static size_t count_names(const char *folder)
{
    struct directory names;
    assert_ok(directory_list(&names, folder, &error));
    size_t count = names.count;
    directory_free(&names);
    return count;
}

/* As on a full disk: no file may have more than a few bytes, which suffices for the first ones. */
static void all_files_or_none(void **state)
{
    struct store *store;
    struct error failure;
    struct csv_counts counts;
    struct tensorboard_counts boards;
    struct rlimit before;
    char *folder = path_format("%s-csv", (char *)*state), *fresh = path_format("%s-fresh", (char *)*state);
    assert_ok(store_open(&store, *state, STORE_READ, &error));
    assert_ok(csv_export(store, &(struct query_filter){.has_seed = true, .seed = 2}, folder, &counts, &error));
    size_t steps = count_lines(folder, "steps"), events = count_lines(folder, "expert_events");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*action)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, before.rlim_max}), 0);
    status again = csv_export(store, &(struct query_filter){0}, folder, &counts, &failure);
    status first = csv_export(store, &(struct query_filter){0}, fresh, &counts, &failure);
    status board = tensorboard_export(store, &(struct query_filter){0}, fresh, &boards, &failure);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, action);
    assert_true(again == ERROR_IO && first == ERROR_IO && board == ERROR_IO);
    assert_int_equal(count_names(fresh), 0);
    assert_int_equal(count_lines(folder, "steps"), steps);
    assert_int_equal(count_lines(folder, "expert_events"), events);
    store_close(store);
    free(folder);
    free(fresh);
}

static void what_cannot_be_is_told(void **state)
{
    struct store *store;
    struct csv_counts counts;
    char *blocked = path_format("%s/csv", (char *)*state);
    assert_ok(store_open(&store, *state, STORE_READ, &error));
    assert_fails(csv_export(store, &(struct query_filter){.status = "failed"}, blocked, &counts, &error),
                 ERROR_ARGUMENT, "no run");
    assert_fails(csv_export(store, &(struct query_filter){0}, blocked, &counts, &error), ERROR_IO, *state);
    store_close(store);
    free(blocked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables_have_the_rows_of_the_chosen_runs, create, destroy),
        cmocka_unit_test_setup_teardown(all_files_or_none, create, destroy),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_told, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
