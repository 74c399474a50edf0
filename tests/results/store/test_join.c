/* Databases become one: every run once, with all its rows, or nothing at all. */
#include "tests/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "results/store/join.h"
#include "tests/results/sample.h"
#include "tests/results/store/same_run.h"

static char *first, *second, *out; /* in one folder */

static void write_runs(const char *path, int64_t from, int64_t to)
{
    struct store *store;
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    for (int64_t seed = from; seed <= to; seed++)
        sample_finished_run(store, seed);
    store_close(store);
}

/* Seeds 1 and 2 in the first, 2 and 3 in the second. */
static int create(void **state)
{
    (void)state;
    first = sample_path("first.db");
    char *folder = path_parent(first);
    second = path_format("%s/second.db", folder);
    out = path_format("%s/out.db", folder);
    free(folder);
    write_runs(first, 1, 2);
    write_runs(second, 2, 3);
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    free(out);
    free(second);
    sample_remove(first);
    return 0;
}

static int64_t number(const char *path, const char *sql)
{
    struct store *store;
    assert_ok(store_open(&store, path, STORE_READ, &error));
    int64_t value = sample_ask(store, sql);
    store_close(store);
    return value;
}

static void assert_same(const char *one, const char *other, int64_t seed)
{
    struct store *stores[2];
    int64_t runs[2];
    for (size_t i = 0; i < 2; i++) {
        enum run_status past = RUN_FAILED;
        assert_ok(store_open(&stores[i], i ? other : one, STORE_READ, &error));
        assert_ok(store_run_find(stores[i], sample_description(seed).suite_hash, seed, &runs[i], &past, &error));
        assert_true(runs[i] > 0);
    }
    assert_same_run(stores[0], runs[0], stores[1], runs[1]);
    store_close(stores[0]);
    store_close(stores[1]);
}

static struct join_counts counts[2];
static struct join_settings settings;

static status join(struct error *error)
{
    return join_databases(out, (const char *[]){first, second}, 2, &settings, counts, error);
}

static status join_one(const char *to, const char *from, struct error *error)
{
    return join_databases(to, &from, 1, &settings, counts, error);
}

static void assert_nothing_left(void)
{
    struct directory directory;
    char *folder = path_parent(out);
    assert_ok(directory_list(&directory, folder, &error));
    for (size_t i = 0; i < directory.count; i++)
        if (strncmp(directory.names[i], "out", 3) == 0)
            fail_msg("%s was left behind", directory.names[i]);
    directory_free(&directory);
    free(folder);
}

