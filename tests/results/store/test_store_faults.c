/* Damaged files, read-only media, full disks, rivals: one message each, and a database that is still whole. */
#include "tests/results/check.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/rng.h"
#include "results/query.h"
#include "results/query/question.h"
#include "results/store/database.h"
#include "tests/results/sample.h"

static int create(void **state)
{
    struct store *store;
    *state = sample_path("results.sqlite");
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    sample_finished_run(store, 1);
    store_close(store);
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

static void assert_whole(const char *path)
{
    struct store *store;
    assert_ok(store_open(&store, path, STORE_READ, &error));
    assert_ok(store_check(store, &error));
    store_close(store);
}

static void files_that_are_no_databases_are_refused(void **state)
{
    struct store *store;
    char *folder = strdup(*state), *missing = path_format("%s.missing", (char *)*state);
    *strrchr(folder, '/') = '\0';
    assert_fails(store_open(&store, missing, STORE_READ, &error), ERROR_IO, "no such file");
    assert_false(file_exists(missing));
    assert_fails(store_open(&store, folder, STORE_WRITE, &error), ERROR_ARGUMENT, "found a folder");
    assert_fails(store_open(&store, "", STORE_WRITE, &error), ERROR_ARGUMENT, "empty");
    assert_fails(store_open(&store, "/nonexistent/results.sqlite", STORE_WRITE, &error), ERROR_IO, "/nonexistent/");
    assert_ok(file_write(*state, "suite: mini\nseed: 1\n", 20, &error));
    assert_fails(store_open(&store, *state, STORE_WRITE, &error), ERROR_FORMAT, "found something else");
    assert_fails(store_open(&store, *state, STORE_READ, &error), ERROR_FORMAT, (const char *)*state);
    assert_ok(file_write(*state, "", 0, &error));
    assert_fails(store_open(&store, *state, STORE_READ, &error), ERROR_FORMAT, "an empty file");
    free(folder);
    free(missing);
}

static status ask_everything(struct store *store, struct error *error)
{
    struct questions questions;
    status asked = questions_open(&questions, NULL, error);
    for (size_t i = 0; i < questions.count && asked == OK; i++) {
        struct table table = {0};
        asked = query_ask(store, &questions, &questions.question[i], &(struct query_filter){0}, &table, NULL, error);
        table_free(&table);
    }
    questions_close(&questions);
    TRY(asked);
    struct table table = {0};
    status result = query_summary(store, 1, &table, error);
    table_free(&table);
    TRY(result);
    struct per_image kept;
    TRY(store_read_per_image(store, 1, 1, 1, &kept, error));
    per_image_free(&kept);
    return store_check(store, error);
}

static status open_and_ask(const char *path, struct error *error)
{
    struct store *store;
    TRY(store_open(&store, path, STORE_READ, error));
    status result = ask_everything(store, error);
    store_close(store);
    return result;
}

static void a_cut_file_is_damaged(void **state)
{
    uint64_t size;
    assert_ok(open_and_ask(*state, &error));
    assert_ok(file_size(*state, &size, &error));
    for (uint64_t kept = size - 4096; kept > 0; kept = kept / 2) {
        assert_int_equal(truncate(*state, (off_t)kept), 0);
        assert_fails(open_and_ask(*state, &error), ERROR_FORMAT, (const char *)*state);
    }
}

/* No damage to any page may do more than fail; most of it is found. */
static void damaged_pages_are_found(void **state)
{
    struct bytes good;
    struct rng rng = rng_make(3, RNG_TEST, 0, 0);
    int found = 0;
    assert_ok(file_read(*state, FILE_LIMIT, &good, &error));
    size_t pages = good.size / 4096, trials = 100;
    for (size_t trial = 0; trial < trials; trial++) {
        uint8_t *bad = malloc(good.size);
        struct error problem = {0};
        memcpy(bad, good.data, good.size);
        size_t page = trial % pages;
        for (size_t i = 0; i < 64; i++) {
            uint32_t at = rng_below(&rng, trial * 128 + i * 2, i < 32 ? 64 : 4096);
            bad[page * 4096 + (page == 0 ? 100 : 0) + at % 3996] = (uint8_t)rng_uint32(&rng, trial * 128 + i * 2 + 1);
        }
        assert_ok(file_write(*state, bad, good.size, &error));
        status result = open_and_ask(*state, &problem);
        assert_true(result == OK || problem.message[0]);
        found += result != OK;
        free(bad);
    }
    assert_true(found > (int)trials / 2);
    bytes_free(&good);
}

/* The file says that it is ours, and is not; wrong values in tables that look right may pass, but do no harm. */
static void foreign_tables_under_our_name_only_fail(void **state)
{
    static const struct {
        const char *script;
        bool harmless;
    } cases[] = {
        {"DROP TABLE runs; CREATE TABLE runs (run)", false},
        {"DROP TABLE properties", false},
        {"DROP VIEW metrics; CREATE TABLE metrics (x)", false},
        {"PRAGMA ignore_check_constraints = ON; UPDATE runs SET tasks = 1000000000", true}, /* nothing is whole */
        {"UPDATE evaluations SET images = 1000000000, correct = 1", false},
        {"PRAGMA ignore_check_constraints = ON; UPDATE evaluations SET images = 0, correct = -1", false},
        {"DROP TABLE tasks; CREATE TABLE tasks (run, task, name);"
         "INSERT INTO tasks VALUES (1, -9, 'x'), (1, 1, x'00'), (1, 1, 'y')",
         true},
    };
    struct bytes good;
    assert_ok(file_read(*state, FILE_LIMIT, &good, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sqlite3 *database;
        struct error problem = {0};
        assert_ok(file_write(*state, good.data, good.size, &error));
        assert_int_equal(sqlite3_open(*state, &database), SQLITE_OK);
        if (sqlite3_exec(database, cases[i].script, NULL, NULL, NULL) != SQLITE_OK)
            fail_msg("%s: %s", cases[i].script, sqlite3_errmsg(database));
        sqlite3_close(database);
        status result = open_and_ask(*state, &problem);
        if (result == OK ? !cases[i].harmless : !problem.message[0])
            fail_msg("%s: %s, \"%s\"", cases[i].script, status_name(result), problem.message);
    }
    bytes_free(&good);
}

/* Runs check in a process of its own and expects it to return 0. */
static void in_child(int (*check)(const char *path), const char *path)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(check(path));
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        fail_msg("the child ended with %d", ended);
}

static int complain(const char *what, const struct error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, status_name(error->code), error->message);
    return 1;
}

