/* The list of tables; a run that was stopped and went on ends with the rows of one that was not. */
#include <stdio.h>

#include "tests/results/sample.h"
#include "tests/results/store/same_run.h"

struct stop {
    int64_t task, iteration;                       /* where the run was killed, */
    int64_t checkpoint_task, checkpoint_iteration; /* where its last checkpoint was */
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
    int64_t task = stop->checkpoint_task, iteration = stop->checkpoint_iteration;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_false(start.created);
    assert_ok(store_run_rewind(store, start.run, task, iteration, &error));
    assert_ok(sample_write_at_once(store, start.run, seed, task, iteration, -1, 0, &error));
    assert_ok(store_run_end(store, start.run, RUN_FINISHED, NULL, &error));
    return start.run;
}

static void a_resumed_run_has_the_rows_of_an_uninterrupted_one(void **state)
{
    (void)state;
    const struct stop stops[] = {
        {0, 7, -1, 0},                /* before any checkpoint */
        {2, 15, 2, 10},               /* a checkpoint within the task */
        {2, 15, 2, 0},                /* one after each task */
        {2, 15, 1, 10},               /* an older one */
        {3, 1, 2, SAMPLE_ITERATIONS}, /* after the last iteration, before the freeze and the evaluations */
        {-1, 0, 3, 10},               /* killed behind the end */
        {-1, 0, SAMPLE_TASKS, 0},     /* nothing left to do */
    };
    struct store *store, *uninterrupted;
    char *path = sample_path("results.sqlite"), *whole_path = sample_path("results.sqlite");
    assert_ok(store_open(&uninterrupted, whole_path, STORE_WRITE, &error));
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        int64_t seed = 100 + (int64_t)i;
        write_stopped_run(store, seed, &stops[i]);
        sample_finished_run(store, 1000 + seed); /* another run's rows in between, to be left alone */
        int64_t whole = sample_finished_run(uninterrupted, seed), resumed = resume_run(store, seed, &stops[i]);
        assert_same_run(uninterrupted, whole, store, resumed);
        whole = sample_finished_run(uninterrupted, 1000 + seed);
        assert_ok(store_run_find(store, sample_description(0).suite_hash, 1000 + seed, &resumed,
                                 &(enum run_status){RUN_FINISHED}, &error));
        assert_same_run(uninterrupted, whole, store, resumed);
    }
    assert_ok(store_check(store, &error));
    store_close(uninterrupted);
    store_close(store);
    sample_remove(whole_path);
    sample_remove(path);
}

static int64_t number(struct store *store, const char *format, const char *table)
{
    char sql[256];
    int64_t found;
    snprintf(sql, sizeof sql, format, table);
    assert_ok(database_integer(store->database, sql, &found, &error));
    return found;
}

/* After the first task a rewind removes what came after it, all in all everything, and an erased run has nothing. */
static void every_table_of_the_schema_is_rewound_and_erased(void **state)
{
    (void)state;
    static const int64_t tasks[] = {1, -1};
    struct store *store;
    char *path = sample_path("results.sqlite");
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    int64_t run = sample_finished_run(store, 1), digests[3];
    assert_int_equal(number(store,
                            "SELECT count(*) FROM sqlite_schema AS t WHERE type = 'table' AND EXISTS "
                            "(SELECT 1 FROM pragma_table_info(t.name) WHERE name = '%s')",
                            "run"),
                     STORE_TABLES);
    assert_ok(store_digest_rows(store, run, 1, 0, &digests[0], &error));
    for (size_t i = 0; i < 2; i++) {
        int64_t before[STORE_TABLES];
        for (size_t t = 0; t < STORE_TABLES; t++)
            before[t] = number(store, "SELECT count(*) FROM %s", store_tables[t].name);
        assert_ok(store_run_rewind(store, run, tasks[i], 0, &error));
        assert_ok(store_digest_rows(store, run, 1, 0, &digests[1 + i], &error));
        for (size_t t = 0; t < STORE_TABLES; t++) {
            int64_t left = number(store, "SELECT count(*) FROM %s", store_tables[t].name);
            if (store_tables[t].after && i == 1)
                assert_int_equal(left, 0);
            else if (store_tables[t].after && before[t] > 0)
                assert_true(left < before[t]);
            else
                assert_int_equal(left, before[t]);
        }
    }
    assert_int_equal(digests[0], digests[1]); /* of what the first rewind left; the second left nothing */
    assert_int_equal(digests[2], 0);
    assert_ok(run_rows_erase(store->database, run, &error));
    for (size_t t = 0; t < STORE_TABLES; t++)
        assert_int_equal(number(store, "SELECT count(*) FROM %s", store_tables[t].name), 0);
    store_close(store);
    sample_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_resumed_run_has_the_rows_of_an_uninterrupted_one),
                                       cmocka_unit_test(every_table_of_the_schema_is_rewound_and_erased)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