static void assert_whole(void)
{
    struct store *store;
    assert_ok(store_open(&store, out, STORE_READ, &error));
    assert_ok(sample_check(store, &error));
    store_close(store);
    assert_int_equal(number(out, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

TEST_WITH(every_run_is_there_once_with_all_its_rows, create, destroy)
{
    assert_ok(join(&error));
    char *log = path_format("%s-wal", out);
    assert_false(file_exists(log)); /* the file is all there is */
    free(log);
    assert_int_equal(counts[0].added, 2);
    assert_int_equal(counts[1].runs, 2);
    assert_int_equal(counts[1].added, 1);
    assert_int_equal(counts[1].known, 1);
    assert_same(first, out, 1);
    assert_same(first, out, 2);
    assert_same(second, out, 3);
    assert_whole();
    assert_int_equal(number(out, "SELECT count(DISTINCT run) FROM sessions"), 3);
    assert_ok(join(&error)); /* again, into what is there */
    assert_int_equal(counts[0].known + counts[1].known, 4);
    write_runs(out, 4, 4);
    assert_int_equal(number(out, "SELECT count(*) FROM runs"), 4);
}

/* Seed 9, stopped in its second task, in the first; whole in the second. */
TEST_WITH(a_fuller_run_replaces_its_beginning, create, destroy)
{
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(9);
    assert_ok(store_open(&store, first, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(sample_write(store, start.run, 9, -1, 0, 1, 11, &error));
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
    store_close(store);
    write_runs(second, 9, 9);
    assert_ok(join(&error));
    assert_int_equal(counts[1].completed, 1);
    assert_same(second, out, 9);
    assert_whole();
    assert_ok(join_one(out, first, &error));
    assert_int_equal(counts[0].known, 3);
    assert_same(second, out, 9);
}

TEST_WITH(a_run_that_is_being_written_is_not_replaced, create, destroy)
{
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(3);
    assert_ok(store_open(&store, first, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_fails(join_one(first, second, &error), ERROR_BUSY, "seed 3) is being written");
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
    assert_ok(join_one(first, second, &error));
    assert_int_equal(counts[0].completed, 1);
    store_close(store);
    assert_same(second, first, 3);
}

static char warning[2048];

static void keep_warning(void *context, enum log_level level, const char *message)
{
    (void)context;
    assert_int_equal(level, LOG_WARN);
    snprintf(warning, sizeof warning, "%s", message);
}

TEST_WITH(runs_that_disagree_are_named_and_nothing_is_written, create, destroy)
{
    assert_ok(
        sample_execute(second, "UPDATE steps SET loss = 0.125 WHERE run = 1 AND task = 1 AND iteration = 7", &error));
    assert_fails(join(&error), ERROR_FORMAT, "1 run disagrees between the files");
    assert_fails(join(&error), ERROR_FORMAT, "suite sample, seed 2 (configuration ");
    assert_fails(join(&error), ERROR_FORMAT, "steps (task 1, iteration 7): loss ");
    assert_nothing_left();
    settings = (struct join_settings){.keep_first = true, .log = &(struct log){.write = keep_warning}};
    assert_ok(join(&error));
    settings = (struct join_settings){0};
    assert_non_null(strstr(warning, "0.125 in "));
    assert_non_null(strstr(warning, "the first is kept"));
    assert_int_equal(counts[1].conflicts, 1);
    assert_same(first, out, 2);
    assert_same(second, out, 3);
    assert_ok(sample_execute(
        second, "UPDATE per_image SET data = zeroblob(25) WHERE run = 1 AND task = 2 AND after_task = 0", &error));
    assert_fails(join_one(first, second, &error), ERROR_FORMAT, "per_image (task 2, after_task 0): data differs");
    assert_int_equal(number(first, "SELECT count(*) FROM runs"), 2); /* seed 3 was not added either */
    assert_ok(sample_execute(first, "DELETE FROM steps WHERE run = 2 AND task = 0 AND iteration = 3", &error));
    assert_ok(
        sample_execute(second,
                       "DELETE FROM per_image WHERE run = 1 AND task = 1 AND after_task = 0; DELETE FROM per_image "
                       "WHERE run = 1 AND task = 2 AND after_task = 0; UPDATE steps SET loss = NULL WHERE run = 1",
                       &error));
    assert_ok(sample_execute(first, "UPDATE steps SET loss = NULL WHERE run = 2", &error));
    assert_fails(join_one(first, second, &error), ERROR_FORMAT, "per_image (task 1, after_task 0) is only in ");
}

TEST_WITH(inputs_that_are_no_databases_leave_nothing, create, destroy)
{
    assert_fails(join_one(first, first, &error), ERROR_ARGUMENT, "is the output and an input as well");
    assert_int_equal(truncate(second, 8192), 0);
    assert_fails(join(&error), ERROR_FORMAT, second);
    assert_ok(file_write(second, "suite: mini\n", 12, &error));
    assert_fails(join(&error), ERROR_FORMAT, "found something else");
    assert_int_equal(unlink(second), 0);
    assert_fails(join(&error), ERROR_IO, "no such file");
    assert_nothing_left();
    assert_fails(join_one("/no/such/folder/out.db", first, &error), ERROR_IO, "/no/such/folder");
}

/* Whatever the instant, there is a whole file or none. */
TEST_WITH(a_kill_leaves_a_whole_file_or_none, create, destroy)
{
    fflush(NULL);
    for (long trial = 0; trial < 8; trial++) {
        pid_t child = fork();
        if (child == 0)
            _exit(join(NULL) == OK ? 0 : 1);
        nanosleep(&(struct timespec){.tv_nsec = (1 + 3 * trial) * 1000000L}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (file_exists(out)) {
            assert_whole();
            assert_int_equal(number(out, "SELECT count(*) FROM runs"), 3);
            assert_int_equal(unlink(out), 0);
        }
    }
}
