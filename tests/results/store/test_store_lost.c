/* The database under a run: files that are deleted, renamed, replaced, cut or overwritten, and rows that others delete.
 * Nothing of it goes unnoticed. */
#include "tests/results/check.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/store.h"
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

/* In the folder of the file at path. */
static void shell(const char *path, const char *command)
{
    char line[1024], *folder = path_parent(path);
    snprintf(line, sizeof line, "cd '%s' && %s", folder, command);
    assert_int_equal(system(line), 0);
    free(folder);
}

/* As another program would. */
static void execute(const char *path, const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

#define OF_TASK "run = 7 AND task = 1 AND after_task = 0"

static const struct {
    const char *command, *words; /* capitals: SQL */
} losses[] = {
    {"yes | dd of=results.db bs=4096 seek=4 count=12 conv=notrunc iflag=fullblock status=none", "damaged"},
    {"rm results.db", "results.db: was deleted or renamed"},
    {"mv results.db a.db", "results.db: was deleted or renamed"},
    {"cp results.db a.db && mv a.db results.db", "results.db: was replaced"},
    {": >results.db", "results.db: was cut from"},
    {"truncate -s 20480 results.db", " to 20480 bytes"},
    {"rm results.db-wal", "results.db-wal: was deleted"},
    {": >results.db-wal", "results.db-wal: was cut from"},
    {"rm results.db-shm", "results.db-shm: was deleted"},
    {"rm results.db-lock", "results.db-lock: was deleted"},
    {"cp results.db-lock a && mv a results.db-lock", "results.db-lock: was replaced"},
    {"DELETE FROM evaluations WHERE " OF_TASK, "of run 7 as they were written, found "},
    {"UPDATE evaluations SET correct = correct - 1 WHERE " OF_TASK, " with other values: somebody changed them"},
    {"UPDATE timings SET seconds = 0 WHERE run = 7", "somebody changed them"},
    {"DELETE FROM runs WHERE run = 7", "run 7 is gone"},
};

/* Between the last commit and the end, and before a commit, which does not read anew what it has in memory. */
static void what_is_lost_fails_the_commit_and_the_end(void **state)
{
    shell(*state, "mkdir kept && cp results.db kept");
    for (size_t i = 1; i < 2 * (sizeof losses / sizeof *losses); i++) {
        int64_t run;
        struct error problem;
        struct store *store = begin_run(*state, &run);
        assert_int_equal(run, 7);
        if (i % 2)
            assert_ok(store_commit(store, &error));
        (isupper((unsigned char)*losses[i / 2].command) ? execute : shell)(*state, losses[i / 2].command);
        status result = i % 2 ? store_run_end(store, run, RUN_FINISHED, NULL, &problem) : store_commit(store, &problem);
        if (result == OK || !strstr(problem.message, losses[i / 2].words))
            fail_msg("%zu: expected \"%s\", found %s", i, losses[i / 2].words, result ? problem.message : "success");
        if (i % 2 == 0)
            assert_true(store_commit(store, NULL) != OK && store_run_end(store, run, RUN_FINISHED, NULL, NULL) != OK);
        store_close(store);
        shell(*state, "rm -f results.db* && cp kept/results.db .");
    }
}

/* Other programs may write other rows, make the file smaller and empty the log. */
static void an_undisturbed_run_ends(void **state)
{
    int64_t run;
    struct store *store = begin_run(*state, &run);
    execute(*state, "UPDATE runs SET message = 1 WHERE seed = 1; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    assert_ok(store_commit(store, &error));
    execute(*state, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_ok(store_run_end(store, run, RUN_FINISHED, NULL, &error));
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_lost_fails_the_commit_and_the_end, create, destroy),
        cmocka_unit_test_setup_teardown(an_undisturbed_run_ends, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
