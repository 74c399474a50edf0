#include "tests/results/check.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "results/store.h"
#include "results/store/schema.h"
#include "results/store/setting_values.h"
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
    assert_int_equal(number(path, "PRAGMA user_version"), schema_version());
    assert_int_equal(number(path, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
    assert_int_equal(
        number(path, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT%'"), 0);
    store_close(store);
    sample_remove(path);
}

/* A schema file as mtil_embed makes it. */
#define SQL_FILE(file, sql)                                                                                            \
    {                                                                                                                  \
        (file), (const unsigned char *)(sql), sizeof(sql) - 1                                                          \
    }

static void old_schemas_are_brought_up_to_date(void **state)
{
    (void)state;
    const struct embedded_file first[] = {SQL_FILE("1.sql", "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (7)"),
                                          {0}};
    const struct embedded_file all[] = {
        first[0],
        SQL_FILE("2.sql", "ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 5"),
        SQL_FILE("3.sql", "CREATE TABLE b AS SELECT x + y AS z FROM a; UPDATE a SET y = 6;"),
        {0}};
    char *path = sample_path("old.sqlite");
    struct database *database;
    assert_ok(database_open(&database, path, true, &error));
    assert_ok(schema_upgrade(database, first, &error));
    assert_int_equal(number(path, "PRAGMA user_version"), 1);
    assert_ok(schema_upgrade(database, all, &error));
    assert_int_equal(number(path, "PRAGMA user_version"), 3);
    assert_int_equal(number(path, "SELECT z FROM b"), 12);
    assert_ok(schema_upgrade(database, all, &error));
    assert_int_equal(number(path, "SELECT count(*) FROM b"), 1);
    database_close(database);
    sample_remove(path);
}

/* What the first version wrote is read by this one. */
static void a_database_of_the_first_version_gets_the_new_columns(void **state)
{
    (void)state;
    char *path = sample_path("first.sqlite");
    const struct embedded_file first[] = {schema_files[0], {0}};
    struct database *database;
    struct store *store;
    assert_ok(database_open(&database, path, true, &error));
    assert_ok(schema_upgrade(database, first, &error));
    database_close(database);
    execute(path, "INSERT INTO runs VALUES (1, 's', 'h', 't', 'full_shot', 'm', 'p', 'c', 'oracle', 'I', 'b', 'cpu', "
                  "'f32', '0', 1, 1, 0, 'stopped', NULL, 'now', NULL, 'host', 1);"
                  "INSERT INTO tasks VALUES (1, 0, 'dtd', 47, 100, 50, NULL)");
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    store_close(store);
    assert_int_equal(number(path, "PRAGMA user_version"), schema_version());
    assert_int_equal(number(path, "SELECT test_images + missing_images FROM tasks"), 50);
    sample_remove(path);
}

/* Runs of the version before inputs were recorded are read, shown and compared; nothing is known of their inputs. */
static void a_database_without_inputs_is_brought_up_to_date(void **state)
{
    (void)state;
    char *path = sample_path("third.sqlite");
    const struct embedded_file three[] = {schema_files[0], schema_files[1], schema_files[2], {0}};
    struct database *database;
    struct store *store;
    struct unfinished_runs found;
    char *folder;
    assert_ok(database_open(&database, path, true, &error));
    assert_ok(schema_upgrade(database, three, &error));
    database_close(database);
    execute(path,
            "INSERT INTO runs VALUES (7, 'mini', 'h', 't', 'full_shot', 'm', 'p', 'c', 'oracle', 'I', 'b', 'cpu', "
            "'f32', '0', 1, 1, 0, 'stopped', NULL, 'now', NULL, 'host', 1)");
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_int_equal(number(path, "SELECT settings_hash IS NULL AND folder IS NULL FROM runs"), 1);
    assert_int_equal(number(path, "SELECT count(*) FROM inputs") + number(path, "SELECT count(*) FROM sessions"), 0);
    assert_ok(store_run_folder(store, 7, &folder, &error));
    assert_null(folder);
    assert_ok(store_find_unfinished(store, "h", "mini", 1, &found, &error));
    assert_int_equal(found.count, 0);
    assert_int_equal(found.older, 1);
    unfinished_runs_free(&found);
    store_close(store);
    sample_remove(path);
}

/* As programs of every version before wrote it: a "key: value" a line. */
#define OLD_SUITE                                                                                                      \
    "title: \"a: b\"\nmodel:\n  weights: mini\n  note: \"\\\\x \\x1b \\\"q\\\"\"\ndata:\n  order: [mnist, \"a b\"]\n"  \
    "merge:\n  every: 20\n  rate: 1e-05\n  empty: \"\"\ntasks:\n  mnist:\n    learning_rate: 0.01\n"                   \
    "    reference_iterations: true\n  \"a b\":\n    batch: 3\n  \"q\\\"z:\\\\d\":\n    batch: 5\n    root: 1e5\n"     \
    "training:\n  weight_decay: 0\nrun:\n  threads: 4\n"

static void a_database_without_settings_is_brought_up_to_date(void **state)
{
    (void)state;
    static const char *const expected[][3] = {
        {"data.order", "[mnist, \"a b\"]", "list"},
        {"merge.empty", "", "text"},
        {"merge.every", "20", "integer"},
        {"merge.rate", "1e-05", "real"},
        {"model.note", "\\x \x1b \"q\"", "text"},
        {"model.weights", "mini", "text"},
        {"run.threads", "4", "integer"},
        {"tasks.a b.batch", "3", "integer"},
        {"tasks.mnist.learning_rate", "0.01", "real"},
        {"tasks.mnist.reference_iterations", "true", "boolean"},
        {"tasks.q\"z:\\d.batch", "5", "integer"},
        {"tasks.q\"z:\\d.root", "1e5", "text"},
        {"title", "a: b", "text"},
        {"training.weight_decay", "0", "real"},
    };
    char *path = sample_path("fourth.sqlite");
    const struct embedded_file four[] = {schema_files[0], schema_files[1], schema_files[2], schema_files[3], {0}};
    struct database *database;
    struct store *store;
    struct setting_values values;
    assert_ok(database_open(&database, path, true, &error));
    assert_ok(schema_upgrade(database, four, &error));
    static const char *const methods[] = {"m", "m", "continual_ft"};
    for (int64_t run = 1; run <= 3; run++) {
        struct statement *statement;
        assert_ok(
            statement_open(&statement, database,
                           "INSERT INTO runs VALUES (?1, 's', 'h', ?2, 'full_shot', ?3, 'p', 'c', 'oracle', 'I', "
                           "'b', 'cpu', 'f32', '0', ?1, 1, 0, 'stopped', NULL, 'now', NULL, 'host', 1, NULL, NULL)",
                           &error));
        assert_ok(statement_run(statement,
                                VALUES(value_integer(run), value_text(run == 2 ? "no mapping: {" : OLD_SUITE),
                                       value_text(methods[run - 1])),
                                &error));
        statement_close(statement);
    }
    database_close(database);
    execute(path,
            "INSERT INTO tasks (run, task, name, classes, training_images, test_images) VALUES (1, 0, 'dtd', 1, 1, 9);"
            "INSERT INTO evaluations VALUES (1, 0, -1, 3, 9), (1, 0, 0, 6, 9);"
            "INSERT INTO per_image VALUES (1, 0, 0, 'bits', x'00');"
            "INSERT INTO router_choices VALUES (1, 0, 0, -1, 9);"
            "CREATE VIEW matrix AS SELECT run, task, checkpoint, correct FROM evaluations");
    assert_ok(store_open(&store, path, STORE_SNAPSHOT, &error)); /* in a copy; the file stays what it is */
    assert_int_equal(number(path, "PRAGMA user_version"), 4);
    store_close(store);
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_ok(setting_values_read(&values, store, 1, &error));
    assert_int_equal(values.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < values.count; i++) {
        char sql[128];
        assert_string_equal(values.value[i].key, expected[i][0]);
        assert_string_equal(values.value[i].value, expected[i][1]);
        snprintf(sql, sizeof sql, "SELECT count(*) FROM settings WHERE run = 1 AND key = '%s' AND type = '%s'",
                 expected[i][0], expected[i][2]);
        assert_int_equal(number(path, sql), 1);
    }
    assert_int_equal(number(path, "SELECT correct FROM matrix JOIN per_image USING (run, task, after_task) JOIN "
                                  "router_choices USING (run, task, after_task)"),
                     6);
    assert_int_equal(number(path, "SELECT count(*) FROM settings WHERE run = 1 AND value > 19 AND value < 21"), 1);
    setting_values_free(&values);
    assert_ok(setting_values_read(&values, store, 2, &error));
    assert_int_equal(values.count, 0);
    /* what its method does not use is left out */
    assert_int_equal(number(path, "SELECT count(*) FROM settings WHERE run = 3 AND key GLOB 'merge.*'"), 0);
    assert_int_equal(number(path, "SELECT count(*) FROM settings WHERE run = 3"),
                     sizeof expected / sizeof *expected - 3);
    store_close(store);
    sample_remove(path);
}

/* What version 6 wrote, such as a run that was stopped, goes on in this one. */
static void a_database_without_class_experts_is_brought_up_to_date(void **state)
{
    (void)state;
    const struct embedded_file six[] = {
        schema_files[0], schema_files[1], schema_files[2], schema_files[3], schema_files[4], schema_files[5], {0}};
    char *path = sample_path("sixth.sqlite");
    struct database *database;
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(1);
    assert_ok(database_open(&database, path, true, &error));
    assert_ok(schema_upgrade(database, six, &error));
    database_close(database);
    assert_int_equal(number(path, "PRAGMA user_version"), 6);
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(sample_write_at_once(store, start.run, 1, -1, 0, -1, 0, &error));
    assert_int_equal(number(path, "SELECT count(*) FROM class_experts"), 4 * SAMPLE_TASKS);
    assert_ok(store_run_rewind(store, start.run, SAMPLE_TASKS - 1, 0, &error)); /* they go with their evaluation */
    assert_int_equal(number(path, "SELECT count(*) FROM class_experts"), 0);
    store_close(store);
    sample_remove(path);
}

static void a_failing_file_changes_nothing(void **state)
{
    (void)state;
    const struct embedded_file files[] = {
        SQL_FILE("1.sql", "CREATE TABLE a (x INTEGER)"),
        SQL_FILE("2.sql", "INSERT INTO a VALUES (1); CREATE TABLE b (y); SELECT nonsense"),
        {0}};
    char *path = sample_path("old.sqlite");
    struct database *database;
    assert_ok(database_open(&database, path, true, &error));
    assert_fails(schema_upgrade(database, files, &error), ERROR_FORMAT, "2.sql");
    assert_int_equal(number(path, "PRAGMA user_version"), 1);
    assert_int_equal(number(path, "SELECT count(*) FROM a"), 0);
    assert_int_equal(number(path, "SELECT count(*) FROM sqlite_schema"), 1);
    database_close(database);
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

static void newer_schemas_are_refused(void **state)
{
    (void)state;
    char *path = sample_path("newer.sqlite");
    struct store *store;
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    store_close(store);
    execute(path, "PRAGMA user_version = 999");
    assert_fails(store_open(&store, path, STORE_WRITE, &error), ERROR_FORMAT, "or older, found 999");
    assert_fails(store_open(&store, path, STORE_READ, &error), ERROR_FORMAT, "newer version of this program");
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
    assert_ok(schema_overlay_views(reader, &error));
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
        cmocka_unit_test(old_schemas_are_brought_up_to_date),
        cmocka_unit_test(a_database_of_the_first_version_gets_the_new_columns),
        cmocka_unit_test(a_database_without_inputs_is_brought_up_to_date),
        cmocka_unit_test(a_database_without_settings_is_brought_up_to_date),
        cmocka_unit_test(a_database_without_class_experts_is_brought_up_to_date),
        cmocka_unit_test(a_failing_file_changes_nothing),
        cmocka_unit_test(other_programs_databases_are_refused_and_left_alone),
        cmocka_unit_test(newer_schemas_are_refused),
        cmocka_unit_test(stale_views_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
