/* The database under a run: files that are deleted, renamed, replaced, cut or overwritten, rows that others delete, and
 * logs that were left behind. Nothing of it goes unnoticed. */
#include "tests/results/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "results/store/store_internal.h"
#include "tests/results/sample.h"

static int create(void **state)
{
    struct store *store;
    *state = sample_path("results.db");
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= 6; seed++)
        sample_finished_run(store, seed);
    store_close(store);
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

/* A run as the harness writes it, with rows that wait to be committed. */
static struct store *begin_run(const char *path, int64_t *run)
{
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(7);
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(store_run_rewind(store, start.run, -1, 0, &error));
    assert_ok(sample_write_at_once(store, start.run, 7, -1, 0, 2, 10, &error));
    store_begin(store);
    assert_ok(sample_write(store, start.run, 7, 2, 9, -1, 0, &error));
    *run = start.run;
    return store;
}

static void shell(const char *path, const char *command)
{
    char line[1024];
    char *folder = strdup(path);
    *strrchr(folder, '/') = '\0';
    snprintf(line, sizeof line, "cd '%s' && %s", folder, command);
    assert_int_equal(system(line), 0);
    free(folder);
}

static void execute(const char *path, const char *sql)
{
    struct database *other;
    assert_ok(database_open(&other, path, true, &error));
    assert_ok(database_execute(other, "PRAGMA foreign_keys = OFF", &error));
    assert_ok(database_execute(other, sql, &error));
    database_close(other);
}

static void an_undisturbed_run_ends(void **state)
{
    int64_t run;
    struct store *store = begin_run(*state, &run);
    execute(*state, "UPDATE runs SET message = 'a remark' WHERE seed = 1; VACUUM"); /* the file may shrink */
    assert_ok(store_commit(store, &error));
    assert_ok(store_run_end(store, run, RUN_FINISHED, NULL, &error));
    store_close(store);
}

static void what_happens_to_the_files_fails_the_commit(void **state)
{
    static const struct {
        const char *command, *words;
    } losses[] = {
        {"rm results.db", "results.db: was deleted or renamed"},
        {"mv results.db a.db", "results.db: was deleted or renamed"},
        {"cp results.db a.db && mv a.db results.db", "results.db: was replaced"},
        {": >results.db", "to 0 bytes"},
        {"truncate -s 20480 results.db", "to 20480 bytes"},
        {"rm results.db-wal", "results.db-wal: was deleted"},
        {"rm results.db-shm", "results.db-shm: was deleted"},
        {"rm results.db-lock", "results.db-lock: was deleted or replaced"},
        {"cp results.db-lock a && mv a results.db-lock", "results.db-lock: was deleted or replaced"},
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        int64_t run;
        shell(*state, "rm -rf kept && mkdir kept && cp results.db kept");
        struct store *store = begin_run(*state, &run);
        shell(*state, losses[i].command);
        assert_fails(store_commit(store, &error), ERROR_IO, losses[i].words);
        assert_fails(store_commit(store, &error), ERROR_IO, losses[i].words);
        assert_true(store_run_end(store, run, RUN_FINISHED, NULL, NULL) != OK);
        store_close(store);
        shell(*state, "rm -f results.db* && cp kept/results.db .");
    }
}

/* Between the last commit and the end. */
static void rows_that_others_change_fail_the_end(void **state)
{
    int64_t run;
    struct store *store = begin_run(*state, &run);
    assert_ok(store_commit(store, &error));
    execute(*state, "UPDATE steps SET loss = -1 WHERE run = 7 AND task = 2");
    assert_fails(store_run_end(store, run, RUN_FINISHED, NULL, &error), ERROR_FORMAT, "of run 7 in steps");
    store_close(store);
}

/* Lost between the last commit and the end. */
static void a_run_ends_only_where_its_rows_are_found(void **state)
{
    int64_t run;
    struct store *store = begin_run(*state, &run);
    assert_ok(store_commit(store, &error));
    shell(*state, "mv results.db a.db");
    assert_fails(store_run_end(store, run, RUN_FINISHED, NULL, &error), ERROR_IO, "deleted or renamed");
    store_close(store);
}

static void pages_that_are_overwritten_fail_the_end(void **state)
{
    int64_t run;
    struct store *store = begin_run(*state, &run);
    assert_ok(store_commit(store, &error));
    shell(*state, "yes | dd of=results.db bs=4096 seek=4 count=12 conv=notrunc iflag=fullblock status=none");
    assert_fails(store_run_end(store, run, RUN_FINISHED, NULL, &error), ERROR_IO, "something other than SQLite");
    store_close(store);
}

