#include "tests/results/check.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/digest.h"
#include "results/store/store_internal.h"
#include "tests/results/sample.h"

static int create(void **state)
{
    *state = sample_path("results.sqlite");
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

static struct store *open_store(void **state, enum store_mode mode)
{
    struct store *store;
    assert_ok(store_open(&store, *state, mode, &error));
    return store;
}

static void a_run_is_found_again_by_suite_and_seed(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(1);
    struct run_start first, again, other;
    assert_ok(store_run_start(store, &description, &first, &error));
    assert_true(first.created && first.run > 0);
    assert_ok(store_run_end(store, first.run, RUN_STOPPED, NULL, &error));
    assert_ok(store_run_start(store, &description, &again, &error));
    assert_false(again.created);
    assert_int_equal(again.run, first.run);
    assert_int_equal(again.past, RUN_STOPPED);
    description.seed = 2;
    assert_ok(store_run_start(store, &description, &other, &error));
    assert_true(other.created);
    assert_int_not_equal(other.run, first.run);
    int64_t found;
    enum run_status past;
    assert_ok(store_run_find(store, description.suite_hash, 2, &found, &past, &error));
    assert_int_equal(found, other.run);
    assert_int_equal(past, RUN_RUNNING);
    assert_ok(store_run_find(store, description.suite_hash, 3, &found, &past, &error));
    assert_int_equal(found, 0);
    store_close(store);
}

static void a_finished_run_stays_finished(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    int64_t run = sample_finished_run(store, 1), found;
    struct run_description description = sample_description(1);
    struct run_start start;
    enum run_status past;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_int_equal(start.past, RUN_FINISHED);
    assert_ok(store_run_find(store, description.suite_hash, 1, &found, &past, &error));
    assert_int_equal(found, run);
    assert_int_equal(past, RUN_FINISHED);
    store_close(store);
}

static void a_run_has_one_writer(void **state)
{
    struct store *store = open_store(state, STORE_WRITE), *rival = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(7), other = sample_description(8);
    struct run_start start, refused;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_fails(store_run_start(rival, &description, &refused, &error), ERROR_BUSY, "in use by another run: run 1");
    assert_ok(store_run_start(rival, &other, &refused, &error));
    assert_ok(store_run_end(store, start.run, RUN_FAILED, "the disk burnt", &error));
    assert_ok(store_run_start(rival, &description, &start, &error));
    assert_int_equal(start.past, RUN_FAILED);
    store_close(rival);
    store_close(store);
}

/* A process that is killed in the middle of a transaction holds neither its run nor the database. */
static void a_killed_writer_blocks_nobody(void **state)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store;
        struct run_start start;
        struct error error;
        struct run_description description = sample_description(5);
        bool fine = store_open(&store, *state, STORE_WRITE, &error) == OK &&
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
    struct run_description description = sample_description(5);
    struct run_start start;
    struct store *store = NULL;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    store = open_store(state, STORE_WRITE);
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_false(start.created);
    assert_int_equal(start.past, RUN_RUNNING);
    assert_ok(sample_write(store, start.run, 5, -1, 0, -1, 0, &error));
    assert_ok(store_check(store, &error));
    store_close(store);
    close(ready[0]);
    close(ready[1]);
}

static void the_matrix_comes_back(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    int64_t run = sample_finished_run(store, 3);
    store_close(store);
    store = open_store(state, STORE_READ);
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
    store_close(store);
}

static void the_record_comes_back(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(3);
    struct run_record record;
    struct run_start start;
    struct timing_row timing = {.task = -1, .phase = "evaluate", .seconds = 1.5, .peak_bytes = 5000};
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(store_read_record(store, start.run, &record, &error));
    assert_true(record.seconds == 0 && record.peak_bytes == 0 && record.message == NULL);
    run_record_free(&record);
    assert_ok(store_add_timing(store, start.run, &timing, &error));
    timing.peak_bytes = 3000;
    assert_ok(store_add_timing(store, start.run, &timing, &error));
    assert_ok(store_run_end(store, start.run, RUN_FAILED, "the disk burnt", &error));
    assert_ok(store_read_record(store, start.run, &record, &error));
    assert_true(record.seconds == 3 && record.peak_bytes == 5000);
    assert_string_equal(record.suite_text, description.suite_text);
    assert_string_equal(record.message, "the disk burnt");
    run_record_free(&record);
    assert_fails(store_read_record(store, 99, &record, &error), ERROR_ARGUMENT, "there is no run 99");
    store_close(store);
}

