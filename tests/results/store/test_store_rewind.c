/* A run that was stopped and went on ends with the rows of one that was not. */
#include "tests/results/check.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "core/digest.h"
#include "results/store.h"
#include "tests/results/sample.h"

static void digest_rows(sqlite3 *database, const char *sql, int64_t run, struct digest *digest, int *rows)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_int64(statement, 1, run);
    for (*rows = 0; sqlite3_step(statement) == SQLITE_ROW; ++*rows)
        for (int column = 0; column < sqlite3_column_count(statement); column++) {
            const void *data = sqlite3_column_blob(statement, column);
            size_t size = (size_t)sqlite3_column_bytes(statement, column);
            digest_add(digest, &size, sizeof size);
            digest_add(digest, data ? data : "", data ? size : 0);
        }
    sqlite3_finalize(statement);
}

/* Everything but the clock's tables, without the run's number. */
static void digest_run(const char *path, int64_t run, char hash[DIGEST_SIZE])
{
    static const char *const queries[] = {
        "SELECT task, name, classes, training_images, test_images, test_digest FROM tasks WHERE run = ?1",
        "SELECT after_task, task, correct, images FROM evaluations WHERE run = ?1 ORDER BY 1, 2",
        "SELECT after_task, task, kind, data FROM per_image WHERE run = ?1 ORDER BY 1, 2",
        "SELECT task, encoder, block, expert, count FROM expert_counts WHERE run = ?1",
        "SELECT task, after_task, block, class, expert, count FROM class_experts WHERE run = ?1",
        "SELECT task, after_task, image, block, file, width, experts FROM patch_experts WHERE run = ?1",
        ("SELECT task, iteration, encoder, block, position, event, target, t1, t2, mixture, reason FROM expert_events "
         "WHERE run = ?1"),
        "SELECT task, iteration, encoder, block, position, known, chosen, choices, iterations FROM merge_effects WHERE "
        "run = ?1",
        "SELECT after_task, task, router, count FROM router_choices WHERE run = ?1",
        "SELECT task, threshold FROM selector_thresholds WHERE run = ?1",
        "SELECT task, iteration, CAST(printf('%!.17g', loss) AS TEXT), learning_rate FROM steps WHERE run = ?1",
        "SELECT task, iteration, phase, iterations, images FROM timings WHERE run = ?1 ORDER BY 1, 2, 3",
        "SELECT task, kind, path, bytes FROM artifacts WHERE run = ?1"};
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    struct digest digest = digest_begin();
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        int rows;
        digest_rows(database, queries[i], run, &digest, &rows);
        assert_true(rows > 0);
    }
    digest_end(&digest, hash);
    sqlite3_close(database);
}

struct stop {
    int64_t task, iteration;                       /* where the run was killed, */
    int64_t checkpoint_task, checkpoint_iteration; /* where its last after_task was */
};

static void write_stopped_run(struct store *store, int64_t seed, const struct stop *stop)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(sample_write_at_once(store, start.run, seed, -1, 0, stop->task, stop->iteration, &error));
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
}

static int64_t resume_run(struct store *store, int64_t seed, const struct stop *stop)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_false(start.created);
    assert_ok(store_run_rewind(store, start.run, stop->checkpoint_task, stop->checkpoint_iteration, &error));
    assert_ok(
        sample_write_at_once(store, start.run, seed, stop->checkpoint_task, stop->checkpoint_iteration, -1, 0, &error));
    assert_ok(store_run_end(store, start.run, RUN_FINISHED, NULL, &error));
    return start.run;
}

static void a_resumed_run_has_the_rows_of_an_uninterrupted_one(void **state)
{
    (void)state;
    const struct stop stops[] = {
        {0, 7, -1, 0},                /* before any after_task */
        {2, 15, 2, 10},               /* a checkpoint within the task */
        {2, 15, 2, 0},                /* one after each task */
        {2, 15, 1, 10},               /* an older one */
        {3, 1, 2, SAMPLE_ITERATIONS}, /* after the last iteration, before the freeze and the evaluations */
        {-1, 0, 3, 10},               /* killed behind the end */
        {-1, 0, SAMPLE_TASKS, 0},     /* nothing left to do */
    };
    char *path = sample_path("results.sqlite"), *expected_path = sample_path("results.sqlite");
    struct store *store, *uninterrupted;
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_ok(store_open(&uninterrupted, expected_path, STORE_WRITE, &error));
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        int64_t seed = 100 + (int64_t)i;
        char expected[DIGEST_SIZE], found[DIGEST_SIZE];
        write_stopped_run(store, seed, &stops[i]);
        sample_finished_run(store, 1000 + seed); /* another run's rows in between, to be left alone */
        digest_run(path, resume_run(store, seed, &stops[i]), found);
        digest_run(expected_path, sample_finished_run(uninterrupted, seed), expected);
        assert_string_equal(found, expected);
    }
    assert_ok(store_check(store, &error));
    store_close(uninterrupted);
    store_close(store);
    sample_remove(expected_path);
    sample_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_resumed_run_has_the_rows_of_an_uninterrupted_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
