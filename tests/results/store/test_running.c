/* What is shown of runs that are going on: the notes beside the database, and the two tables made of them. */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results/store/live.h"
#include "results/store/running.h"
#include "tests/results/sample.h"

static const struct live training = {.activity = "train",
                                     .subject = "digits",
                                     .task = 2,
                                     .tasks = 4,
                                     .step = 5,
                                     .steps = 20,
                                     .loss = 1.25,
                                     .images_per_second = 310.4,
                                     .seconds_left = 185,
                                     .done = 0.314};

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

static int64_t start_run(struct store *store, int64_t seed)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    return start.run;
}

static void expect_cell(const struct table *table, size_t row, const char *title, const char *expected)
{
    size_t column = 0;
    while (column < table->columns && strcmp(table->column[column].title, title) != 0)
        column++;
    assert_true(column < table->columns && row < table_rows(table));
    const struct table_cell *cell = table_cell_at(table, row, column);
    char found[64] = "";
    if (cell->kind == CELL_TEXT)
        snprintf(found, sizeof found, "%s", cell->text);
    else if (cell->kind != CELL_EMPTY)
        snprintf(found, sizeof found, "%.6g", cell->kind == CELL_REAL ? cell->real : (double)cell->integer);
    if (strcmp(found, expected) != 0)
        fail_msg("row %zu, %s: expected \"%s\", found \"%s\"", row, title, expected, found);
}

static void a_note_is_read_until_the_run_ends(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE), *reader = open_store(state, STORE_READ);
    struct live live;
    int64_t run = start_run(writer, 1);
    assert_false(live_read(reader, run, &live));
    assert_true(live_has_process(reader, run));
    assert_false(live_has_process(reader, run + 1));
    live_write(writer, run, &training);
    assert_true(live_read(reader, run, &live));
    assert_string_equal(live.subject, "digits");
    assert_int_equal(live.step, 5);
    assert_true(live.done == 0.314 && live.updated > 1700000000);
    assert_false(live_read(reader, run + 1, &live));
    assert_ok(store_run_end(writer, run, RUN_FINISHED, NULL, &error));
    assert_false(live_read(reader, run, &live));
    assert_false(live_has_process(reader, run));
    store_close(writer);
    store_close(reader);
}

static void half_a_note_is_none(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE);
    struct live live;
    char name[512];
    int64_t run = start_run(writer, 1);
    live_write(writer, run, &training);
    snprintf(name, sizeof name, "%s-lock", (char *)*state);
    FILE *file = fopen(name, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)run * 256 + 100, SEEK_SET), 0);
    assert_int_equal(fputs("torn", file) >= 0 && fclose(file) == 0, 1);
    assert_false(live_read(writer, run, &live));
    assert_int_equal(truncate(name, 256 * run + 10), 0);
    assert_false(live_read(writer, run, &live));
    store_close(writer);
}

static void progress_is_the_notes(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE), *reader = open_store(state, STORE_READ);
    struct table table = {0};
    sample_finished_run(writer, 9);
    live_write(writer, start_run(writer, 1), &training);
    assert_ok(running_progress(reader, &table, &error));
    assert_int_equal(table_rows(&table), 1);
    expect_cell(&table, 0, "run", "2");
    expect_cell(&table, 0, "seed", "1");
    expect_cell(&table, 0, "task", "2/4");
    expect_cell(&table, 0, "doing", "train digits");
    expect_cell(&table, 0, "step", "5/20");
    expect_cell(&table, 0, "done", "███░░░░░░░ 31%");
    expect_cell(&table, 0, "left", "3 min 05 s");
    expect_cell(&table, 0, "loss", "1.25");
    expect_cell(&table, 0, "images/s", "310.4");
    table_free(&table);
    store_close(writer);
    store_close(reader);
}