static void what_is_missing_is_not_a_number(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(1);
    struct run_start start;
    struct run_matrix read;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(sample_write(store, start.run, 1, -1, 0, 1, 1, &error));
    assert_ok(store_read_matrix(store, start.run, &read, &error));
    assert_false(isnan(read.matrix.accuracy[0]));
    assert_true(isnan(read.matrix.accuracy[SAMPLE_TASKS]));
    assert_true(isnan(metric_mean(metric_find("last"), &read.matrix)));
    run_matrix_free(&read);
    store_close(store);
}

static void per_image_results_come_back(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    int64_t run = sample_finished_run(store, 1);
    struct per_image kept;
    assert_ok(store_read_per_image(store, run, 2, 1, &kept, &error));
    assert_int_equal(kept.kind, PER_IMAGE_BITS);
    assert_int_equal(kept.images, SAMPLE_IMAGES);
    assert_int_equal(per_image_correct(&kept), sample_correct(1, 2, 1));
    per_image_free(&kept);
    assert_ok(store_read_per_image(store, run, 2, 99, &kept, &error));
    assert_int_equal(kept.kind, PER_IMAGE_NONE);
    store_close(store);
}

static void wrong_rows_are_refused(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    int64_t run = sample_finished_run(store, 1);
    uint8_t right[4] = {1, 1, 0, 0};
    struct per_image kept = {.kind = PER_IMAGE_BITS, .images = 4, .right = right};
    struct evaluation_row row = {.after_task = 4, .task = 0, .correct = 3, .images = 4, .per_image = &kept};
    assert_fails(store_add_evaluation(store, run, &row, &error), ERROR_ARGUMENT, "2 right of 4 images");
    row.per_image = NULL;
    row.correct = 5;
    assert_fails(store_add_evaluation(store, run, &row, &error), ERROR_ARGUMENT, "CHECK");
    assert_fails(store_add_step(store, run, &(struct step_row){.task = 0, .iteration = 1}, &error), ERROR_ARGUMENT,
                 "UNIQUE constraint failed: steps");
    assert_fails(store_add_step(store, 99, &(struct step_row){.task = 0, .iteration = 1}, &error), ERROR_ARGUMENT,
                 "run 99");
    struct task_row task = {.task = 0, .name = "aircraft", .classes = 7, .training_images = 1000, .test_images = 200};
    assert_fails(store_add_task(store, run, &task, &error), ERROR_ARGUMENT, "recorded with other data");
    /* a failed statement of its own leaves no transaction behind */
    assert_ok(database_execute(store->database, "BEGIN; COMMIT", &error));
    store_close(store);
}

/* Told when it is written; nothing of the transaction is. */
static void a_wrong_row_among_many_is_told(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(1);
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(sample_write(store, start.run, 1, -1, 0, 2, 5, &error));
    store_begin(store);
    for (int64_t iteration = 6; iteration < 9; iteration++)
        assert_ok(store_add_step(store, start.run, &(struct step_row){.task = 2, .iteration = iteration}, &error));
    assert_ok(store_add_step(store, start.run, &(struct step_row){.task = 2, .iteration = 7}, &error));
    assert_fails(store_commit(store, &error), ERROR_ARGUMENT, "UNIQUE constraint failed: steps");
    store_rollback(store);
    assert_ok(store_commit(store, &error)); /* harmless */
    assert_ok(store_add_step(store, start.run, &(struct step_row){.task = 2, .iteration = 7}, &error));
    store_close(store);
}

/* A run that collects its rows for hours keeps nobody from writing. */
static void collecting_runs_do_not_wait_for_each_other(void **state)
{
    struct store *store = open_store(state, STORE_WRITE), *rival = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(1), other = sample_description(2);
    struct run_start start, rival_start;
    store_set_patience(store, 0);
    store_set_patience(rival, 0);
    assert_ok(store_run_start(store, &description, &start, &error));
    store_begin(store);
    assert_ok(sample_write(store, start.run, 1, -1, 0, -1, 0, &error));
    assert_ok(store_run_start(rival, &other, &rival_start, &error));
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
    store_close(store);
}

