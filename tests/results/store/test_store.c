/* Runs and their rows: found, locked, written, read back, rewound; the schema; and what lies beside the file. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "results/store/join.h"
#include "results/store/store_internal.h"
#include "tests/results/matrix.h"
#include "tests/results/sample.h"

static char *path;

static struct store *open_store(enum store_mode mode)
{
    struct store *store;
    assert_ok(store_open(&store, path, mode, &error));
    return store;
}

static int create(void **state)
{
    path = sample_path("results.sqlite");
    *state = open_store(STORE_WRITE);
    return 0;
}

static int destroy(void **state)
{
    store_close(*state);
    sample_remove(path);
    return 0;
}

/* --- Runs --- */

static struct run_start start_run(struct store *store, int64_t seed)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    return start;
}

/* The run of a seed, 0: none. */
static int64_t find(struct store *store, int64_t seed, enum run_status *past)
{
    int64_t found;
    assert_ok(store_run_find(store, sample_description(seed).suite_hash, seed, &found, past, &error));
    return found;
}

TEST_WITH(a_run_is_found_again_by_suite_and_seed, create, destroy)
{
    struct store *store = *state;
    enum run_status past = RUN_FAILED;
    struct run_start first = start_run(store, 1), again, other;
    assert_true(first.created && first.run > 0);
    assert_ok(store_run_end(store, first.run, RUN_STOPPED, NULL, &error));
    again = start_run(store, 1);
    assert_true(!again.created && again.run == first.run && again.past == RUN_STOPPED);
    other = start_run(store, 2);
    assert_true(other.created && other.run != first.run);
    assert_true(find(store, 2, &past) == other.run && past == RUN_RUNNING);
    assert_int_equal(find(store, 3, &past), 0);
    int64_t finished = sample_finished_run(store, 4);
    assert_int_equal(start_run(store, 4).past, RUN_FINISHED);
    assert_true(find(store, 4, &past) == finished && past == RUN_FINISHED); /* it stays finished */
}

TEST_WITH(a_run_has_one_writer, create, destroy)
{
    struct store *store = *state, *rival = open_store(STORE_WRITE);
    struct run_description description = sample_description(7);
    struct run_start start = start_run(store, 7), refused;
    assert_fails(store_run_start(rival, &description, &refused, &error), ERROR_BUSY, "in use by another run: run 1");
    start_run(rival, 8);
    assert_ok(store_run_end(store, start.run, RUN_FAILED, "the disk burnt", &error));
    assert_int_equal(start_run(rival, 7).past, RUN_FAILED);
    store_close(rival);
}

/* --- Rows --- */

TEST_WITH(what_a_run_wrote_is_read_back, create, destroy)
{
    struct store *store = *state;
    int64_t run = sample_finished_run(store, 3);
    struct run_matrix read;
    struct per_image kept;
    struct run_row row;
    assert_ok(run_matrix_read(store, run, &read, &error));
    assert_int_equal(read.matrix.tasks, SAMPLE_TASKS);
    for (int64_t i = -1; i < SAMPLE_TASKS; i++)
        for (int64_t j = 0; j < SAMPLE_TASKS; j++) {
            double found = i < 0 ? read.matrix.zero_shot[j] : read.matrix.accuracy[i * SAMPLE_TASKS + j];
            assert_true(found == 100.0 * (double)sample_correct(3, i, j) / SAMPLE_IMAGES);
        }
    run_matrix_free(&read);
    assert_ok(store_read_per_image(store, run, 2, 1, &kept, &error));
    assert_true(kept.kind == PER_IMAGE_BITS && kept.images == SAMPLE_IMAGES);
    assert_int_equal(per_image_correct(&kept), sample_correct(3, 2, 1));
    per_image_free(&kept);
    assert_ok(store_run_end(store, run, RUN_FAILED, "the disk burnt", &error));
    assert_ok(store_read_run(store, run, &row, &error));
    assert_string_equal(row.suite_text, sample_description(3).suite_text);
    assert_string_equal(row.status, "failed");
    run_row_free(&row);
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM runs WHERE message = 'the disk burnt'"), 1);
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM settings WHERE typeof(value) = type"), 3);
}

