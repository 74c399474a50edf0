/* Databases become one: every run once, with all its rows, or nothing at all. */
#include "tests/results/check.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "results/store/join.h"
#include "tests/results/sample.h"
#include "tests/results/store/same_run.h"

struct scene {
    char *first, *second, *out; /* in one folder */
};

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
    struct scene *scene = calloc(1, sizeof *scene);
    scene->first = sample_path("first.db");
    scene->second = path_format("%.*ssecond.db", (int)(strrchr(scene->first, '/') - scene->first + 1), scene->first);
    scene->out = path_format("%.*sout.db", (int)(strrchr(scene->first, '/') - scene->first + 1), scene->first);
    write_runs(scene->first, 1, 2);
    write_runs(scene->second, 2, 3);
    *state = scene;
    return 0;
}

static int destroy(void **state)
{
    struct scene *scene = *state;
    free(scene->out);
    free(scene->second);
    sample_remove(scene->first);
    free(scene);
    return 0;
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *database;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(database);
}

static int64_t number(const char *path, const char *sql)
{
    struct database *database;
    int64_t value;
    assert_ok(database_open(&database, path, false, &error));
    assert_ok(database_integer(database, sql, &value, &error));
    database_close(database);
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
    assert_int_equal(number(one, "SELECT count(DISTINCT run) FROM sessions") > 0,
                     number(other, "SELECT count(DISTINCT run) FROM sessions") > 0);
    store_close(stores[0]);
    store_close(stores[1]);
}

static status join(const struct scene *scene, bool keep_first, struct join_counts counts[2], struct error *error)
{
    const char *inputs[] = {scene->first, scene->second};
    return join_databases(scene->out, inputs, 2, &(struct join_settings){.keep_first = keep_first}, counts, error);
}

/* Only the inputs and what SQLite keeps beside them are in the folder. */
static void assert_nothing_left(const struct scene *scene)
{
    struct directory directory;
    char *folder = strndup(scene->out, (size_t)(strrchr(scene->out, '/') - scene->out));
    assert_ok(directory_list(&directory, folder, &error));
    for (size_t i = 0; i < directory.count; i++)
        if (strncmp(directory.names[i], "out", 3) == 0)
            fail_msg("%s was left behind", directory.names[i]);
    directory_free(&directory);
    free(folder);
}

