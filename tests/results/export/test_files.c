/* Runs as files of other programs. */
#include "tests/test.h"

#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

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

static struct bytes read_file(const struct fixture *f, const char *name)
{
    struct bytes bytes;
    char *whole = path_format("%s/%s", f->folder, name);
    assert_ok(file_read(whole, FILE_LIMIT, &bytes, &error));
    free(whole);
    return bytes;
}

static size_t count_lines(const struct fixture *f, const char *name)
{
    struct bytes bytes = read_file(f, name);
    size_t lines = 0;
    for (size_t i = 0; i < bytes.size; i++)
        lines += bytes.data[i] == '\n';
    bytes_free(&bytes);
    return lines;
}

TEST_WITH(tables_have_the_rows_of_the_chosen_runs, create, destroy)
{
    struct fixture *f = *state;
    assert_ok(export_csv(f->store, &(struct query_filter){0}, f->folder, &f->counts, &error));
    assert_int_equal(count_files(f, "*.csv"), f->counts.files);
    assert_int_equal(count_lines(f, "runs.csv"), 3);
    assert_int_equal(count_lines(f, "matrix.csv"), 1 + 2 * SAMPLE_TASKS * (SAMPLE_TASKS + 1));
    assert_int_equal(count_files(f, "per_image.csv"), 0);
    assert_ok(export_csv(f->store, &(struct query_filter){.seed = "2"}, f->folder, &f->counts, &error));
    assert_int_equal(count_lines(f, "steps.csv"), 1 + SAMPLE_TASKS * SAMPLE_ITERATIONS);
    struct bytes matrix = read_file(f, "matrix.csv");
    static const char header[] = "run,after_task,trained,task,name,correct,images,accuracy\r\n2,-1,";
    assert_memory_equal(matrix.data, header, sizeof header - 1);
    bytes_free(&matrix);
}

/* As on a full disk: no file may have more than a few bytes, which suffices for the first ones. */
TEST_WITH(all_files_or_none, create, destroy)
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
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, action);
    assert_int_equal(tables, ERROR_IO);
    assert_int_equal(count_files(f, "*"), files);
    assert_int_equal(count_lines(f, "expert_events.csv"), events);
}

TEST_WITH(what_cannot_be_is_refused, create, destroy)
{
    struct fixture *f = *state;
    char *blocked = path_format("%s/files", f->path);
    struct query_filter all = {0}, none = {.status = "failed"};
    assert_fails(export_csv(f->store, &none, f->folder, &f->counts, &error), ERROR_ARGUMENT, "no run");
    assert_fails(export_csv(f->store, &all, blocked, &f->counts, &error), ERROR_IO, f->path);
    free(blocked);
}