TEST_WITH(what_is_missing_is_none, create, destroy)
{
    struct store *store = *state;
    struct run_start start = start_run(store, 1);
    struct run_matrix read;
    struct per_image kept;
    struct run_row row;
    assert_ok(sample_write(store, start.run, 1, -1, 0, 1, 1, &error));
    assert_ok(run_matrix_read(store, start.run, &read, &error));
    assert_false(isnan(read.matrix.accuracy[0]));
    assert_true(isnan(read.matrix.accuracy[SAMPLE_TASKS]));
    assert_true(isnan(metric_mean(metric_find("last"), &read.matrix)));
    run_matrix_free(&read);
    assert_ok(store_read_per_image(store, start.run, 2, 1, &kept, &error));
    assert_int_equal(kept.kind, PER_IMAGE_NONE);
    assert_fails(store_read_run(store, 99, &row, &error), ERROR_ARGUMENT, "there is no run 99");
}

/* Names and values may change as soon as the call has returned. */
TEST_WITH(rows_that_wait_are_copies, create, destroy)
{
    struct store *store = *state;
    int64_t run = sample_finished_run(store, 1);
    char name[] = "steps";
    store_begin(store);
    for (int64_t task = 0; task < 2; task++) {
        strcpy(name, "steps");
        assert_ok(store_add(store, run, "skipped_steps",
                            NAMED({"task", value_integer(task)}, {name, value_integer(3 + task)}), &error));
        strcpy(name, "task");
    }
    assert_ok(store_commit(store, &error));
    assert_int_equal(sample_ask(store, "SELECT sum(steps) FROM skipped_steps"), 7);
}

TEST_WITH(wrong_rows_are_refused, create, destroy)
{
    struct store *store = *state;
    int64_t run = sample_finished_run(store, 1);
    uint8_t right[4] = {1, 1, 0, 0};
    struct per_image kept = {.kind = PER_IMAGE_BITS, .images = 4, .right = right};
    struct evaluation_row row = {.after_task = 4, .task = 0, .correct = 3, .images = 4, .per_image = &kept};
    struct sample_task task = {
        .task = 0, .name = "aircraft", .classes = 7, .training_images = 1000, .test_images = 200};
    assert_fails(store_add_evaluation(store, run, &row, &error), ERROR_ARGUMENT, "2 right of 4 images");
    row.per_image = NULL;
    row.correct = 5;
    assert_fails(store_add_evaluation(store, run, &row, &error), ERROR_ARGUMENT, "CHECK");
    assert_fails(sample_add_step(store, run, 0, 1, 0, &error), ERROR_ARGUMENT, "UNIQUE constraint failed: steps");
    assert_fails(sample_add_step(store, 99, 0, 1, 0, &error), ERROR_ARGUMENT, "run 99");
    assert_fails(sample_add_task(store, run, &task, &error), ERROR_ARGUMENT, "recorded with other data");
    assert_fails(store_add(store, run, "tasks", NAMED({"colour", value_integer(1)}), &error), ERROR_ARGUMENT,
                 "no column named colour");
    assert_fails(store_add(store, run, "cars", NAMED({"task", value_integer(1)}), &error), ERROR_ARGUMENT,
                 "table cars");
    const struct named_value labels[] = {{"task", value_integer(0)}, {"labels", value_blob("\1\0", 2)}},
                             others[] = {labels[0], {"labels", value_blob("\0\0", 2)}};
    assert_ok(store_add(store, run, "test_labels", NAMED(labels[0], labels[1]), &error));
    assert_ok(store_add(store, run, "test_labels", NAMED(labels[0], labels[1]), &error)); /* of a resumed run */
    assert_fails(store_add(store, run, "test_labels", NAMED(others[0], others[1]), &error), ERROR_ARGUMENT,
                 "with other data");
    /* a failed statement of its own leaves no transaction behind */
    assert_ok(database_execute(store->database, "BEGIN; COMMIT", &error));

    store_begin(store); /* of many rows none is written */
    for (int64_t iteration = 21; iteration < 24; iteration++)
        assert_ok(sample_add_step(store, run, 2, iteration, 0, &error));
    assert_ok(sample_add_step(store, run, 2, 22, 0, &error));
    assert_fails(store_commit(store, &error), ERROR_ARGUMENT, "UNIQUE constraint failed: steps");
    store_rollback(store);
    assert_ok(store_commit(store, &error)); /* harmless */
    assert_ok(sample_add_step(store, run, 2, 22, 0, &error));
}

/* A run that collects its rows for hours keeps nobody from writing. */
TEST_WITH(collecting_runs_do_not_wait_for_each_other, create, destroy)
{
    struct store *store = *state, *rival = open_store(STORE_WRITE);
    struct run_start start = start_run(store, 1), rival_start;
    database_set_patience(store_database(store), 0);
    database_set_patience(store_database(rival), 0);
    store_begin(store);
    assert_ok(sample_write(store, start.run, 1, -1, 0, -1, 0, &error));
    rival_start = start_run(rival, 2);
    assert_ok(sample_write_at_once(rival, rival_start.run, 2, -1, 0, -1, 0, &error));
    assert_ok(store_commit(store, &error));
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM metrics"), 2);
    store_close(rival);
}