static void assert_whole(const char *path)
{
    struct store *store;
    assert_ok(store_open(&store, path, STORE_READ, &error));
    assert_ok(sample_check(store, &error));
    store_close(store);
    assert_int_equal(number(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

static void every_run_is_there_once_with_all_its_rows(void **state)
{
    const struct scene *scene = *state;
    struct join_counts counts[2];
    assert_ok(join(scene, false, counts, &error));
    char *log = path_format("%s-wal", scene->out);
    assert_false(file_exists(log)); /* the file is all there is */
    free(log);
    assert_int_equal(counts[0].added, 2);
    assert_int_equal(counts[1].runs, 2);
    assert_int_equal(counts[1].added, 1);
    assert_int_equal(counts[1].known, 1);
    assert_int_equal(number(scene->out, "SELECT count(*) FROM runs"), 3);
    assert_same(scene->first, scene->out, 1);
    assert_same(scene->first, scene->out, 2);
    assert_same(scene->second, scene->out, 3);
    assert_whole(scene->out);
    assert_ok(join(scene, false, counts, &error)); /* again, into what is there */
    assert_int_equal(counts[0].known + counts[1].known, 4);
    assert_int_equal(number(scene->out, "SELECT count(*) FROM runs"), 3);
    struct store *store;
    assert_ok(store_open(&store, scene->out, STORE_WRITE, &error));
    sample_finished_run(store, 4);
    store_close(store);
}

/* Seed 9, stopped in its second task, in the first; whole in the second. */
static void write_stopped(const struct scene *scene)
{
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(9);
    assert_ok(store_open(&store, scene->first, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(sample_write(store, start.run, 9, -1, 0, 1, 11, &error));
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
    store_close(store);
    write_runs(scene->second, 9, 9);
}

static void a_fuller_run_replaces_its_beginning(void **state)
{
    const struct scene *scene = *state;
    struct join_counts counts[2];
    write_stopped(scene);
    assert_ok(join(scene, false, counts, &error));
    assert_int_equal(counts[1].completed, 1);
    assert_same(scene->second, scene->out, 9);
    assert_whole(scene->out);
    const char *beginning[] = {scene->first};
    assert_ok(join_databases(scene->out, beginning, 1, &(struct join_settings){0}, counts, &error));
    assert_int_equal(counts[0].known, 3);
    assert_same(scene->second, scene->out, 9);
}

static void a_run_that_is_being_written_is_not_replaced(void **state)
{
    const struct scene *scene = *state;
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(3);
    const char *inputs[] = {scene->second};
    struct join_counts counts[1];
    assert_ok(store_open(&store, scene->first, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_fails(join_databases(scene->first, inputs, 1, &(struct join_settings){0}, counts, &error), ERROR_BUSY,
                 "seed 3) is being written");
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
    assert_ok(join_databases(scene->first, inputs, 1, &(struct join_settings){0}, counts, &error));
    assert_int_equal(counts[0].completed, 1);
    store_close(store);
    assert_same(scene->second, scene->first, 3);
}

static char warning[2048];

static void keep_warning(void *context, enum log_level level, const char *message)
{
    (void)context;
    assert_int_equal(level, LOG_WARN);
    snprintf(warning, sizeof warning, "%s", message);
}

static void runs_that_disagree_are_named_and_nothing_is_written(void **state)
{
    const struct scene *scene = *state;
    const char *inputs[] = {scene->first, scene->second};
    struct join_counts counts[2];
    struct log log = {.write = keep_warning};
    execute(scene->second, "UPDATE steps SET loss = 0.125 WHERE run = 1 AND task = 1 AND iteration = 7");
    assert_fails(join(scene, false, counts, &error), ERROR_FORMAT, "1 run disagrees between the files");
    assert_fails(join(scene, false, counts, &error), ERROR_FORMAT, "suite sample, seed 2 (configuration ");
    assert_fails(join(scene, false, counts, &error), ERROR_FORMAT, "steps (task 1, iteration 7): loss is ");
    assert_nothing_left(scene);
    assert_ok(join_databases(scene->out, inputs, 2, &(struct join_settings){.keep_first = true, .log = &log}, counts,
                             &error));
    assert_non_null(strstr(warning, "0.125 in "));
    assert_non_null(strstr(warning, "the first is kept"));
    assert_int_equal(counts[1].conflicts, 1);
    assert_same(scene->first, scene->out, 2);
    assert_same(scene->second, scene->out, 3);
}

static void a_conflict_leaves_the_output_as_it_was(void **state)
{
    const struct scene *scene = *state;
    const char *inputs[] = {scene->second};
    struct join_counts counts[1];
    execute(scene->second, "UPDATE per_image SET data = zeroblob(25) WHERE run = 1 AND task = 2 AND after_task = 0");
    assert_fails(join_databases(scene->first, inputs, 1, &(struct join_settings){0}, counts, &error), ERROR_FORMAT,
                 "per_image (task 2, after_task 0): data differs");
    assert_int_equal(number(scene->first, "SELECT count(*) FROM runs"), 2); /* seed 3 was not added either */
}

static void rows_missing_on_both_sides_are_a_conflict(void **state)
{
    const struct scene *scene = *state;
    struct join_counts counts[2];
    execute(scene->first, "DELETE FROM steps WHERE run = 2 AND task = 0 AND iteration = 3");
    execute(scene->second, "DELETE FROM steps WHERE run = 1 AND task = 0 AND iteration = 5");
    assert_fails(join(scene, false, counts, &error), ERROR_FORMAT, "steps (task 0, iteration 5) is only in ");
}

static void inputs_that_are_no_databases_leave_nothing(void **state)
{
    const struct scene *scene = *state;
    struct join_counts counts[2];
    const char *same[] = {scene->first};
    assert_fails(join_databases(scene->first, same, 1, &(struct join_settings){0}, counts, &error), ERROR_ARGUMENT,
                 "is the output and an input as well");
    assert_int_equal(truncate(scene->second, 8192), 0);
    assert_fails(join(scene, false, counts, &error), ERROR_FORMAT, scene->second);
    assert_nothing_left(scene);
    assert_ok(file_write(scene->second, "suite: mini\n", 12, &error));
    assert_fails(join(scene, false, counts, &error), ERROR_FORMAT, "found something else");
    assert_ok(file_write(scene->second, "", 0, &error));
    assert_fails(join(scene, false, counts, &error), ERROR_FORMAT, "an empty file");
    assert_int_equal(unlink(scene->second), 0);
    assert_fails(join(scene, false, counts, &error), ERROR_IO, "no such file");
    assert_nothing_left(scene);
    assert_fails(join_databases("/no/such/folder/out.db", same, 1, &(struct join_settings){0}, counts, &error),
                 ERROR_IO, "/no/such/folder");
}

/* Whatever the instant, there is a whole file or none. */
static void a_kill_leaves_a_whole_file_or_none(void **state)
{
    const struct scene *scene = *state;
    fflush(NULL);
    for (long trial = 0; trial < 8; trial++) {
        pid_t child = fork();
        if (child == 0) {
            struct join_counts counts[2];
            struct error error;
            _exit(join(scene, false, counts, &error) == OK ? 0 : 1);
        }
        nanosleep(&(struct timespec){.tv_nsec = (1 + 3 * trial) * 1000000L}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (file_exists(scene->out)) {
            assert_whole(scene->out);
            assert_int_equal(number(scene->out, "SELECT count(*) FROM runs"), 3);
            assert_int_equal(unlink(scene->out), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_run_is_there_once_with_all_its_rows, create, destroy),
        cmocka_unit_test_setup_teardown(a_fuller_run_replaces_its_beginning, create, destroy),
        cmocka_unit_test_setup_teardown(a_run_that_is_being_written_is_not_replaced, create, destroy),
        cmocka_unit_test_setup_teardown(runs_that_disagree_are_named_and_nothing_is_written, create, destroy),
        cmocka_unit_test_setup_teardown(a_conflict_leaves_the_output_as_it_was, create, destroy),
        cmocka_unit_test_setup_teardown(rows_missing_on_both_sides_are_a_conflict, create, destroy),
        cmocka_unit_test_setup_teardown(inputs_that_are_no_databases_leave_nothing, create, destroy),
        cmocka_unit_test_setup_teardown(a_kill_leaves_a_whole_file_or_none, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
