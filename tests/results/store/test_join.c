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
#include "core/text.h"
#include "results/store/join.h"
#include "results/store/schema.h"
#include "tests/results/sample.h"

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

static int add_row(void *text, int columns, char **values, char **titles)
{
    (void)titles;
    for (int i = 0; i < columns; i++)
        text_add(text, "%s%s", values[i] ? values[i] : "", i + 1 < columns ? "," : "\n");
    return 0;
}

/* The rows of an answer; the caller frees. */
static char *answer(const char *path, const char *sql)
{
    sqlite3 *database;
    struct text text = {0};
    char *message = NULL;
    assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_exec(database, sql, add_row, &text, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(database);
    return text.data ? text.data : strdup("");
}

static int64_t number(const char *path, const char *sql)
{
    char *text = answer(path, sql);
    int64_t value = strtoll(text, NULL, 10);
    free(text);
    return value;
}

/* The rows of one seed without the numbers that a file gives, in order. */
static char *rows_of(const char *path, const char *table, int64_t seed)
{
    struct text sql = {0};
    text_add(&sql,
             "SELECT group_concat('quote(\"' || name || '\")', ' || '','' || ') FROM pragma_table_info('%s') WHERE "
             "name NOT IN "
             "('run', 'timing', 'session')",
             table);
    char *columns = answer(path, sql.data);
    text_clear(&sql);
    text_add(&sql, "SELECT %s FROM \"%s\" WHERE run = (SELECT run FROM runs WHERE seed = %d) ORDER BY 1", columns,
             table, (int)seed);
    char *rows = answer(path, sql.data);
    free(columns);
    text_free(&sql);
    return rows;
}

/* In every table of the schema that has a column for the run; the sample writes thirteen of them at least. */
static void assert_same_run(const char *one, const char *other, int64_t seed)
{
    int filled = 0;
    char *tables = answer(one, "SELECT name FROM sqlite_schema AS t WHERE type = 'table' AND EXISTS "
                               "(SELECT 1 FROM pragma_table_info(t.name) WHERE name = 'run')");
    for (char *rest = tables, *table; (table = strsep(&rest, "\n")) && *table;) {
        char *left = rows_of(one, table, seed), *right = rows_of(other, table, seed);
        filled += *left != '\0';
        assert_string_equal(left, right);
        free(left);
        free(right);
    }
    assert_true(filled >= 13);
    free(tables);
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
    assert_ok(store_check(store, &error));
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
    assert_same_run(scene->first, scene->out, 1);
    assert_same_run(scene->first, scene->out, 2);
    assert_same_run(scene->second, scene->out, 3);
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
    assert_same_run(scene->second, scene->out, 9);
    assert_whole(scene->out);
    const char *beginning[] = {scene->first};
    assert_ok(join_databases(scene->out, beginning, 1, &(struct join_settings){0}, counts, &error));
    assert_int_equal(counts[0].known, 3);
    assert_same_run(scene->second, scene->out, 9);
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
    assert_same_run(scene->second, scene->first, 3);
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
    assert_same_run(scene->first, scene->out, 2);
    assert_same_run(scene->second, scene->out, 3);
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
