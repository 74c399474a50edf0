/* mtil verify's checks: a sound database has no faults, and each kind of corruption is named with its run. */
#include "tests/results/check.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/file.h"
#include "results/verify.h"
#include "tests/results/sample.h"

/* The sample's classes and merges are not those that a run would have. */
static const char sound_sql[] =
    "UPDATE tasks SET classes = 2; DELETE FROM expert_events WHERE event = 'merge' AND task > 1; "
    "DELETE FROM merge_effects WHERE task > 1; "
    "INSERT INTO settings SELECT run, 'adapter.top_k', 2, 'integer' FROM runs;";

static void execute(const char *path, const char *sql)
{
    sqlite3 *database;
    char *said = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    sqlite3_exec(database, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    if (sqlite3_exec(database, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static int create(void **state)
{
    struct store *store;
    *state = sample_path("results.db");
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= 3; seed++)
        sample_finished_run(store, seed);
    store_close(store);
    execute(*state, sound_sql);
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

static void verify(const char *path, int64_t run, struct verification *verification)
{
    struct store *store;
    *verification = (struct verification){.runs = &run, .count = run > 0};
    assert_ok(store_open(&store, path, STORE_READ, &error));
    assert_ok(verify_database(store, verification, &error));
    store_close(store);
    verification->runs = NULL;
}

static void expect_sound(const char *path, int64_t run)
{
    struct verification verification;
    struct text text = {0};
    verify(path, run, &verification);
    assert_ok(table_render(&verification.faults, TABLE_TEXT, false, &text, &error));
    if (table_rows(&verification.faults) != 0)
        fail_msg("%s", text.data);
    text_free(&text);
    verification_free(&verification);
}

static void a_sound_database_has_no_faults(void **state)
{
    struct verification verification;
    expect_sound(*state, 0);
    expect_sound(*state, 2);
    verify(*state, 0, &verification);
    assert_true(table_rows(&verification.checked) >= 5);
    assert_int_equal(verification.missing_files, 12); /* the sample's, which were never written */
    verification_free(&verification);
}

static const struct corruption {
    const char *sql, *what, *where;
} corruptions[] = {
    {"UPDATE evaluations SET correct = correct - 1 WHERE run = 2 AND task = 1 AND after_task = 2", "images",
     "task 1, after task 2"},
    {"UPDATE per_image SET data = zeroblob(25) WHERE run = 2 AND task = 1 AND after_task = 0", "images",
     "task 1, after task 0"},
    {"UPDATE per_image SET data = x'0102' WHERE run = 2 AND task = 3 AND after_task = 3", "images",
     "task 3, after task 3"},
    {"UPDATE evaluations SET images = 201 WHERE run = 2 AND task = 1 AND after_task = 2", "evaluations",
     "task 1, after task 2"},
    {"DELETE FROM per_image WHERE run = 2; DELETE FROM evaluations WHERE run = 2 AND task = 2 AND after_task = 1",
     "matrix", "task 2, after task 1"},
    {"INSERT INTO evaluations VALUES (2, 0, 9, 1, 200)", "evaluations", "task 0, after task 9"},
    {"DELETE FROM tasks WHERE run = 2 AND task = 3", "tasks", "rows"},
    {"DELETE FROM runs WHERE run = 2", "foreign keys", "tasks"},
    {"DELETE FROM tasks WHERE run = 2 AND task = 0", "foreign keys", "steps"},
    {"DELETE FROM task_classes WHERE run = 2 AND task = 1 AND class = 0", "classes", "task 1"},
    {"UPDATE router_choices SET count = count + 1 WHERE run = 2 AND task = 1 AND after_task = 0 AND router = -1",
     "routers", "task 1, after task 0"},
    {"UPDATE router_choices SET router = 77 WHERE run = 2 AND task = 1 AND after_task = 0 AND router = -1", "routers",
     "task 1, after task 0"},
    {"DELETE FROM selector_thresholds WHERE run = 2 AND task = 1", "thresholds", "rows"},
    {"DELETE FROM expert_counts WHERE run = 2 AND task = 1 AND expert = 0", "experts", "task 1, image block 1"},
    {"DELETE FROM expert_counts WHERE run = 2 AND task = 1", "experts", "rows"},
    {"UPDATE patch_experts SET image = 200 WHERE run = 2 AND task = 1", "patch experts", "task 1, image 200, block 1"},
    {"UPDATE patch_experts SET width = 4 WHERE run = 2 AND task = 1", "patch experts", "task 1, image 100, block 1"},
    {"UPDATE patch_experts SET experts = '[5,0,' WHERE run = 2 AND task = 1", "patch experts",
     "task 1, image 100, block 1"},
    {"UPDATE patch_experts SET experts = '[]' WHERE run = 2 AND task = 1", "patch experts",
     "task 1, image 100, block 1"},
    {"UPDATE patch_experts SET experts = '[5,0,6,2,2,1]' WHERE run = 2 AND task = 1", "patch experts",
     "task 1, image 100, block 1"},
    {"UPDATE patch_experts SET experts = '[5,0,null,2,2,1]' WHERE run = 2 AND task = 1", "patch experts",
     "task 1, image 100, block 1"},
    {"UPDATE class_experts SET class = 2 WHERE run = 2 AND task = 1 AND expert = 5", "class experts",
     "task 1, after task 3, block 1"},
    {"UPDATE class_experts SET expert = 6 WHERE run = 2 AND task = 1 AND expert = 5", "class experts",
     "task 1, after task 3, block 1"},
    {"UPDATE class_experts SET count = count + 1 WHERE run = 2 AND task = 1 AND expert = 5", "class experts",
     "task 1, after task 3, block 1"},
    {"INSERT INTO settings VALUES (2, 'adapter.routing', 'per_token', 'text'); "
     "UPDATE class_experts SET count = count + 1 WHERE run = 2 AND task = 1 AND expert = 5",
     "class experts", "task 1, after task 3, block 1"},
    {"INSERT INTO settings VALUES (2, 'adapter.routing', 'per_token', 'text'); INSERT INTO class_experts "
     "SELECT run, task, after_task, 2, class, expert, 2 * count, gate FROM class_experts WHERE run = 2 AND task = 1",
     "class experts", "task 1, after task 3, block 1"},
    {"UPDATE expert_events SET target = 6 WHERE run = 2 AND task = 1 AND event = 'merge'", "events",
     "task 1, image block 1, iteration 10"},
    {"UPDATE expert_events SET t1 = -2 WHERE run = 2 AND task = 1 AND event = 'merge'", "events",
     "task 1, image block 1, iteration 10"},
    {"UPDATE expert_events SET mixture = '[[0, 0.5], [9, 0.5]]' WHERE run = 2 AND task = 1 AND event = 'merge'",
     "events", "task 1, image block 1, iteration 10"},
    {"UPDATE expert_events SET mixture = '[[' WHERE run = 2 AND task = 1 AND event = 'merge'", "events",
     "task 1, image block 1, iteration 10"},
    {"UPDATE expert_events SET reason = NULL WHERE run = 2 AND task = 1 AND event = 'skip'", "events",
     "task 1, image block 1, iteration 20"},
    {"UPDATE expert_events SET position = 4 WHERE run = 2 AND task = 1 AND event = 'merge'", "events",
     "task 1, image block 1, iteration 10"},
    {"UPDATE merge_effects SET iteration = 20 WHERE run = 2 AND task = 1 AND encoder = 'image'", "effects",
     "task 1, image block 1, iteration 20"},
    {"UPDATE expert_events SET target = 0 WHERE run = 2 AND task = 1 AND event = 'merge'", "frozen",
     "task 1, image block 1, iteration 10"},
    {"UPDATE expert_events SET iteration = 19 WHERE run = 2 AND task = 1 AND event = 'freeze'", "events",
     "task 1, image block 1"},
    {"UPDATE expert_events SET iteration = 99 WHERE run = 2 AND task = 1 AND event = 'merge'", "events",
     "task 1, image block 1"},
    {"UPDATE steps SET learning_rate = -1 WHERE run = 2 AND task = 1 AND iteration = 3", "steps",
     "task 1, iteration 3"},
    {"UPDATE settings SET value = 19 WHERE run = 2 AND key = 'training.iterations'", "steps", "task 0, last step"},
    {"INSERT INTO settings VALUES (2, 'tasks.flowers.iterations', 25, 'integer')", "steps", "task 3, last step"},
    {"INSERT INTO settings VALUES (2, 'training.reference_iterations', 'true', 'boolean')", "steps",
     "task 0, last step"},
    {"DELETE FROM settings WHERE run = 2", "settings", "rows"},
    {"UPDATE runs SET finished = NULL WHERE run = 2", "runs", "status finished"},
    {"DROP VIEW metrics; CREATE VIEW metrics AS SELECT run, avg(transfer) AS transfer, avg(average) AS average, "
     "avg(last) + 1 AS last, avg(forgetting) AS forgetting, avg(backward_transfer) AS backward_transfer, "
     "avg(forward_transfer) AS "
     "forward_transfer, avg(gain) AS gain, avg(zero_shot) AS zero_shot FROM task_metrics GROUP BY run",
     "metrics", "metrics, last"},
    {"DROP VIEW leaderboard; CREATE VIEW leaderboard AS SELECT suite_hash, avg(transfer) AS transfer, 1 AS "
     "transfer_variance, avg(average) AS average, 1 AS average_variance, avg(last) AS last, 1 AS last_variance, "
     "avg(forgetting) AS forgetting, avg(backward_transfer) AS backward_transfer, avg(gain) AS gain FROM runs JOIN "
     "metrics USING (run) GROUP BY suite_hash",
     "leaderboard", "last_variance"},
    {"DROP VIEW selector; CREATE VIEW selector AS SELECT run, task, after_task, 7.0 AS share FROM router_choices",
     "views", "selector, task 0, after task -1"},
    {"DROP VIEW frozen_counts", "schema", "frozen_counts"},
    {"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'count >= 0', 'count >= 1') "
     "WHERE name = 'expert_counts'",
     "schema", "expert_counts"},
    {"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '''text''', '''te xt''') "
     "WHERE name = 'expert_events'",
     "schema", "expert_events"},
};

/* Some fault says so; those of a run name the run. */
static bool names(const struct table *faults, const struct corruption *corruption)
{
    for (size_t row = 0; row < table_rows(faults); row++) {
        const struct table_cell *run = table_cell_at(faults, row, 0);
        bool right_run = run->kind == CELL_EMPTY || run->integer == 2;
        if (strcmp(table_cell_at(faults, row, 1)->text, corruption->what) == 0 && right_run &&
            strstr(table_cell_at(faults, row, 2)->text, corruption->where) != NULL)
            return true;
    }
    return false;
}

static void every_corruption_is_named(void **state)
{
    char *copy = path_format("%s.copy", (char *)*state);
    for (size_t i = 0; i < sizeof corruptions / sizeof *corruptions; i++) {
        struct verification verification;
        struct bytes bytes;
        struct text text = {0};
        assert_ok(file_read(*state, FILE_LIMIT, &bytes, &error));
        assert_ok(file_write(copy, bytes.data, bytes.size, &error));
        bytes_free(&bytes);
        execute(copy, corruptions[i].sql);
        verify(copy, 0, &verification);
        assert_ok(table_render(&verification.faults, TABLE_TEXT, false, &text, &error));
        if (!names(&verification.faults, &corruptions[i]))
            fail_msg("%s: expected %s, %s, found:\n%s", corruptions[i].sql, corruptions[i].what, corruptions[i].where,
                     text.data);
        text_free(&text);
        verification_free(&verification);
    }
    free(copy);
}

/* Those of another program. */
static void comments_may_differ(void **state)
{
    execute(*state, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET "
                    "sql = replace(sql, '-- UTC, ', '-- of the clock, not ')");
    expect_sound(*state, 0);
}

static void other_runs_are_not_looked_at(void **state)
{
    execute(*state, "UPDATE evaluations SET correct = correct - 1 WHERE run = 2");
    expect_sound(*state, 1);
    struct store *store;
    struct verification verification = {.runs = (int64_t[]){9}, .count = 1};
    assert_ok(store_open(&store, *state, STORE_READ, &error));
    assert_fails(verify_database(store, &verification, &error), ERROR_ARGUMENT, "no run 9");
    verification_free(&verification);
    store_close(store);
}

static void expect_file_fault(const char *path, const char *word)
{
    struct verification verification;
    verify(path, 2, &verification);
    assert_int_equal(table_rows(&verification.faults), 1);
    assert_string_equal(table_cell_at(&verification.faults, 0, 1)->text, "files");
    assert_non_null(strstr(table_cell_at(&verification.faults, 0, 4)->text, word));
    verification_free(&verification);
}

static void files_are_compared_with_their_digests(void **state)
{
    struct store *store;
    char digest[DIGEST_SIZE], other[DIGEST_SIZE], *file = path_format("%s.weights", (char *)*state);
    digest_text("weights", digest);
    digest_text("weighty", other);
    assert_ok(file_write(file, "weights", 7, &error));
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    assert_ok(store_add(store, 2, "artifacts",
                        NAMED({"task", value_integer(0)}, {"kind", value_text("weights")}, {"path", value_text(file)},
                              {"bytes", value_integer(7)}, {"digest", value_text(digest)}),
                        &error));
    store_close(store);
    expect_sound(*state, 2);
    assert_ok(file_write(file, "weighty", 7, &error));
    expect_file_fault(*state, other);
    assert_ok(file_write(file, "short", 5, &error));
    expect_file_fault(*state, "5 bytes");
    unlink(file);
    expect_sound(*state, 2);
    free(file);
}

/* A page of a table is noise. */
static void a_damaged_file_is_a_fault(void **state)
{
    struct verification verification;
    FILE *file = fopen(*state, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 4096L * 12, SEEK_SET), 0);
    for (int i = 0; i < 4096; i++)
        fputc(0x5a, file);
    fclose(file);
    verify(*state, 0, &verification);
    assert_true(table_rows(&verification.faults) > 0);
    verification_free(&verification);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sound_database_has_no_faults, create, destroy),
        cmocka_unit_test_setup_teardown(every_corruption_is_named, create, destroy),
        cmocka_unit_test_setup_teardown(comments_may_differ, create, destroy),
        cmocka_unit_test_setup_teardown(other_runs_are_not_looked_at, create, destroy),
        cmocka_unit_test_setup_teardown(files_are_compared_with_their_digests, create, destroy),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_a_fault, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