/* Another database has the whole run; query/join.txt has what else becomes one. */
TEST_WITH(a_run_that_is_being_written_is_not_replaced, create, destroy)
{
    struct store *store = *state, *other;
    struct run_start start = start_run(store, 3);
    struct join_settings settings = {0};
    struct join_counts counts;
    char *whole = sample_path("whole.db");
    assert_ok(store_open(&other, whole, STORE_WRITE, &error));
    sample_finished_run(other, 3);
    store_close(other);
    const char *const inputs[] = {whole};
    assert_fails(join_databases(path, inputs, 1, &settings, &counts, &error), ERROR_BUSY, "seed 3) is being written");
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
    assert_ok(join_databases(path, inputs, 1, &settings, &counts, &error));
    assert_int_equal(counts.completed, 1);
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM metrics"), 1);
    sample_remove(whole);
}

/* --- Rewinding --- */

/* In the tables that training fills, which in a sample have rows. Made-up times are the same, too. */
static void assert_same_run(struct store *one, int64_t first, struct store *other, int64_t second)
{
    struct run_rows a = {.database = one->database, .name = "one"}, b = {.database = other->database, .name = "other"};
    for (size_t i = 0; i < STORE_TABLES; i++) {
        struct row_difference difference = {0};
        if (store_tables[i].local && !store_tables[i].after)
            continue;
        assert_ok(run_rows_compare_table(&a, first, &b, second, i, &difference, &error));
        if (difference.contradiction.size || difference.only_first.size || difference.only_second.size)
            fail_msg("%s: %s%s%s", store_tables[i].name, difference.contradiction.data, difference.only_first.data,
                     difference.only_second.data);
        row_difference_free(&difference);
    }
    run_rows_close(&a);
    run_rows_close(&b);
}

struct stop {
    int64_t task, iteration;                       /* where the run was killed, */
    int64_t checkpoint_task, checkpoint_iteration; /* where its last checkpoint was */
};

static int64_t write_stopped_and_resume(struct store *store, int64_t seed, const struct stop *stop)
{
    struct run_start start = start_run(store, seed);
    int64_t task = stop->checkpoint_task, iteration = stop->checkpoint_iteration;
    assert_ok(sample_write_at_once(store, start.run, seed, -1, 0, stop->task, stop->iteration, &error));
    assert_ok(store_run_end(store, start.run, RUN_STOPPED, NULL, &error));
    sample_finished_run(store, 1000 + seed); /* another run's rows in between, to be left alone */
    start = start_run(store, seed);
    assert_false(start.created);
    assert_ok(store_run_rewind(store, start.run, task, iteration, &error));
    assert_ok(sample_write_at_once(store, start.run, seed, task, iteration, -1, 0, &error));
    assert_ok(store_run_end(store, start.run, RUN_FINISHED, NULL, &error));
    return start.run;
}

TEST_WITH(a_resumed_run_has_the_rows_of_an_uninterrupted_one, create, destroy)
{
    static const struct stop stops[] = {
        {0, 7, -1, 0},                /* before any checkpoint */
        {2, 15, 2, 10},               /* a checkpoint within the task */
        {2, 15, 2, 0},                /* one after each task */
        {2, 15, 1, 10},               /* an older one */
        {3, 1, 2, SAMPLE_ITERATIONS}, /* after the last iteration, before the freeze and the evaluations */
        {-1, 0, 3, 10},               /* killed behind the end */
        {-1, 0, SAMPLE_TASKS, 0},     /* nothing left to do */
    };
    struct store *store = *state, *uninterrupted;
    char *whole_path = sample_path("results.sqlite");
    enum run_status past;
    assert_ok(store_open(&uninterrupted, whole_path, STORE_WRITE, &error));
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        int64_t seed = 100 + (int64_t)i, run = write_stopped_and_resume(store, seed, &stops[i]);
        assert_same_run(uninterrupted, sample_finished_run(uninterrupted, seed), store, run);
        assert_same_run(uninterrupted, sample_finished_run(uninterrupted, 1000 + seed), store,
                        find(store, 1000 + seed, &past));
    }
    assert_ok(sample_check(store, &error));
    store_close(uninterrupted);
    sample_remove(whole_path);
}