static void rows_that_others_change_fail_the_commit(void **state)
{
    static const struct {
        const char *sql, *words;
    } losses[] = {
        {"DELETE FROM evaluations WHERE run = 7 AND task = 1 AND after_task = 0", "somebody changed them"},
        {"DELETE FROM steps WHERE run = 7 AND task = 0 AND iteration = 3", "somebody changed them"},
        {"UPDATE evaluations SET correct = correct - 1 WHERE run = 7 AND task = 1 AND after_task = 0",
         "of run 7 in evaluations as they were written, found "},
        {"UPDATE evaluations SET correct = correct - 1 WHERE run = 7 AND task = 1 AND after_task = 0",
         " with other values: somebody changed them"},
        {"UPDATE steps SET loss = loss + 1e-9 WHERE run = 7 AND task = 0 AND iteration = 3", "of run 7 in steps"},
        {"UPDATE per_image SET data = zeroblob(length(data)) WHERE run = 7 AND task = 0", "of run 7 in per_image"},
        {"DELETE FROM evaluations WHERE run = 7 AND task = 1 AND after_task = 0; INSERT INTO evaluations (run, "
         "after_task, task, correct, images) SELECT 7, 0, 1, 1, 1",
         "of run 7 in evaluations"},
        {"UPDATE timings SET seconds = 0 WHERE run = 7", "of run 7 in timings"},
        {"DELETE FROM runs WHERE run = 7", "run 7 is gone"},
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        int64_t run;
        struct store *store = begin_run(*state, &run);
        assert_int_equal(run, 7);
        execute(*state, losses[i].sql);
        assert_fails(store_commit(store, &error), ERROR_FORMAT, losses[i].words);
        store_rollback(store);
        store_close(store);
        execute(*state, "DELETE FROM runs WHERE run = 7; DELETE FROM tasks WHERE run = 7; DELETE FROM settings WHERE "
                        "run = 7; DELETE FROM inputs WHERE run = "
                        "7; DELETE FROM sessions WHERE run = 7; DELETE FROM per_image WHERE "
                        "run = 7; DELETE FROM evaluations WHERE run = 7");
    }
}

/* Runs write into it how far they are. */
static void a_lock_that_is_a_link_is_not_followed(void **state)
{
    struct store *store;
    shell(*state, "echo precious >victim && rm -f results.db-lock && ln -s victim results.db-lock");
    assert_fails(store_open(&store, *state, STORE_WRITE, &error), ERROR_IO,
                 "results.db-lock: expected a file, found a symbolic link");
    shell(*state, "test \"$(cat victim)\" = precious");
}

static void a_log_without_its_database_is_reported(void **state)
{
    struct store *store;
    int64_t run;
    struct store *writer = begin_run(*state, &run);
    assert_ok(store_commit(writer, &error));
    shell(*state, "mkdir left && cp results.db results.db-wal left");
    store_close(writer);
    char *path = path_format("%.*s/left/results.db", (int)(strrchr(*state, '/') - (char *)*state), (char *)*state);
    shell(path, ": >results.db");
    for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++)
        assert_fails(store_open(&store, path, mode, &error), ERROR_IO, "is empty, but");
    shell(path, "rm results.db");
    for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++)
        assert_fails(store_open(&store, path, mode, &error), ERROR_IO, "put that file back");
    assert_true(access(path, F_OK) != 0); /* nothing was created, and the log is as it was */
    shell(path, "test -s results.db-wal");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_undisturbed_run_ends, create, destroy),
        cmocka_unit_test_setup_teardown(what_happens_to_the_files_fails_the_commit, create, destroy),
        cmocka_unit_test_setup_teardown(a_run_ends_only_where_its_rows_are_found, create, destroy),
        cmocka_unit_test_setup_teardown(pages_that_are_overwritten_fail_the_end, create, destroy),
        cmocka_unit_test_setup_teardown(rows_that_others_change_fail_the_commit, create, destroy),
        cmocka_unit_test_setup_teardown(rows_that_others_change_fail_the_end, create, destroy),
        cmocka_unit_test_setup_teardown(a_lock_that_is_a_link_is_not_followed, create, destroy),
        cmocka_unit_test_setup_teardown(a_log_without_its_database_is_reported, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
