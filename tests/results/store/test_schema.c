#include "tests/results/check.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "results/store.h"
#include "results/store/schema.h"
#include "tests/results/sample.h"

static void execute(const char *path, const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    char *message = NULL;
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

static void a_new_file_is_a_results_database(void **state)
{
    (void)state;
    char *path = sample_path("new.sqlite");
    struct store *store;
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_int_equal(number(path, "PRAGMA application_id"), SCHEMA_APPLICATION);
    assert_int_equal(number(path, "PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(number(path, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
    assert_int_equal(
        number(path, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT%'"), 0);
    store_close(store);
    sample_remove(path);
}

static void files_of_before_the_release_get_one_sentence(void **state)
{
    (void)state;
    char *path = sample_path("old.sqlite"), script[160];
    struct store *store;
    snprintf(script, sizeof script, "CREATE TABLE runs (run); PRAGMA application_id = %d; PRAGMA user_version = 9",
             SCHEMA_BEFORE_RELEASE);
    execute(path, script);
    for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++)
        assert_fails(store_open(&store, path, mode, &error), ERROR_FORMAT, "before its first release");
    assert_int_equal(number(path, "PRAGMA user_version"), 9);
    sample_remove(path);
}

static void other_programs_databases_are_refused_and_left_alone(void **state)
{
    (void)state;
    char *path = sample_path("foreign.sqlite");
    struct store *store;
    execute(path, "CREATE TABLE bookmarks (url TEXT)");
    assert_fails(store_open(&store, path, STORE_WRITE, &error), ERROR_FORMAT, "another program");
    assert_fails(store_open(&store, path, STORE_READ, &error), ERROR_FORMAT, "\"bookmarks\"");
    assert_int_equal(number(path, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'delete'"), 1);
    assert_int_equal(number(path, "SELECT count(*) FROM sqlite_schema"), 1);
    execute(path, "PRAGMA application_id = 252006673; DROP TABLE bookmarks; VACUUM");
    assert_fails(store_open(&store, path, STORE_WRITE, &error), ERROR_FORMAT, "0xf055111");
    sample_remove(path);
}

static void other_schemas_are_refused(void **state)
{
    (void)state;
    char *path = sample_path("newer.sqlite");
    struct store *store;
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    store_close(store);
    execute(path, "PRAGMA user_version = 999");
    assert_fails(store_open(&store, path, STORE_WRITE, &error), ERROR_FORMAT, "found 999");
    assert_fails(store_open(&store, path, STORE_READ, &error), ERROR_FORMAT, "newer version of mtil");
    sample_remove(path);
}

static double leaderboard_runs(struct store *store)
{
    struct database *database;
    int64_t runs;
    assert_ok(database_open(&database, store_path(store), false, &error));
    assert_ok(database_integer(database, "SELECT runs FROM leaderboard", &runs, &error));
    database_close(database);
    return (double)runs;
}

/* Whoever opens for writing brings its views; whoever reads gets its own without touching the file. */
static void stale_views_are_replaced(void **state)
{
    (void)state;
    char *path = sample_path("views.sqlite");
    struct store *store;
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    sample_finished_run(store, 1);
    store_close(store);
    execute(path, "DROP VIEW leaderboard; CREATE VIEW leaderboard AS SELECT 77 AS runs; DROP VIEW matrix;"
                  "UPDATE properties SET value = 'older'; CREATE VIEW mine AS SELECT 1");
    struct database *reader;
    int64_t cells, runs;
    assert_ok(database_open(&reader, path, false, &error));
    assert_ok(schema_use_views(reader, false, &error));
    assert_ok(database_integer(reader, "SELECT count(*) FROM matrix", &cells, &error));
    assert_ok(database_integer(reader, "SELECT runs FROM leaderboard", &runs, &error));
    assert_int_equal(cells, SAMPLE_TASKS * (SAMPLE_TASKS + 1));
    assert_int_equal(runs, 1);
    database_close(reader);
    assert_int_equal(number(path, "SELECT runs FROM leaderboard"), 77);
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_true(leaderboard_runs(store) == 1);
    assert_int_equal(number(path, "SELECT count(*) FROM mine"), 1); /* a user's own view stays */
    store_close(store);
    sample_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_file_is_a_results_database),
        cmocka_unit_test(files_of_before_the_release_get_one_sentence),
        cmocka_unit_test(other_programs_databases_are_refused_and_left_alone),
        cmocka_unit_test(other_schemas_are_refused),
        cmocka_unit_test(stale_views_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