static void count_rows(struct store *store, int64_t rows[STORE_TABLES])
{
    char sql[256];
    for (size_t t = 0; t < STORE_TABLES; t++) {
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", store_tables[t].name);
        rows[t] = sample_ask(store, sql);
    }
}

/* After the first task a rewind removes what came after it, all in all everything, and an erased run has nothing. */
TEST_WITH(every_table_of_the_schema_is_rewound_and_erased, create, destroy)
{
    struct store *store = *state;
    int64_t run = sample_finished_run(store, 1), digests[3], before[STORE_TABLES], left[STORE_TABLES];
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM sqlite_schema AS t WHERE type = 'table' AND EXISTS "
                                       "(SELECT 1 FROM pragma_table_info(t.name) WHERE name = 'run')"),
                     STORE_TABLES);
    assert_ok(store_digest_rows(store, run, 1, 0, &digests[0], &error));
    for (size_t i = 0; i < 2; i++) {
        count_rows(store, before);
        assert_ok(store_run_rewind(store, run, i == 0 ? 1 : -1, 0, &error));
        assert_ok(store_digest_rows(store, run, 1, 0, &digests[1 + i], &error));
        count_rows(store, left);
        for (size_t t = 0; t < STORE_TABLES; t++)
            assert_true(!store_tables[t].after    ? left[t] == before[t]
                        : i == 0 && before[t] > 0 ? left[t] < before[t]
                                                  : left[t] == 0);
    }
    assert_true(digests[0] == digests[1] && digests[0] != 0); /* of what the first rewind left */
    assert_int_equal(digests[2], 0);
    assert_ok(run_rows_erase(store->database, run, &error));
    count_rows(store, left);
    for (size_t t = 0; t < STORE_TABLES; t++)
        assert_int_equal(left[t], 0);
}

/* --- Runs whose inputs changed --- */

/* A run of seed 1 up to an iteration of a task, stopped there. */
static int64_t stopped_run(struct store *store, int64_t task, int64_t iteration)
{
    struct run_description run = sample_description(1);
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
    struct run_description run = sample_description(1);
    struct run_start start;
    struct input_row changed[] = {run.inputs[0], run.inputs[1]};
    int64_t id = stopped_run(store, 2, 1), rows = sample_ask(store, "SELECT count(*) FROM evaluations");
    run.suite_hash = "of the changed ones";
    changed[1].digest = "dd";
    assert_ok(store_run_claim(store, id, RUN_GOES_ON, &run, &start, &error));
    assert_false(start.created);
    assert_int_equal(start.run, id);
    assert_ok(store_open(&other, path, STORE_WRITE, &error));
    assert_fails(store_run_claim(other, id, RUN_ANEW, &run, &start, &error), ERROR_BUSY, "in use by another run");
    store_close(other);
    assert_int_equal(sample_ask(store, "SELECT suite_hash = 'of the changed ones' FROM runs"), 0);
    assert_ok(store_run_change_inputs(store, id, run.suite_hash, changed, 2, &error));
    assert_int_equal(sample_ask(store, "SELECT suite_hash = 'of the changed ones' FROM runs"), 1);
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM inputs WHERE digest IN ('0a', 'dd')"), 2);
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM evaluations"), rows);
    assert_ok(store_change_task(store, id, 3, 77, 1, 2, &error));
    assert_int_equal(sample_ask(store, "SELECT training_images + unreadable_images FROM tasks WHERE task = 3"), 79);
}

TEST_WITH(a_run_that_begins_anew_loses_its_rows, create, destroy)
{
    struct store *store = *state;
    struct run_description run = sample_description(1);
    struct run_start start;
    int64_t id = stopped_run(store, 2, 1), rows[STORE_TABLES];
    run.suite_hash = "of others";
    run.input_count = 1;
    assert_ok(store_run_claim(store, id, RUN_ANEW, &run, &start, &error));
    assert_true(start.created);
    assert_int_equal(start.run, id);
    assert_int_equal(
        sample_ask(store, "SELECT count(*) FROM runs WHERE suite_hash = 'of others' AND status = 'running'"), 1);
    assert_int_equal(sample_ask(store, "SELECT count(*) FROM inputs"), 1);
    count_rows(store, rows);
    for (size_t i = 4; i < STORE_TABLES; i++) /* behind runs, settings, inputs and sessions */
        assert_int_equal(rows[i], 0);
}

/* --- The schema --- */