/* A process whose files may not grow beyond a limit stands in for a disk without room. */
static int full_disk(const char *path)
{
    struct error error = {0};
    struct store *store;
    signal(SIGXFSZ, SIG_IGN);
    if (store_open(&store, path, STORE_WRITE, &error) != OK)
        return complain("opening", &error);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){400 << 10, 400 << 10});
    status result = OK;
    for (int64_t seed = 2; seed < 100 && result == OK; seed++) {
        struct run_description description = sample_description(seed);
        struct run_start start;
        result = store_run_start(store, &description, &start, &error);
        if (result == OK)
            result = sample_write_at_once(store, start.run, seed, -1, 0, -1, 0, &error);
    }
    store_close(store);
    return result == ERROR_IO && strstr(error.message, "the disk is full") ? 0 : complain("filling", &error);
}

static void a_full_disk_loses_only_what_was_not_committed(void **state)
{
    in_child(full_disk, *state);
    assert_whole(*state);
    struct store *store;
    struct table table = {0};
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    assert_ok(query_named(store, "metrics", &(struct query_filter){0}, &table, &error));
    assert_true(table_rows(&table) >= 1);
    sample_finished_run(store, 1000); /* there is room again */
    table_free(&table);
    store_close(store);
}

static void waiting_for_a_rival_ends(void **state)
{
    struct store *store;
    struct database *rival;
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    assert_ok(database_open(&rival, *state, true, &error));
    store_set_patience(store, 50);
    assert_ok(database_execute(rival, "BEGIN IMMEDIATE", &error));
    assert_fails(sample_add_step(store, 1, 0, 99, 0, &error), ERROR_BUSY, "locked for 0.05 seconds");
    store_begin(store);
    assert_ok(sample_add_step(store, 1, 0, 99, 0, &error));
    assert_fails(store_commit(store, &error), ERROR_BUSY, (const char *)*state);
    struct table table = {0};
    assert_ok(query_sql(store, "SELECT count(*) FROM steps", &table, &error)); /* readers never wait */
    table_free(&table);
    database_rollback(rival);
    assert_ok(store_commit(store, &error)); /* the rows were kept */
    assert_fails(sample_add_step(store, 1, 0, 99, 0, &error), ERROR_ARGUMENT, "UNIQUE");
    database_close(rival);
    store_close(store);
}

