/* Inputs and sessions of runs, and what becomes of a run whose inputs changed. */
#include "tests/test.h"

#include "results/store/store_internal.h"
#include "tests/results/sample.h"

static const struct input_row inputs[] = {
    {.task = -1, .kind = "weights", .path = "/w", .files = 1, .bytes = 10, .digest = "aa"},
    {.task = 0, .kind = "test", .path = "/d", .files = 3, .bytes = 30, .digest = "bb"},
    {.task = 0, .kind = "train", .path = "/d", .files = 4, .bytes = 40, .digest = "cc"},
};

static struct run_description description(int64_t seed)
{
    struct run_description run = sample_description(seed);
    run.settings_hash = "settings";
    run.folder = "runs/sample";
    run.inputs = inputs;
    run.input_count = sizeof inputs / sizeof *inputs;
    return run;
}

static int64_t number(struct store *store, const char *sql)
{
    int64_t value;
    assert_ok(database_integer(store->database, sql, &value, &error));
    return value;
}

static char *path;

static int create(void **state)
{
    struct error error;
    path = sample_path("inputs.sqlite");
    return store_open((struct store **)state, path, STORE_WRITE, &error) == OK ? 0 : -1;
}

static int destroy(void **state)
{
    store_close(*state);
    sample_remove(path);
    return 0;
}

/* A run of seed 1 up to an iteration of a task, stopped there. */
static int64_t stopped_run(struct store *store, int64_t task, int64_t iteration)
{
    struct run_description run = description(1);
    struct run_start start;
    assert_ok(store_run_start(store, &run, &start, &error));
    assert_true(start.created);
    assert_ok(sample_write(store, start.run, 1, -1, 0, task, iteration, &error));
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
    return start.run;
}

TEST_WITH(a_run_goes_on_with_other_inputs, create, destroy)
{
    struct store *store = *state, *other;
    struct run_description run = description(1);
    struct run_start start;
    struct input_row mended[] = {inputs[0], inputs[1], inputs[2]};
    int64_t id = stopped_run(store, 2, 1), rows = number(store, "SELECT count(*) FROM evaluations");
    run.suite_hash = "of the mended ones";
    mended[2].digest = "dd";
    assert_ok(store_run_claim(store, id, RUN_GOES_ON, &run, &start, &error));
    assert_false(start.created);
    assert_int_equal(start.run, id);
    assert_ok(store_open(&other, path, STORE_WRITE, &error));
    assert_fails(store_run_claim(other, id, RUN_ANEW, &run, &start, &error), ERROR_BUSY, "in use by another run");
    store_close(other);
    assert_int_equal(number(store, "SELECT suite_hash = 'of the mended ones' FROM runs"), 0);
    assert_ok(store_run_change_inputs(store, id, run.suite_hash, mended, 3, &error));
    assert_int_equal(number(store, "SELECT suite_hash = 'of the mended ones' FROM runs"), 1);
    assert_int_equal(number(store, "SELECT count(*) FROM inputs WHERE digest IN ('aa', 'bb', 'dd')"), 3);
    assert_int_equal(number(store, "SELECT count(*) FROM evaluations"), rows);
    assert_ok(store_change_task(store, id, 3, 77, 1, 2, &error));
    assert_int_equal(number(store, "SELECT training_images + unreadable_images FROM tasks WHERE task = 3"), 79);
}

TEST_WITH(a_run_that_begins_anew_loses_its_rows, create, destroy)
{
    struct store *store = *state;
    struct run_description run = description(1);
    struct run_start start;
    int64_t id = stopped_run(store, 2, 1);
    run.suite_hash = "of others";
    run.input_count = 1;
    assert_ok(store_run_claim(store, id, RUN_ANEW, &run, &start, &error));
    assert_true(start.created);
    assert_int_equal(start.run, id);
    assert_int_equal(number(store, "SELECT count(*) FROM runs WHERE suite_hash = 'of others' AND status = 'running'"),
                     1);
    assert_int_equal(number(store, "SELECT count(*) FROM inputs"), 1);
    for (size_t i = 4; i < STORE_TABLES; i++) { /* behind runs, settings, inputs and sessions */
        char sql[64];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", store_tables[i].name);
        assert_int_equal(number(store, sql), 0);
    }
}
