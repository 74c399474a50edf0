#include "tests/results/check.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results/store/store_internal.h"
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

static void a_run_is_found_again_by_suite_and_seed(void **state)
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

static void a_run_has_one_writer(void **state)
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

/* A process that is killed in the middle of a transaction holds neither its run nor the database. */
static void a_killed_writer_blocks_nobody(void **state)
{
    int ready[2];
    store_close(*state);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store;
        struct run_start start;
        struct error error;
        struct run_description description = sample_description(5);
        bool fine = store_open(&store, path, STORE_WRITE, &error) == OK &&
                    store_run_start(store, &description, &start, &error) == OK &&
                    database_execute(store->database, "BEGIN IMMEDIATE", &error) == OK &&
                    sample_write(store, start.run, 5, -1, 0, 2, 5, &error) == OK;
        if (write(ready[1], fine ? "y" : "n", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char answer = 'n';
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct store *store = *state = open_store(STORE_WRITE);
    struct run_start start = start_run(store, 5);
    assert_false(start.created);
    assert_int_equal(start.past, RUN_RUNNING);
    assert_ok(sample_write(store, start.run, 5, -1, 0, -1, 0, &error));
    assert_ok(store_check(store, &error));
    close(ready[0]);
    close(ready[1]);
}

static void the_matrix_comes_back(void **state)
{
    struct store *store = *state;
    int64_t run = sample_finished_run(store, 3);
    struct run_matrix read;
    assert_ok(store_read_matrix(store, run, &read, &error));
    assert_int_equal(read.matrix.tasks, SAMPLE_TASKS);
    assert_string_equal(read.names[1], "digits");
    for (int64_t i = -1; i < SAMPLE_TASKS; i++)
        for (int64_t j = 0; j < SAMPLE_TASKS; j++) {
            double found =
                i < 0 ? read.matrix.zero_shot[j] : read.matrix.accuracy[(size_t)i * SAMPLE_TASKS + (size_t)j];
            assert_true(found == 100.0 * (double)sample_correct(3, i, j) / SAMPLE_IMAGES);
        }
    run_matrix_free(&read);
    assert_fails(store_read_matrix(store, 99, &read, &error), ERROR_ARGUMENT, "there is no run 99");
}

static void the_record_comes_back(void **state)
{
    struct store *store = *state;
    struct run_description description = sample_description(3);
    struct run_record record;
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(store_read_record(store, start.run, &record, &error));
    assert_true(record.seconds == 0 && record.peak_bytes == 0 && record.message == NULL);
    run_record_free(&record);
    for (int64_t peak = 5000; peak >= 3000; peak -= 2000)
        assert_ok(store_add(store, start.run, "timings",
                            NAMED({"task", value_integer(-1)}, {"iteration", value_integer(0)},
                                  {"phase", value_text("evaluate")}, {"seconds", value_real(1.5)},
                                  {"peak_bytes", value_integer(peak)}),
                            &error));
    assert_ok(store_run_end(store, start.run, RUN_FAILED, "the disk burnt", &error));
    assert_ok(store_read_record(store, start.run, &record, &error));
    assert_true(record.seconds == 3 && record.peak_bytes == 5000);
    assert_string_equal(record.suite_text, description.suite_text);
    assert_string_equal(record.message, "the disk burnt");
    run_record_free(&record);
    assert_fails(store_read_record(store, 99, &record, &error), ERROR_ARGUMENT, "there is no run 99");
}

static void what_is_missing_is_not_a_number(void **state)
{
    struct store *store = *state;
    struct run_start start = start_run(store, 1);
    struct run_matrix read;
    assert_ok(sample_write(store, start.run, 1, -1, 0, 1, 1, &error));
    assert_ok(store_read_matrix(store, start.run, &read, &error));
    assert_false(isnan(read.matrix.accuracy[0]));
    assert_true(isnan(read.matrix.accuracy[SAMPLE_TASKS]));
    assert_true(isnan(metric_mean(metric_find("last"), &read.matrix)));
    run_matrix_free(&read);
}

static void per_image_results_come_back(void **state)
{
    struct store *store = *state;
    int64_t run = sample_finished_run(store, 1);
    struct per_image kept;
    assert_ok(store_read_per_image(store, run, 2, 1, &kept, &error));
    assert_int_equal(kept.kind, PER_IMAGE_BITS);
    assert_int_equal(kept.images, SAMPLE_IMAGES);
    assert_int_equal(per_image_correct(&kept), sample_correct(1, 2, 1));
    per_image_free(&kept);
    assert_ok(store_read_per_image(store, run, 2, 99, &kept, &error));
    assert_int_equal(kept.kind, PER_IMAGE_NONE);
}

static void wrong_rows_are_refused(void **state)
{
    struct store *store = *state;
    int64_t run = sample_finished_run(store, 1);
    uint8_t right[4] = {1, 1, 0, 0};
    struct per_image kept = {.kind = PER_IMAGE_BITS, .images = 4, .right = right};
    struct evaluation_row row = {.after_task = 4, .task = 0, .correct = 3, .images = 4, .per_image = &kept};
    assert_fails(store_add_evaluation(store, run, &row, &error), ERROR_ARGUMENT, "2 right of 4 images");
    row.per_image = NULL;
    row.correct = 5;
    assert_fails(store_add_evaluation(store, run, &row, &error), ERROR_ARGUMENT, "CHECK");
    assert_fails(sample_add_step(store, run, 0, 1, 0, &error), ERROR_ARGUMENT, "UNIQUE constraint failed: steps");
    assert_fails(sample_add_step(store, 99, 0, 1, 0, &error), ERROR_ARGUMENT, "run 99");
    struct sample_task task = {
        .task = 0, .name = "aircraft", .classes = 7, .training_images = 1000, .test_images = 200};
    assert_fails(sample_add_task(store, run, &task, &error), ERROR_ARGUMENT, "recorded with other data");
    /* a failed statement of its own leaves no transaction behind */
    assert_ok(database_execute(store->database, "BEGIN; COMMIT", &error));
}

/* Told when it is written; nothing of the transaction is. */
static void a_wrong_row_among_many_is_told(void **state)
{
    struct store *store = *state;
    struct run_start start = start_run(store, 1);
    assert_ok(sample_write(store, start.run, 1, -1, 0, 2, 5, &error));
    store_begin(store);
    for (int64_t iteration = 6; iteration < 9; iteration++)
        assert_ok(sample_add_step(store, start.run, 2, iteration, 0, &error));
    assert_ok(sample_add_step(store, start.run, 2, 7, 0, &error));
    assert_fails(store_commit(store, &error), ERROR_ARGUMENT, "UNIQUE constraint failed: steps");
    store_rollback(store);
    assert_ok(store_commit(store, &error)); /* harmless */
    assert_ok(sample_add_step(store, start.run, 2, 7, 0, &error));
}

/* A run that collects its rows for hours keeps nobody from writing. */
static void collecting_runs_do_not_wait_for_each_other(void **state)
{
    struct store *store = *state, *rival = open_store(STORE_WRITE);
    struct run_start start = start_run(store, 1), rival_start;
    store_set_patience(store, 0);
    store_set_patience(rival, 0);
    store_begin(store);
    assert_ok(sample_write(store, start.run, 1, -1, 0, -1, 0, &error));
    rival_start = start_run(rival, 2);
    store_begin(rival);
    assert_ok(sample_write(rival, rival_start.run, 2, -1, 0, -1, 0, &error));
    assert_ok(store_commit(rival, &error));
    assert_ok(store_commit(store, &error));
    struct run_matrix read;
    for (size_t i = 0; i < 2; i++) {
        assert_ok(store_read_matrix(store, i == 0 ? start.run : rival_start.run, &read, &error));
        assert_false(isnan(metric_mean(metric_find("last"), &read.matrix)));
        run_matrix_free(&read);
    }
    store_close(rival);
}

static void rolled_back_rows_are_gone(void **state)
{
    struct store *store = *state;
    struct run_start start = start_run(store, 1);
    store_begin(store);
    assert_ok(sample_write(store, start.run, 1, -1, 0, -1, 0, &error));
    store_rollback(store);
    assert_ok(sample_write(store, start.run, 1, -1, 0, -1, 0, &error));
    store_rollback(store); /* harmless */
}

/* Another process, as a sweep that looks on, has the database open meanwhile. */
static void a_copy_of_the_file_alone_has_the_rows(void **state)
{
    struct store *reader = open_store(STORE_READ), *copied;
    enum run_status past = RUN_FAILED;
    int64_t run = sample_finished_run(*state, 1);
    store_close(*state);
    char *copy = sample_path("copy.sqlite"), command[1024];
    assert_true(snprintf(command, sizeof command, "cp '%s' '%s'", path, copy) < (int)sizeof command);
    assert_int_equal(system(command), 0);
    store_close(reader);
    assert_ok(store_open(&copied, copy, STORE_READ, &error));
    assert_true(find(copied, 1, &past) == run && past == RUN_FINISHED);
    store_close(copied);
    sample_remove(copy);
    *state = NULL;
}

/* A log without rows is left where somebody may still write to it. */
static void a_reader_leaves_no_log(void **state)
{
    char log[512];
    enum run_status past = RUN_FAILED;
    assert_true(snprintf(log, sizeof log, "%s-wal", path) < (int)sizeof log);
    store_close(*state);
    struct store *reader = open_store(STORE_READ);
    assert_int_equal(access(log, F_OK), 0);
    store_close(reader);
    assert_int_equal(access(log, F_OK), -1);
    memcpy(strrchr(log, '-'), "-shm", 4);
    assert_int_equal(access(log, F_OK), -1);

    *state = open_store(STORE_WRITE);
    store_close(open_store(STORE_READ));
    sample_finished_run(*state, 1);
    reader = open_store(STORE_READ);
    assert_true(find(reader, 1, &past) > 0 && past == RUN_FINISHED);
    store_close(reader);
}

/* The rows that a killed writer left in the log are read, and stay there. */
static void a_reader_leaves_the_log_of_a_killed_writer(void **state)
{
    struct store *reader;
    enum run_status past = RUN_FAILED;
    int64_t run = sample_finished_run(*state, 1);
    struct stat before, after;
    char *copy = sample_path("copy.sqlite"), command[2048], log[1024];
    assert_true(snprintf(log, sizeof log, "%s-wal", copy) < (int)sizeof log);
    snprintf(command, sizeof command, "cp '%s' '%s' && cp '%s-wal' '%s'", path, copy, path, log);
    assert_int_equal(system(command), 0);
    assert_true(stat(log, &before) == 0 && before.st_size > 0);
    assert_ok(store_open(&reader, copy, STORE_READ, &error));
    assert_true(find(reader, 1, &past) == run && past == RUN_FINISHED);
    store_close(reader);
    assert_true(stat(log, &after) == 0 && after.st_size == before.st_size);
    sample_remove(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_is_found_again_by_suite_and_seed, create, destroy),
        cmocka_unit_test_setup_teardown(a_run_has_one_writer, create, destroy),
        cmocka_unit_test_setup_teardown(a_killed_writer_blocks_nobody, create, destroy),
        cmocka_unit_test_setup_teardown(the_matrix_comes_back, create, destroy),
        cmocka_unit_test_setup_teardown(the_record_comes_back, create, destroy),
        cmocka_unit_test_setup_teardown(what_is_missing_is_not_a_number, create, destroy),
        cmocka_unit_test_setup_teardown(per_image_results_come_back, create, destroy),
        cmocka_unit_test_setup_teardown(wrong_rows_are_refused, create, destroy),
        cmocka_unit_test_setup_teardown(a_wrong_row_among_many_is_told, create, destroy),
        cmocka_unit_test_setup_teardown(collecting_runs_do_not_wait_for_each_other, create, destroy),
        cmocka_unit_test_setup_teardown(rolled_back_rows_are_gone, create, destroy),
        cmocka_unit_test_setup_teardown(a_copy_of_the_file_alone_has_the_rows, create, destroy),
        cmocka_unit_test_setup_teardown(a_reader_leaves_no_log, create, destroy),
        cmocka_unit_test_setup_teardown(a_reader_leaves_the_log_of_a_killed_writer, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