TEST_WITH(a_new_file_is_a_results_database, create, destroy)
{
    assert_int_equal(sample_ask(*state, "PRAGMA application_id"), 0x4d54494c);
    assert_int_equal(sample_ask(*state, "PRAGMA user_version"), 1);
    assert_int_equal(sample_ask(*state, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
    assert_int_equal(
        sample_ask(*state, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT%'"), 0);
}

TEST_WITH(other_databases_are_refused_and_left_alone, create, destroy)
{
    static const struct {
        const char *sql, *words;
    } others[] = {
        {"PRAGMA user_version = 999", "found 999: a newer version of mtil"},
        {"PRAGMA application_id = 252006673", "application id 0xf055111"},
        {"PRAGMA application_id = 0; PRAGMA user_version = 0; CREATE VIEW mine AS SELECT 1", "another program"},
        {"CREATE TABLE zoo (url TEXT)", ", table \"zoo\")"},
    };
    struct stat before, after;
    store_close(*state);
    *state = NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct store *store;
        assert_ok(sample_execute(path, others[i].sql, &error));
        assert_int_equal(stat(path, &before), 0);
        for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++)
            assert_fails(store_open(&store, path, mode, &error), ERROR_FORMAT, others[i].words);
        assert_true(stat(path, &after) == 0 && memcmp(&before.st_mtim, &after.st_mtim, sizeof after.st_mtim) == 0);
    }
}

/* Whoever opens for writing brings its views; whoever reads gets its own without touching the file. */
TEST_WITH(stale_views_are_replaced, create, destroy)
{
    sample_finished_run(*state, 1);
    store_close(*state);
    assert_ok(sample_execute(path,
                             "DROP VIEW leaderboard; CREATE VIEW leaderboard AS SELECT 77 AS runs; DROP VIEW matrix;"
                             "UPDATE properties SET value = 'older'; CREATE VIEW mine AS SELECT 1",
                             &error));
    struct store *reader = open_store(STORE_READ);
    assert_int_equal(sample_ask(reader, "SELECT count(*) FROM matrix"), SAMPLE_TASKS * (SAMPLE_TASKS + 1));
    assert_int_equal(sample_ask(reader, "SELECT runs FROM leaderboard"), 1);
    assert_int_equal(sample_ask(reader, "SELECT runs FROM main.leaderboard"), 77);
    store_close(reader);
    *state = open_store(STORE_WRITE);
    assert_int_equal(sample_ask(*state, "SELECT runs FROM main.leaderboard"), 1);
    assert_int_equal(sample_ask(*state, "SELECT count(*) FROM mine"), 1); /* a user's own view stays */
}

/* --- Beside the file --- */

/* The size of the file, or of one beside it; -1: it is not there. */
static int64_t size_of(const char *database, const char *ending)
{
    char name[512];
    struct stat about;
    snprintf(name, sizeof name, "%s%s", database, ending);
    return stat(name, &about) == 0 ? about.st_size : -1;
}

/* Reads the finished run of seed 1. */
static void expect_run(const char *database)
{
    struct store *reader;
    enum run_status past = RUN_FAILED;
    assert_ok(store_open(&reader, database, STORE_READ, &error));
    assert_true(find(reader, 1, &past) > 0 && past == RUN_FINISHED);
    store_close(reader);
}

static char *copy_of(const char *format)
{
    char *copy = sample_path("copy.sqlite"), command[2048];
    snprintf(command, sizeof command, format, path, copy, path, copy);
    assert_int_equal(system(command), 0);
    return copy;
}

/* Another process, as a sweep that looks on, has the database open meanwhile. */
TEST_WITH(a_copy_of_the_file_alone_has_the_rows, create, destroy)
{
    struct store *reader = open_store(STORE_READ);
    sample_finished_run(*state, 1);
    store_close(*state);
    *state = NULL;
    char *copy = copy_of("cp '%s' '%s'");
    store_close(reader);
    expect_run(copy);
    sample_remove(copy);
}

/* A log without rows is left where somebody may still write to it, and one with rows where its writer was killed. */
TEST_WITH(a_reader_leaves_no_log_but_one_with_rows, create, destroy)
{
    store_close(*state);
    struct store *reader = open_store(STORE_READ);
    assert_int_equal(size_of(path, "-wal"), 0);
    store_close(reader);
    assert_true(size_of(path, "-wal") == -1 && size_of(path, "-shm") == -1);

    *state = open_store(STORE_WRITE);
    store_close(open_store(STORE_READ));
    sample_finished_run(*state, 1);
    expect_run(path);
    char *copy = copy_of("cp '%s' '%s' && cp '%s-wal' '%s-wal'");
    int64_t size = size_of(copy, "-wal");
    expect_run(copy);
    assert_true(size > 0 && size_of(copy, "-wal") == size);
    sample_remove(copy);
}