static void rolled_back_rows_are_gone(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(1);
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    store_begin(store);
    assert_ok(sample_write(store, start.run, 1, -1, 0, -1, 0, &error));
    store_rollback(store);
    assert_ok(sample_write(store, start.run, 1, -1, 0, -1, 0, &error));
    store_rollback(store); /* harmless */
    store_close(store);
}

/* Answers of the FIPS 180-4 examples. */
/* Another process, as a sweep that looks on, has the database open meanwhile. */
static void a_copy_of_the_file_alone_has_the_rows(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE), *reader = open_store(state, STORE_READ), *copied;
    struct run_description description = sample_description(1);
    int64_t run = sample_finished_run(writer, 1), found;
    enum run_status past;
    store_close(writer);
    char *copy = sample_path("copy.sqlite"), command[1024];
    assert_true(snprintf(command, sizeof command, "cp '%s' '%s'", (const char *)*state, copy) < (int)sizeof command);
    assert_int_equal(system(command), 0);
    store_close(reader);
    assert_ok(store_open(&copied, copy, STORE_READ, &error));
    assert_ok(store_run_find(copied, description.suite_hash, 1, &found, &past, &error));
    assert_true(found == run && past == RUN_FINISHED);
    store_close(copied);
    sample_remove(copy);
}

/* A log without rows is left where somebody may still write to it. */
static void a_reader_leaves_no_log(void **state)
{
    char log[512];
    struct run_description description = sample_description(1);
    int64_t run;
    enum run_status past;
    assert_true(snprintf(log, sizeof log, "%s-wal", (const char *)*state) < (int)sizeof log);
    store_close(open_store(state, STORE_WRITE));
    struct store *reader = open_store(state, STORE_READ);
    assert_int_equal(access(log, F_OK), 0);
    store_close(reader);
    assert_int_equal(access(log, F_OK), -1);
    memcpy(strrchr(log, '-'), "-shm", 4);
    assert_int_equal(access(log, F_OK), -1);

    struct store *writer = open_store(state, STORE_WRITE);
    store_close(open_store(state, STORE_READ));
    sample_finished_run(writer, 1);
    reader = open_store(state, STORE_READ);
    assert_ok(store_run_find(reader, description.suite_hash, 1, &run, &past, &error));
    assert_int_equal(past, RUN_FINISHED);
    store_close(reader);
    store_close(writer);
}

/* The rows that a killed writer left in the log are read, and stay there. */
static void a_reader_leaves_the_log_of_a_killed_writer(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE), *reader;
    struct run_description description = sample_description(1);
    int64_t run = sample_finished_run(writer, 1), found;
    enum run_status past;
    struct stat before, after;
    const char *path = *state;
    char *copy = sample_path("copy.sqlite"), command[2048], log[1024];
    assert_true(snprintf(log, sizeof log, "%s-wal", copy) < (int)sizeof log);
    snprintf(command, sizeof command, "cp '%s' '%s' && cp '%s-wal' '%s'", path, copy, path, log);
    assert_int_equal(system(command), 0);
    store_close(writer);
    assert_true(stat(log, &before) == 0 && before.st_size > 0);
    assert_ok(store_open(&reader, copy, STORE_READ, &error));
    assert_ok(store_run_find(reader, description.suite_hash, 1, &found, &past, &error));
    assert_true(found == run && past == RUN_FINISHED);
    store_close(reader);
    assert_true(stat(log, &after) == 0 && after.st_size == before.st_size);
    sample_remove(copy);
}

static void digests_match_the_standard(void **state)
{
    (void)state;
    char hash[DIGEST_SIZE];
    digest_text("", hash);
    assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", hash);
    assert_string_equal(hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    struct digest digest = digest_begin();
    char letters[1000];
    memset(letters, 'a', sizeof letters);
    for (int i = 0; i < 1000; i++)
        digest_add(&digest, letters, sizeof letters);
    digest_end(&digest, hash);
    assert_string_equal(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_is_found_again_by_suite_and_seed, create, destroy),
        cmocka_unit_test_setup_teardown(a_finished_run_stays_finished, create, destroy),
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
        cmocka_unit_test(digests_match_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