/* Without a note the database tells, as far as it is committed: here 13 steps of task 2. */
static void progress_without_a_note_is_the_last_step(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE), *reader = open_store(state, STORE_READ);
    struct table table = {0}, accuracy = {0};
    char reached[32];
    int64_t run = start_run(writer, 1);
    assert_ok(sample_write(writer, run, 1, -1, 0, 2, 14, &error));
    assert_ok(running_progress(reader, &table, &error));
    expect_cell(&table, 0, "task", "3/4");
    expect_cell(&table, 0, "doing", "train textures_&_more");
    expect_cell(&table, 0, "step", "13");
    expect_cell(&table, 0, "done", "");
    expect_cell(&table, 0, "left", "");
    assert_ok(running_accuracy(reader, &accuracy, &error));
    assert_int_equal(table_rows(&accuracy), 1);
    expect_cell(&accuracy, 0, "after", "digits");
    snprintf(reached, sizeof reached, "%.6g", 100.0 * (double)sample_correct(1, 1, 2) / SAMPLE_IMAGES);
    expect_cell(&accuracy, 0, "textures_&_more", reached);
    table_free(&table);
    table_free(&accuracy);
    store_close(writer);
    store_close(reader);
}

static void runs_of_other_tasks_stand_in_one_table(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE);
    struct run_description description = sample_description(2);
    struct run_start start;
    struct table table = {0};
    int64_t run = start_run(writer, 1);
    assert_ok(sample_write(writer, run, 1, -1, 0, 0, 1, &error));
    description.suite_hash = "another";
    assert_ok(store_run_start(writer, &description, &start, &error));
    assert_ok(store_add_task(writer, start.run,
                             &(struct task_row){.name = "cars", .classes = 2, .training_images = 8, .test_images = 8},
                             &error));
    assert_ok(store_add_evaluation(writer, start.run,
                                   &(struct evaluation_row){.after_task = -1, .correct = 2, .images = 8}, &error));
    assert_ok(running_accuracy(writer, &table, &error));
    assert_int_equal(table_rows(&table), 2);
    assert_int_equal(table.columns, 2 + SAMPLE_TASKS + 1 + 1);
    expect_cell(&table, 0, "after", "zero-shot");
    expect_cell(&table, 0, "cars", "");
    expect_cell(&table, 1, "aircraft", "");
    expect_cell(&table, 1, "cars", "25");
    expect_cell(&table, 1, "mean", "25");
    table_free(&table);
    store_close(writer);
}

static void a_process_that_died_is_told(void **state)
{
    struct store *reader;
    struct table table = {0};
    struct text counts = {0};
    pid_t child = fork();
    if (child == 0) {
        struct store *store = open_store(state, STORE_WRITE);
        live_write(store, start_run(store, 1), &training);
        _exit(0); /* without a word, as after kill -9 */
    }
    assert_true(child > 0 && waitpid(child, NULL, 0) == child);
    reader = open_store(state, STORE_READ);
    assert_ok(running_progress(reader, &table, &error));
    expect_cell(&table, 0, "doing", "process is gone");
    expect_cell(&table, 0, "step", "5/20");
    expect_cell(&table, 0, "left", "");
    assert_ok(running_counts(reader, &counts, &error));
    assert_string_equal(counts.data, "1 running");
    text_free(&counts);
    table_free(&table);
    store_close(reader);
}

static void nothing_runs_in_an_empty_database(void **state)
{
    struct store *store = open_store(state, STORE_WRITE);
    struct table progress = {0}, accuracy = {0};
    struct text counts = {0};
    assert_ok(running_progress(store, &progress, &error));
    assert_ok(running_accuracy(store, &accuracy, &error));
    assert_ok(running_counts(store, &counts, &error));
    assert_int_equal(table_rows(&progress) + table_rows(&accuracy), 0);
    assert_string_equal(counts.data, "no runs");
    table_free(&progress);
    table_free(&accuracy);
    text_free(&counts);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_note_is_read_until_the_run_ends, create, destroy),
        cmocka_unit_test_setup_teardown(half_a_note_is_none, create, destroy),
        cmocka_unit_test_setup_teardown(progress_is_the_notes, create, destroy),
        cmocka_unit_test_setup_teardown(progress_without_a_note_is_the_last_step, create, destroy),
        cmocka_unit_test_setup_teardown(runs_of_other_tasks_stand_in_one_table, create, destroy),
        cmocka_unit_test_setup_teardown(a_process_that_died_is_told, create, destroy),
        cmocka_unit_test_setup_teardown(nothing_runs_in_an_empty_database, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