static status write_own_run(const char *path, int64_t seed, struct error *error)
{
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(seed);
    TRY(store_open(&store, path, STORE_WRITE, error));
    status result = store_run_start(store, &description, &start, error);
    if (result == OK)
        result = sample_write_at_once(store, start.run, seed, -1, 0, -1, 0, error);
    if (result == OK)
        result = store_run_end(store, start.run, RUN_FINISHED, NULL, error);
    store_close(store);
    return result;
}

#define WRITERS 20

static void twenty_writers_of_a_new_file_lose_nothing(void **state)
{
    char *path = path_format("%s.shared", (char *)*state);
    pid_t children[WRITERS];
    fflush(NULL);
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct error error = {0};
            _exit(write_own_run(path, i, &error) == OK ? 0 : complain("writer", &error));
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int ended;
        waitpid(children[i], &ended, 0);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    struct store *store;
    struct table table = {0};
    assert_ok(store_open(&store, path, STORE_READ, &error));
    assert_ok(store_check(store, &error));
    assert_ok(query_sql(store, "SELECT run FROM steps GROUP BY run HAVING count(*) = 80", &table, &error));
    assert_int_equal(table_rows(&table), WRITERS);
    table_free(&table);
    assert_ok(query_named(store, "metrics", &(struct query_filter){0}, &table, &error));
    assert_int_equal(table_rows(&table), WRITERS);
    table_free(&table);
    store_close(store);
    free(path);
}

/* Whatever the instant, the file stays whole and the run can be written again. */
static void kills_at_any_instant_leave_a_whole_file(void **state)
{
    fflush(NULL);
    for (long trial = 0; trial < 10; trial++) {
        pid_t child = fork();
        if (child == 0) {
            struct error error = {0};
            for (int64_t seed = 1000000 * (trial + 1);; seed++) /* the file has a run of seed 1 */
                if (write_own_run(*state, seed, &error) != OK)
                    _exit(complain("writer", &error));
        }
        nanosleep(&(struct timespec){.tv_nsec = (5 + 7 * trial) * 1000000L}, NULL);
        kill(child, SIGKILL);
        int ended;
        waitpid(child, &ended, 0);
        assert_true(WIFSIGNALED(ended));
        assert_whole(*state);
    }
    struct store *store;
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    sample_finished_run(store, 2);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_that_are_no_databases_are_refused, create, destroy),
        cmocka_unit_test_setup_teardown(a_cut_file_is_damaged, create, destroy),
        cmocka_unit_test_setup_teardown(damaged_pages_are_found, create, destroy),
        cmocka_unit_test_setup_teardown(foreign_tables_under_our_name_only_fail, create, destroy),
        cmocka_unit_test_setup_teardown(a_full_disk_loses_only_what_was_not_committed, create, destroy),
        cmocka_unit_test_setup_teardown(waiting_for_a_rival_ends, create, destroy),
        cmocka_unit_test_setup_teardown(twenty_writers_of_a_new_file_lose_nothing, create, destroy),
        cmocka_unit_test_setup_teardown(kills_at_any_instant_leave_a_whole_file, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
