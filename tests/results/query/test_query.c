#include "tests/results/check.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/query.h"
#include "results/query/question.h"
#include "results/statistics/statistics.h"
#include "tests/results/sample.h"

struct fixture {
    char *path;
    struct store *store;
};

/* Seeds 1 to 3 finished, seed 4 stopped in its second task; one finished run of another policy. */
static int create(void **state)
{
    static struct fixture fixture;
    struct run_start start;
    struct run_description stopped = sample_description(4), other = sample_description(1);
    fixture.path = sample_path("results.sqlite");
    assert_ok(store_open(&fixture.store, fixture.path, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= 3; seed++)
        sample_finished_run(fixture.store, seed);
    assert_ok(store_run_start(fixture.store, &stopped, &start, &error));
    assert_ok(sample_write(fixture.store, start.run, 4, -1, 0, 1, 11, &error));
    assert_ok(store_run_end(fixture.store, start.run, RUN_STOPPED, NULL, &error));
    other.policy = "none";
    other.suite_hash = "0123456789abcdef";
    assert_ok(store_run_start(fixture.store, &other, &start, &error));
    assert_ok(sample_write(fixture.store, start.run, 9, -1, 0, -1, 0, &error));
    assert_ok(store_run_end(fixture.store, start.run, RUN_FINISHED, NULL, &error));
    *state = &fixture;
    return 0;
}

static int destroy(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    sample_remove(fixture->path);
    return 0;
}

static struct table ask(void **state, const char *name, struct query_filter filter)
{
    struct table table = {0};
    assert_ok(query_named(((struct fixture *)*state)->store, name, &filter, &table, &error));
    return table;
}

static size_t count(void **state, const char *name, struct query_filter filter)
{
    struct table table = ask(state, name, filter);
    size_t rows = table_rows(&table);
    table_free(&table);
    return rows;
}

static size_t column_of(const struct table *table, const char *title)
{
    for (size_t column = 0; column < table->columns; column++)
        if (strcmp(table->column[column].title, title) == 0)
            return column;
    fail_msg("there is no column %s", title);
    return 0;
}

static void every_query_answers(void **state)
{
    struct questions questions;
    size_t shown = 0;
    assert_ok(questions_open(&questions, NULL, &error));
    for (size_t i = 0; i < questions.count; i++) {
        const struct question *question = &questions.question[i];
        bool needs_more = strcmp(question->name, "confusion") == 0; /* predictions: test_classes.c */
        if (*question->title == 0)
            continue;
        assert_true(count(state, question->name, (struct query_filter){0}) > 0 || needs_more);
        shown++;
    }
    assert_true(shown >= 20);
    questions_close(&questions);
    struct table table = {0};
    struct query_filter all = {0};
    assert_fails(query_named(((struct fixture *)*state)->store, "leaderbord", &all, &table, &error), ERROR_ARGUMENT,
                 "did you mean \"leaderboard\"?");
}

static void filters_choose_runs(void **state)
{
    assert_int_equal(count(state, "runs", (struct query_filter){0}), 5);
    assert_int_equal(count(state, "runs", (struct query_filter){.policy = "none"}), 1);
    assert_int_equal(count(state, "runs", (struct query_filter){.has_seed = true, .seed = 1}), 2);
    assert_int_equal(count(state, "runs", (struct query_filter){.run = 2}), 1);
    assert_int_equal(count(state, "runs", (struct query_filter){.status = "stopped"}), 1);
    assert_int_equal(count(state, "runs", (struct query_filter){.suite = "sample", .setting = "few_shot"}), 0);
    assert_int_equal(count(state, "runs", (struct query_filter){.method = "adapters", .selector = "clip"}), 5);
    assert_int_equal(count(state, "runs", (struct query_filter){.since = "2020-01-01"}), 5);
    assert_int_equal(count(state, "runs", (struct query_filter){.before = "2020-01-01"}), 0);
    assert_int_equal(count(state, "runs", (struct query_filter){.dataset = "digits"}), 5);
    assert_int_equal(count(state, "runs", (struct query_filter){.dataset = "cars"}), 0);
    assert_int_equal(count(state, "tasks", (struct query_filter){.dataset = "digits", .run = 1}), 1);
    assert_int_equal(count(state, "metrics", (struct query_filter){.status = "stopped"}), 0); /* no whole matrix */
}

static void settings_choose_and_are_shown(void **state)
{
    struct fixture *fixture = *state;
    static const char *const one = "training.iterations=2e1, suite=sample";
    assert_int_equal(count(state, "runs", (struct query_filter){.where = one}), 5);
    assert_int_equal(count(state, "runs", (struct query_filter){.where = "training.iterations=21"}), 0);
    assert_int_equal(count(state, "runs", (struct query_filter){.where = "suite=sample,suite=\"other"}), 0);
    assert_ok(query_check_filter(fixture->store, &(struct query_filter){.where = one}, &error));
    assert_fails(query_check_filter(fixture->store, &(struct query_filter){.where = "training.iteration=20"}, &error),
                 ERROR_ARGUMENT, "did you mean \"training.iterations\"?");
    assert_fails(query_check_filter(fixture->store, &(struct query_filter){.where = "training.iterations=7"}, &error),
                 ERROR_ARGUMENT, "no run has training.iterations = 7; expected one of: 20");
    struct table table = ask(state, "leaderboard", (struct query_filter){.by = "training.iterations,suite"});
    assert_int_equal(table_rows(&table), 2);
    assert_int_equal(table.cell[column_of(&table, "training.iterations")].integer, 20);
    table_free(&table);
    assert_fails(
        query_named(fixture->store, "leaderboard", &(struct query_filter){.by = "x' FROM runs"}, &table, &error),
        ERROR_ARGUMENT, "no run has a setting");
    table_free(&table);
}

static void tasks_tell_of_images_left_out(void **state)
{
    struct table table = ask(state, "tasks", (struct query_filter){.run = 1});
    size_t missing = column_of(&table, "missing_images"), unreadable = column_of(&table, "unreadable_images"),
           training = column_of(&table, "training_images");
    assert_int_equal(table_rows(&table), SAMPLE_TASKS);
    for (size_t task = 0; task < SAMPLE_TASKS; task++) {
        assert_int_equal(table_cell_at(&table, task, missing)->integer, 10 * task);
        assert_int_equal(table_cell_at(&table, task, unreadable)->integer, 3 * task);
        assert_int_equal(table_cell_at(&table, task, training)->integer, 1000);
    }
    table_free(&table);
}

static void the_leaderboard_averages_seeds(void **state)
{
    struct table table = ask(state, "leaderboard", (struct query_filter){.policy = "most_used"});
    struct table metrics = ask(state, "metrics", (struct query_filter){.policy = "most_used"});
    size_t last = column_of(&metrics, "last"), rows = table_rows(&metrics);
    double mean = 0, squares = 0;
    for (size_t row = 0; row < rows; row++)
        mean += table_cell_at(&metrics, row, last)->real / (double)rows;
    for (size_t row = 0; row < rows; row++)
        squares += pow(table_cell_at(&metrics, row, last)->real - mean, 2);
    assert_int_equal(table_rows(&table), 1);
    assert_int_equal(table.cell[column_of(&table, "runs")].integer, 3);
    assert_true(fabs(table.cell[column_of(&table, "last")].real - mean) < 1e-9);
    assert_true(fabs(table.cell[column_of(&table, "last_sd")].real - sqrt(squares / 2)) < 1e-9);
    table_free(&table);
    table_free(&metrics);
    assert_int_equal(count(state, "leaderboard", (struct query_filter){0}), 2);
    table = ask(state, "leaderboard", (struct query_filter){.policy = "none"});
    assert_int_equal(table.cell[column_of(&table, "last_sd")].kind, CELL_EMPTY); /* one seed has none */
    table_free(&table);
    table = ask(state, "leaderboard", (struct query_filter){.run = 2}); /* the chosen runs alone */
    metrics = ask(state, "metrics", (struct query_filter){.run = 2});
    assert_int_equal(table.cell[column_of(&table, "runs")].integer, 1);
    assert_true(table.cell[column_of(&table, "last")].real == metrics.cell[last].real);
    table_free(&table);
    table_free(&metrics);
}

static void the_matrix_has_a_row_per_checkpoint(void **state)
{
    struct table table = ask(state, "matrix", (struct query_filter){.run = 2});
    assert_int_equal(table_rows(&table), SAMPLE_TASKS + 1);
    size_t after = column_of(&table, "after");
    assert_string_equal(table_cell_at(&table, 0, after)->text, "zero-shot");
    assert_string_equal(table_cell_at(&table, 2, after)->text, "digits");
    assert_true(table_cell_at(&table, 2, after + 1)->real == 100.0 * (double)sample_correct(2, 1, 0) / SAMPLE_IMAGES);
    table_free(&table);
    assert_int_equal(count(state, "matrix", (struct query_filter){.status = "stopped"}), 2);
}

/* A run of another suite, stopped after its first row, keeps nobody from seeing the others. */
static void matrices_say_whose_they_are(void **state)
{
    struct fixture *fixture = *state;
    struct run_start start;
    struct run_description other = sample_description(1);
    other.suite = "elsewhere";
    other.suite_hash = "fedcba9876543210";
    assert_ok(store_run_start(fixture->store, &other, &start, &error));
    assert_ok(sample_add_task(
        fixture->store, start.run,
        &(struct sample_task){.name = "cars", .classes = 2, .training_images = 1, .test_images = 4}, &error));
    assert_ok(store_add_evaluation(fixture->store, start.run,
                                   &(struct evaluation_row){.after_task = -1, .task = 0, .correct = 3, .images = 4},
                                   &error));
    assert_ok(store_run_end(fixture->store, start.run, RUN_STOPPED, NULL, &error));
    struct table table = ask(state, "matrix", (struct query_filter){0});
    size_t suite = column_of(&table, "suite"), policy = column_of(&table, "policy"), seed = column_of(&table, "seed"),
           cars = column_of(&table, "cars"), digits = column_of(&table, "digits"), mean = column_of(&table, "mean"),
           last = table_rows(&table) - 1;
    assert_string_equal(table_cell_at(&table, 0, policy)->text, "most_used");
    assert_int_equal(table_cell_at(&table, SAMPLE_TASKS + 1, seed)->integer, 2);
    assert_int_equal(table_cell_at(&table, 0, cars)->kind, CELL_EMPTY);
    assert_int_equal(table_cell_at(&table, 0, mean)->kind, CELL_REAL);
    assert_string_equal(table_cell_at(&table, last, suite)->text, "elsewhere");
    assert_true(table_cell_at(&table, last, cars)->real == 75);
    assert_int_equal(table_cell_at(&table, last, digits)->kind, CELL_EMPTY);
    assert_int_equal(table_cell_at(&table, last, mean)->kind, CELL_EMPTY); /* one of its tasks */
    table_free(&table);
}

static void start_and_finish(struct store *store, const char *hash, const char *settings, const char *selection)
{
    struct run_start start;
    struct run_description twin = sample_description(1);
    twin.policy = "none";
    twin.suite_hash = hash;
    twin.selection = selection;
    sample_tell(&twin, settings);
    assert_ok(store_run_start(store, &twin, &start, &error));
    assert_ok(sample_write(store, start.run, 9, -1, 0, -1, 0, &error));
    assert_ok(store_run_end(store, start.run, RUN_FINISHED, NULL, &error));
}

static bool is_threads(const char *key, const char *value)
{
    (void)value;
    return strcmp(key, "run.threads") == 0;
}

/* Two rows that say the same but for their hash say in what they differ. */
static void twins_are_told_apart(void **state)
{
    struct fixture *fixture = *state;
    const struct query_filter none = {.policy = "none", .incidental = is_threads};
    struct table table = ask(state, "leaderboard", none);
    assert_string_equal(table.column[0].title, "suite");
    table_free(&table);
    start_and_finish(fixture->store, "aa", "training:\n  iterations: 20\n  warmup: 3\nrun:\n  threads: 1\n",
                     "per_image");
    start_and_finish(fixture->store, "bb", "training:\n  iterations: 20\n  warmup: 4\nrun:\n  threads: 2\n",
                     "per_image");
    table = ask(state, "leaderboard", none);
    size_t warmup = column_of(&table, "training.warmup");
    assert_int_equal(table_rows(&table), 3);
    for (size_t row = 0; row < 3; row++)
        for (size_t other = 0; other < row; other++)
            assert_true(table_cell_at(&table, row, warmup)->kind != table_cell_at(&table, other, warmup)->kind ||
                        table_cell_at(&table, row, warmup)->integer != table_cell_at(&table, other, warmup)->integer);
    for (size_t column = 0; column < table.columns; column++)
        assert_string_not_equal(table.column[column].title, "run.threads");
    table_free(&table);
}

/* A list is found however it is written. */
static void lists_have_many_spellings(void **state)
{
    struct fixture *fixture = *state;
    struct run_start start;
    struct run_description run = sample_description(1);
    const struct setting_row order = {.key = "data.order", .value = "[ta, tb]", .type = "list"};
    run.suite_hash = "cc";
    run.settings = &order;
    run.setting_count = 1;
    assert_ok(store_run_start(fixture->store, &run, &start, &error));
    assert_ok(store_run_end(fixture->store, start.run, RUN_STOPPED, NULL, &error));
    static const char *const spellings[] = {"data.order=ta,tb", "data.order=ta, tb", "data.order=ta tb",
                                            "data.order=[ta, tb]", "data.order = ta,tb"},
                             *const others[] = {"data.order=tb,ta", "data.order=ta", "data.order=ta,tb,tc"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        assert_ok(query_check_filter(fixture->store, &(struct query_filter){.where = spellings[i]}, &error));
        assert_int_equal(count(state, "runs", (struct query_filter){.where = spellings[i]}), 1);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(count(state, "runs", (struct query_filter){.where = others[i]}), 0);
}

static void expect_note(void **state, const char *query, struct query_filter filter, const char *words)
{
    struct fixture *fixture = *state;
    struct text note = {0};
    struct questions questions;
    struct table table = {0};
    assert_ok(questions_open(&questions, NULL, &error));
    assert_ok(query_ask(fixture->store, &questions, questions_find(&questions, query), &filter, &table, &note, &error));
    table_free(&table);
    questions_close(&questions);
    if (words == NULL)
        assert_int_equal(note.size, 0);
    else
        assert_non_null(strstr(note.data, words));
    text_free(&note);
}

static void what_is_missing_is_explained(void **state)
{
    struct fixture *fixture = *state;
    struct run_start start;
    struct run_description alone = sample_description(1);
    expect_note(state, "leaderboard", (struct query_filter){0}, NULL);
    expect_note(state, "runs", (struct query_filter){0}, NULL);
    expect_note(state, "confusion", (struct query_filter){0}, "mtil query routers");
    expect_note(state, "confusion", (struct query_filter){.dataset = "digits"}, NULL);
    expect_note(state, "routers", (struct query_filter){0}, NULL);
    alone.method = "zero_shot";
    alone.suite_hash = "dd";
    alone.selection = "none";
    assert_ok(store_run_start(fixture->store, &alone, &start, &error));
    assert_ok(store_run_end(fixture->store, start.run, RUN_FINISHED, NULL, &error));
    expect_note(state, "leaderboard", (struct query_filter){0}, "1 finished run (zero_shot) is not shown");
    expect_note(state, "metrics", (struct query_filter){0}, "mtil query matrix");
    expect_note(state, "metrics", (struct query_filter){.policy = "none"}, NULL);
    expect_note(state, "routers", (struct query_filter){.method = "zero_shot"}, "no selector chose");
}

static void the_summary_ends_in_the_metrics(void **state)
{
    struct fixture *fixture = *state;
    struct table table = {0};
    struct run_matrix read;
    assert_ok(store_read_matrix(fixture->store, 1, &read, &error));
    assert_ok(query_summary(fixture->store, 1, &table, &error));
    assert_int_equal(table_rows(&table), SAMPLE_TASKS + 1 + 3);
    assert_string_equal(table_cell_at(&table, SAMPLE_TASKS + 1, 0)->text, "Transfer");
    assert_int_equal(table_cell_at(&table, SAMPLE_TASKS + 1, 1)->kind, CELL_EMPTY);
    assert_string_equal(table_cell_at(&table, SAMPLE_TASKS + 3, 0)->text, "Last");
    double mean = metric_mean(metric_find("last"), &read.matrix);
    assert_true(table_cell_at(&table, SAMPLE_TASKS + 3, SAMPLE_TASKS + 1)->real == mean);
    struct text text = {0};
    assert_ok(table_render(&table, TABLE_TEXT, false, &text, &error));
    assert_non_null(strstr(text.data, "Average"));
    text_free(&text);
    table_free(&table);
    run_matrix_free(&read);
}

static void experts_and_events_tell_what_happened(void **state)
{
    struct table table = ask(state, "experts", (struct query_filter){.run = 1, .dataset = "digits"});
    assert_int_equal(table_rows(&table), 6);
    assert_true(table_cell_at(&table, 0, column_of(&table, "share"))->real == 100.0 * 30 / 101);
    for (int64_t expert = 0; expert < 6; expert++) /* after tasks 0 and 1: experts 0, 1 and 2 */
        assert_int_equal(table_cell_at(&table, (size_t)expert, column_of(&table, "frozen"))->integer, expert < 3);
    table_free(&table);
    table = ask(state, "blocks", (struct query_filter){.run = 1, .dataset = "digits"});
    assert_int_equal(table_rows(&table), 1);
    assert_string_equal(table_cell_at(&table, 0, column_of(&table, "part"))->text, "first");
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "frozen"))->integer, 3);
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "added"))->integer, 1);
    assert_true(table_cell_at(&table, 0, column_of(&table, "part_mean"))->real == 3);
    table_free(&table);
    table = ask(state, "events", (struct query_filter){.run = 1, .dataset = "digits"});
    assert_int_equal(table_rows(&table), 2 + 4);
    assert_string_equal(table_cell_at(&table, 0, column_of(&table, "event"))->text, "merge");
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "t1"))->integer, 5);
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "t2"))->integer, 1);
    assert_int_equal(table_cell_at(&table, 2, column_of(&table, "target"))->kind, CELL_EMPTY);
    assert_string_equal(table_cell_at(&table, 2, column_of(&table, "reason"))->text, "no expert is free");
    table_free(&table);
    struct table frozen = {0};
    assert_ok(query_sql(((struct fixture *)*state)->store,
                        "SELECT frozen FROM frozen_counts WHERE run = 1 AND encoder = 'image' ORDER BY task", &frozen,
                        &error));
    for (size_t task = 0; task < SAMPLE_TASKS; task++)
        assert_int_equal(frozen.cell[task].integer, task + 2);
    table_free(&frozen);
}

/* Of 200 images, after the last task: 20 to zero-shot CLIP, `task` to router 0, the rest to router 3. */
/* The sample's merged experts are chosen 15 · (task + 1) times of 120 by 6 experts; there are counts of images alone. */
static void merges_show_use_and_what_goes_with_it(void **state)
{
    struct table table = ask(state, "merges", (struct query_filter){.run = 1});
    assert_int_equal(table_rows(&table), 2 * SAMPLE_TASKS);
    const struct table_cell *use = table_cell_at(&table, 2, column_of(&table, "use"));
    assert_true(use->kind == CELL_REAL && fabs(use->real - 6 * 30.0 / 120) < 1e-12);
    assert_int_equal(table_cell_at(&table, 2, column_of(&table, "iteration"))->integer, 10);
    table_free(&table);
    table = ask(state, "merges", (struct query_filter){.by = "training.iterations", .status = "finished"});
    assert_int_equal(table_rows(&table), 1);
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "runs"))->integer, 4);
    assert_true(fabs(table_cell_at(&table, 0, column_of(&table, "use"))->real - 6 * 15 * 2.5 / 120) < 1e-12);
    assert_true(table_cell_at(&table, 0, column_of(&table, "unused"))->real == 0);
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "r"))->kind, CELL_EMPTY); /* use does not vary */
    table_free(&table);
}

/* Of task 0's merge, what the next task makes of it; of task 1's, that a later one takes its expert; losses of the same merges. */
static void merges_are_followed_into_the_next_task(void **state)
{
    (void)state;
    struct store *store;
    struct table table = {0};
    char *path = sample_path("merges.sqlite");
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    sample_finished_run(store, 1);
    store_close(store);
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database,
                                  "UPDATE expert_events SET event = 'merge', target = 2, reason = NULL "
                                  "WHERE event = 'skip' AND task = 1 AND encoder = 'image';"
                                  "UPDATE expert_counts SET count = 1 + 4 * (expert = 2) WHERE task = 1;"
                                  "UPDATE merge_effects SET loss_before = 100 WHERE loss_after IS NULL;",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    assert_ok(store_open(&store, path, STORE_READ, &error));
    assert_ok(query_named(store, "merges", &(struct query_filter){0}, &table, &error));
    size_t overwritten = column_of(&table, "overwritten"), next = column_of(&table, "next_use"),
           last = table_rows(&table) - 2;
    assert_int_equal(table_cell_at(&table, 0, overwritten)->integer, 0);
    assert_true(table_cell_at(&table, 0, next)->real == 6 * 5.0 / 10);
    assert_int_equal(table_cell_at(&table, 1, next)->kind, CELL_EMPTY); /* texts have no counts there */
    assert_int_equal(table_cell_at(&table, 2, overwritten)->integer, 1);
    assert_int_equal(table_cell_at(&table, last, next)->kind, CELL_EMPTY); /* there is no next task */
    table_free(&table);
    assert_ok(query_named(store, "merges", &(struct query_filter){.by = "training.iterations"}, &table, &error));
    assert_true(table_cell_at(&table, 0, column_of(&table, "loss_before"))->real == 2.5);
    assert_true(fabs(table_cell_at(&table, 0, column_of(&table, "overwritten"))->real - 100.0 / (2 * SAMPLE_TASKS)) <
                1e-12);
    table_free(&table);
    store_close(store);
    sample_remove(path);
}

/* Two groups of four runs each with the same correlation; the second has more of both, which does not count. */
static void use_is_correlated_with_transfer_within_groups(void **state)
{
    (void)state;
    struct store *store;
    struct table table = {0};
    char *path = sample_path("merges.sqlite");
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= 8; seed++)
        sample_finished_run(store, seed);
    store_close(store);
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    /* Use is 1, 2, 4, 3 where Transfer is 1, 2, 3, 4, times ten. */
    assert_int_equal(sqlite3_exec(database,
                                  "UPDATE settings SET value = 7 WHERE key = 'training.iterations' AND run > 4;"
                                  "UPDATE evaluations SET correct = 10 * (1 + (run - 1) % 4) + 50 * (run > 4);"
                                  "UPDATE merge_effects SET chosen = substr('12435687', run, 1);"
                                  "UPDATE expert_counts SET count = 1 + (expert = 2) * substr('43128756', run, 1) "
                                  "WHERE task = 1;",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    assert_ok(store_open(&store, path, STORE_READ, &error));
    assert_ok(query_named(store, "merges", &(struct query_filter){.by = "training.iterations"}, &table, &error));
    double r = table_cell_at(&table, 0, column_of(&table, "r"))->real,
           low = table_cell_at(&table, 0, column_of(&table, "r_low"))->real;
    assert_int_equal(table_rows(&table), 3);
    assert_true(fabs(r - 0.8) < 1e-9);
    assert_true(fabs(low - tanh(atanh(0.8) - 1.959963984540054)) < 1e-9);
    static const double transfer[] = {1, 2, 3, 4},
                        next_use[] = {6 * 9.0 / 14, 6 * 8.0 / 13, 6 * 6.0 / 11, 6 * 7.0 / 12};
    r = table_cell_at(&table, 0, column_of(&table, "r_next"))->real;
    assert_true(fabs(r - statistics_correlation(next_use, transfer, 4)) < 1e-9 && r < -0.7);
    assert_true(table_cell_at(&table, 2, column_of(&table, "r_next_high"))->real < 0.5);
    r = table_cell_at(&table, 2, column_of(&table, "r"))->real;
    low = table_cell_at(&table, 2, column_of(&table, "r_low"))->real;
    assert_int_equal(table_cell_at(&table, 2, column_of(&table, "runs"))->integer, 8);
    assert_true(fabs(r - 0.8) < 1e-9);
    assert_true(fabs(low - tanh(atanh(0.8) - 1.959963984540054 / 2)) < 1e-9);
    table_free(&table);
    store_close(store);
    sample_remove(path);
}

static void classes_are_shown_with_their_experts(void **state)
{
    struct table table = ask(state, "class-experts", (struct query_filter){.run = 1});
    assert_int_equal(table_rows(&table), 4 * SAMPLE_TASKS);
    assert_string_equal(table_cell_at(&table, 3, column_of(&table, "class_name"))->text, "another");
    assert_int_equal(table_cell_at(&table, 3, column_of(&table, "expert"))->integer, 5);
    assert_int_equal(table_cell_at(&table, 3, column_of(&table, "count"))->integer, 180);
    assert_true(table_cell_at(&table, 3, column_of(&table, "share"))->real == 75);
    table_free(&table);
    table = ask(state, "class-experts", (struct query_filter){.run = 1, .dataset = "digits"});
    assert_int_equal(table_rows(&table), 2);
    assert_int_equal(table.columns, 4 + 6);
    assert_int_equal(table_cell_at(&table, 1, column_of(&table, "block"))->integer, 1);
    assert_string_equal(table_cell_at(&table, 1, column_of(&table, "class_name"))->text, "another");
    assert_true(table_cell_at(&table, 0, column_of(&table, "1"))->real == 25);
    assert_true(table_cell_at(&table, 1, column_of(&table, "1"))->real == 0);
    assert_true(table_cell_at(&table, 1, column_of(&table, "5"))->real == 75);
    table_free(&table);
}

static void the_selector_is_a_confusion(void **state)
{
    struct table table = ask(state, "routers", (struct query_filter){.run = 1});
    assert_int_equal(table_rows(&table), SAMPLE_TASKS);
    assert_int_equal(table.columns, 3 + 1 + SAMPLE_TASKS);
    assert_string_equal(table_cell_at(&table, 2, column_of(&table, "after"))->text, "flowers");
    assert_string_equal(table_cell_at(&table, 2, column_of(&table, "task"))->text, "textures_&_more");
    assert_true(table_cell_at(&table, 2, column_of(&table, "zero-shot CLIP"))->real == 10);
    assert_true(table_cell_at(&table, 2, column_of(&table, "aircraft"))->real == 1);
    assert_true(table_cell_at(&table, 2, column_of(&table, "digits"))->real == 0);
    assert_true(table_cell_at(&table, 2, column_of(&table, "flowers"))->real == 89);
    table_free(&table);
    assert_int_equal(count(state, "routers", (struct query_filter){.run = 1, .dataset = "digits"}), 1);
    table = ask(state, "routers", (struct query_filter){.status = "stopped"}); /* one task learnt, one router */
    assert_int_equal(table.columns, 3 + 1 + 1);
    assert_true(table_cell_at(&table, 1, column_of(&table, "aircraft"))->real == 0.5);
    table_free(&table);
    assert_int_equal(count(state, "routers", (struct query_filter){0}), 5 * SAMPLE_TASKS);
}

/* Mean over seeds 1 to 3 of one dataset's Last. */
static double mean_last(int64_t task)
{
    double sum = 0;
    for (int64_t seed = 1; seed <= 3; seed++)
        sum += 100.0 * (double)sample_correct(seed, SAMPLE_TASKS - 1, task) / SAMPLE_IMAGES;
    return sum / 3;
}

/* 95% over seeds 1 to 3 of the mean over tasks; Student's t with two degrees of freedom. */
static double half_width_of_last(void)
{
    double value[3] = {0}, mean = 0, squares = 0;
    for (int64_t seed = 1; seed <= 3; seed++) {
        for (int64_t task = 0; task < SAMPLE_TASKS; task++)
            value[seed - 1] +=
                100.0 * (double)sample_correct(seed, SAMPLE_TASKS - 1, task) / SAMPLE_IMAGES / SAMPLE_TASKS;
        mean += value[seed - 1] / 3;
    }
    for (size_t i = 0; i < 3; i++)
        squares += (value[i] - mean) * (value[i] - mean);
    return 0.95 * sqrt(2 / (4 * 0.025 * 0.975)) * sqrt(squares / 2) / sqrt(3); /* t in closed form */
}

static void the_paper_table_has_methods_by_datasets(void **state)
{
    struct table table = ask(state, "paper-table", (struct query_filter){0});
    size_t digits = column_of(&table, "digits"), mean = column_of(&table, "mean");
    assert_int_equal(table_rows(&table), 3 * 2); /* Transfer, Average, Last of two configurations */
    assert_int_equal(table.blocks, 2);
    assert_int_equal(table.columns, 3 + SAMPLE_TASKS + 2);
    assert_string_equal(table_cell_at(&table, 4, 0)->text, "Last");
    assert_string_equal(table_cell_at(&table, 4, column_of(&table, "method"))->text, "adapters, most_used");
    assert_string_equal(table_cell_at(&table, 5, column_of(&table, "method"))->text, "adapters");
    assert_int_equal(table_cell_at(&table, 4, column_of(&table, "seeds"))->integer, 3);
    assert_true(fabs(table_cell_at(&table, 4, digits)->real - mean_last(1)) < 1e-9);
    double sum = 0;
    for (int64_t task = 0; task < SAMPLE_TASKS; task++)
        sum += mean_last(task);
    assert_true(fabs(table_cell_at(&table, 4, mean)->real - sum / SAMPLE_TASKS) < 1e-9);
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "aircraft"))->kind, CELL_EMPTY); /* no transfer */
    assert_true(fabs(table_cell_at(&table, 4, column_of(&table, "±"))->real - half_width_of_last()) < 1e-9);
    assert_int_equal(table_cell_at(&table, 5, column_of(&table, "±"))->kind, CELL_EMPTY); /* one seed */
    table_free(&table);
    table = ask(state, "paper-table", (struct query_filter){.policy = "most_used", .dataset = "digits"});
    assert_int_equal(table.columns, 5); /* no mean of one */
    assert_true(fabs(table_cell_at(&table, 2, 3)->real - mean_last(1)) < 1e-9);
    table_free(&table);
    assert_int_equal(count(state, "paper-table", (struct query_filter){.status = "stopped"}), 0);
}

/* The first row of this metric. */
static size_t block_of(const struct table *table, const char *metric)
{
    size_t row = 0;
    while (row < table_rows(table) && strcmp(table_cell_at(table, row, 0)->text, metric) != 0)
        row++;
    return row;
}

/* The row of this method from `first` on. */
static size_t find_method(const struct table *table, size_t first, const char *name)
{
    for (size_t row = first; row < table_rows(table); row++)
        if (strcmp(table_cell_at(table, row, column_of(table, "method"))->text, name) == 0)
            return row;
    fail_msg("there is no row %s", name);
    return 0;
}

static void published_rows_stand_beside_ones_own(void **state)
{
    struct table table = ask(state, "paper-table", (struct query_filter){.published = true});
    size_t method = column_of(&table, "method"), mean = column_of(&table, "mean"), rows = block_of(&table, "Last");
    assert_true(rows > 2 * (2 + 2) && rows < table_rows(&table));
    size_t last = find_method(&table, rows, "MA, published (Park, Tables 2 and 3)"),
           zscl = find_method(&table, rows, "ZSCL, published (ZSCL, Table 3)");
    assert_int_equal(table_cell_at(&table, last, column_of(&table, "seeds"))->kind, CELL_EMPTY);
    assert_true(table_cell_at(&table, last, column_of(&table, "mnist"))->real == 98.0);
    assert_int_equal(table_cell_at(&table, last, column_of(&table, "digits"))->kind, CELL_EMPTY);
    assert_int_equal(table_cell_at(&table, last, column_of(&table, "±"))->kind, CELL_EMPTY);
    assert_true(table_cell_at(&table, zscl, column_of(&table, "mnist"))->real == 98.7);
    for (size_t row = 0; row < table_rows(&table); row++) /* the datasets are not the same */
        assert_int_equal(table_cell_at(&table, row, mean)->kind, CELL_EMPTY);
    for (size_t row = 0; row < table_rows(&table); row++) /* those of the runs' setting and order alone */
        assert_null(strstr(table_cell_at(&table, row, method)->text, "order II"));
    /* Whatever the form, no test set of another size stands beside theirs without a word. */
    for (enum table_format format = TABLE_TEXT; format <= TABLE_LATEX; format++) {
        struct text text = {0};
        assert_ok(table_render(&table, format, false, &text, &error));
        assert_non_null(strstr(text.data, "other data than in papers)"));
        text_free(&text);
    }
    table_free(&table);
    assert_int_equal(count(state, "leaderboard", (struct query_filter){.published = true}), 2);
    assert_int_equal(count(state, "runs", (struct query_filter){.published = true}), 5);
}

/* Without runs, all of them, or those of one setting; some are known as means alone. */
static void published_rows_alone(void **state)
{
    struct store *store;
    struct table table = {0};
    (void)state;
    assert_ok(store_open_memory(&store, "published", &error));
    assert_ok(query_named(store, "paper-table", &(struct query_filter){.published = true}, &table, &error));
    size_t row = find_method(&table, 0, "ZSCL, published (ZSCL, Table 10, order II)");
    assert_true(table_cell_at(&table, row, column_of(&table, "mean"))->real == 64.2); /* as printed */
    assert_true(table_cell_at(&table, row, column_of(&table, "cifar100"))->real == 68.2);
    table_free(&table);
    table = (struct table){0};
    assert_ok(query_named(store, "paper-table", &(struct query_filter){.published = true, .setting = "x_tail"}, &table,
                          &error));
    row = find_method(&table, 0, "RAIL-Primal, published (MoRAM, X-TAIL)");
    assert_true(table_cell_at(&table, row, column_of(&table, "mean"))->real == 62.4);
    assert_true(table_cell_at(&table, row, column_of(&table, "food"))->real == 84.0);
    /* MoRAM without LwF's Last, LADA in two orders without Transfer of its RAIL */
    assert_int_equal(table_rows(&table), (3 * 7 - 1) + (1 + 2 * 2) + (2 * 3 + 2 * 2));
    row = find_method(&table, 0, "RAIL-Dual, published (LADA's own run, Table 1)");
    assert_int_equal(
        row, find_method(&table, block_of(&table, "Average"), "RAIL-Dual, published (LADA's own run, Table 1)"));
    assert_true(table_cell_at(&table, row, column_of(&table, "mean"))->real == 71.3);
    table_free(&table);
    store_close(store);
}

/* Rows of a suite have its names; those that test no task after another have the accuracies that they have. */
static void rows_of_suites_have_their_names(void **state)
{
    char *path = sample_path("results.sqlite");
    struct fixture rows = {.path = path};
    void *rows_state = &rows;
    static const char *const names[] = {"CLIP", "Fine-tune"};
    (void)state;
    assert_ok(store_open(&rows.store, path, STORE_WRITE, &error));
    for (int64_t i = 0; i < 2; i++) {
        struct run_description described = sample_description(1);
        struct setting_row setting = {.key = "run.row", .value = names[i], .type = "text"};
        struct run_start start;
        described.suite_hash = names[i];
        described.settings = &setting;
        described.setting_count = 1;
        assert_ok(store_run_start(rows.store, &described, &start, &error));
        for (int64_t task = 0; task < SAMPLE_TASKS; task++)
            assert_ok(sample_add_task(rows.store, start.run,
                                      &(struct sample_task){.task = task,
                                                            .name = (const char *[]){"a", "b", "c", "d"}[task],
                                                            .classes = 2,
                                                            .test_images = 100,
                                                            .test_digest = "0"},
                                      &error));
        for (int64_t task = 0; task < SAMPLE_TASKS; task++)
            assert_ok(store_add_evaluation(
                rows.store, start.run,
                &(struct evaluation_row){
                    .after_task = i == 0 ? -1 : task, .task = task, .correct = 10 * (task + 1), .images = 100},
                &error));
        assert_ok(store_run_end(rows.store, start.run, RUN_FINISHED, NULL, &error));
    }
    struct table table = ask(&rows_state, "paper-table", (struct query_filter){0});
    size_t mean = column_of(&table, "mean");
    assert_string_equal(table_cell_at(&table, 0, 1)->text, "CLIP");
    assert_true(table_cell_at(&table, 0, mean)->real == 30); /* Transfer of b, c, d */
    assert_true(table_cell_at(&table, 2, mean)->real == 25); /* Average */
    assert_true(table_cell_at(&table, 4, mean)->real == 25); /* Last */
    assert_string_equal(table_cell_at(&table, 5, 1)->text, "Fine-tune");
    assert_int_equal(table_cell_at(&table, 1, mean)->kind, CELL_EMPTY);
    assert_int_equal(table_cell_at(&table, 3, mean)->kind, CELL_EMPTY);
    assert_true(table_cell_at(&table, 5, mean)->real == 25);
    table_free(&table);
    store_close(rows.store);
    sample_remove(path);
}

/* The digest of the runs of two seeds. */
static void digest_of(const int64_t seeds[2], char digest[80])
{
    char *path = sample_path("results.sqlite");
    struct fixture runs = {.path = path};
    void *state = &runs;
    assert_ok(store_open(&runs.store, path, STORE_WRITE, &error));
    for (size_t i = 0; i < 2; i++)
        sample_finished_run(runs.store, seeds[i]);
    struct table table = ask(&state, "digest", (struct query_filter){0});
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "accuracies"))->integer,
                     2 * SAMPLE_TASKS * (SAMPLE_TASKS + 1));
    snprintf(digest, 80, "%s", table_cell_at(&table, 0, column_of(&table, "digest"))->text);
    table_free(&table);
    store_close(runs.store);
    sample_remove(path);
}

/* Steps of one dataset are no columns: Avg and Last of the classes seen. */
static void class_incremental_runs_have_avg_and_last(void **state)
{
    char *path = sample_path("results.sqlite");
    struct fixture runs = {.path = path};
    void *runs_state = &runs;
    static const int64_t right[2][3] = {{90, 60, 30}, {80, 40, 40}}; /* of a seed: (0, 0), (1, 0), (1, 1) */
    (void)state;
    assert_ok(store_open(&runs.store, path, STORE_WRITE, &error));
    for (int64_t seed = 0; seed < 2; seed++) {
        struct run_description described = sample_description(seed);
        static const struct setting_row settings[] = {{"data.order", "[cifar100]", "list"}, {"run.row", "MA", "text"}};
        struct run_start start;
        described.setting = "class_incremental";
        described.settings = settings;
        described.setting_count = 2;
        described.tasks = 2;
        assert_ok(store_run_start(runs.store, &described, &start, &error));
        for (int64_t task = 0; task < 2; task++)
            assert_ok(sample_add_task(
                runs.store, start.run,
                &(struct sample_task){
                    .task = task, .name = task == 0 ? "a" : "b", .classes = 2, .test_images = 100, .test_digest = "0"},
                &error));
        for (int64_t cell = 0; cell < 3; cell++)
            assert_ok(store_add_evaluation(
                runs.store, start.run,
                &(struct evaluation_row){
                    .after_task = cell > 0, .task = cell == 2, .correct = right[seed][cell], .images = 100},
                &error));
        assert_ok(store_run_end(runs.store, start.run, RUN_FINISHED, NULL, &error));
    }
    struct table table = ask(&runs_state, "paper-table", (struct query_filter){0});
    assert_int_equal(table_rows(&table), 1);
    assert_string_equal(table_cell_at(&table, 0, column_of(&table, "dataset"))->text, "cifar100");
    assert_string_equal(table_cell_at(&table, 0, column_of(&table, "method"))->text, "MA");
    assert_true(fabs(table_cell_at(&table, 0, column_of(&table, "Avg"))->real - (67.5 + 60) / 2) < 1e-9);
    assert_true(fabs(table_cell_at(&table, 0, column_of(&table, "Last"))->real - (45 + 40) / 2.0) < 1e-9);
    /* Half of a difference of 5, times t = tan(0.95 π / 2) of one degree of freedom. */
    assert_true(fabs(table_cell_at(&table, 0, column_of(&table, "Last ±"))->real - 2.5 * tan(0.95 * acos(0.0))) < 1e-6);
    table_free(&table);
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database,
                                  "UPDATE runs SET selector = 'oracle'; "
                                  "UPDATE evaluations SET images = 400 WHERE task = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    /* Last of all images: (60 + 30) / 500, not the tasks' mean. */
    table = ask(&runs_state, "selector", (struct query_filter){0});
    assert_true(fabs(table_cell_at(&table, 0, column_of(&table, "last"))->real - 18) < 1e-9);
    assert_true(fabs(table_cell_at(&table, 0, column_of(&table, "average"))->real - (90 + 18) / 2.0) < 1e-9);
    table_free(&table);
    table = ask(&runs_state, "paper-table", (struct query_filter){.published = true});
    assert_non_null(strstr(table_cell_at(&table, 0, column_of(&table, "method"))->text, "other data than in papers"));
    table_free(&table);
    store_close(runs.store);
    sample_remove(path);
}

/* A class-incremental run of two tasks with the first `cells` of the accuracies (1, 0), (1, 1), (0, 0). */
static void add_steps(struct store *store, const char *suite_hash, const char *row, int64_t cells)
{
    const struct setting_row settings[] = {{"data.order", "[cifar100]", "list"}, {"run.row", row, "text"}};
    struct run_description described = sample_description(0);
    struct run_start start;
    described.setting = "class_incremental";
    described.suite_hash = suite_hash;
    described.settings = settings;
    described.setting_count = 2;
    described.tasks = 2;
    assert_ok(store_run_start(store, &described, &start, &error));
    for (int64_t task = 0; task < 2; task++)
        assert_ok(sample_add_task(
            store, start.run,
            &(struct sample_task){
                .task = task, .name = task == 0 ? "a" : "b", .classes = 2, .test_images = 100, .test_digest = "0"},
            &error));
    for (int64_t cell = 0; cell < cells; cell++)
        assert_ok(store_add_evaluation(
            store, start.run,
            &(struct evaluation_row){
                .after_task = cell < 2, .task = cell == 1, .correct = 50 + 20 * cell, .images = 100},
            &error));
    assert_ok(store_run_end(store, start.run, RUN_FINISHED, NULL, &error));
}

/* One training on all tasks has a last row alone. Configurations of one name are told apart. */
static void class_incremental_tables_have_every_configuration(void **state)
{
    char *path = sample_path("results.sqlite");
    struct fixture runs = {.path = path};
    void *runs_state = &runs;
    (void)state;
    assert_ok(store_open(&runs.store, path, STORE_WRITE, &error));
    add_steps(runs.store, "1111111111", "Joint", 2);
    add_steps(runs.store, "2222222222", "MA", 3);
    add_steps(runs.store, "3333333333", "MA", 3);
    struct table table = ask(&runs_state, "paper-table", (struct query_filter){0});
    assert_int_equal(table_rows(&table), 3);
    size_t method = column_of(&table, "method");
    assert_string_equal(table_cell_at(&table, 0, method)->text, "Joint");
    assert_string_equal(table_cell_at(&table, 1, method)->text, "MA, 22222222");
    assert_string_equal(table_cell_at(&table, 2, method)->text, "MA, 33333333");
    assert_int_equal(table_cell_at(&table, 0, column_of(&table, "Avg"))->kind, CELL_EMPTY);
    for (size_t row = 0; row < 3; row++)
        assert_true(fabs(table_cell_at(&table, row, column_of(&table, "Last"))->real - 60) < 1e-9);
    assert_true(fabs(table_cell_at(&table, 1, column_of(&table, "Avg"))->real - (90 + 60) / 2.0) < 1e-9);
    table_free(&table);
    store_close(runs.store);
    sample_remove(path);
}

/* What a run is called beside published numbers, after its method. */
static void expect_name_beside_papers(const char *setting, const char *key, const char *value, const char *model,
                                      const char *expected)
{
    char *path = sample_path("results.sqlite");
    struct fixture runs = {.path = path};
    void *state = &runs;
    const struct setting_row settings[] = {{"data.order", "[cifar100]", "list"}, {key, value, "text"}};
    struct run_description described = sample_description(0);
    struct run_start start;
    described.setting = setting;
    described.order = "I";
    described.model = model;
    described.settings = settings;
    described.setting_count = 2;
    described.tasks = 1;
    assert_ok(store_open(&runs.store, path, STORE_WRITE, &error));
    assert_ok(store_run_start(runs.store, &described, &start, &error));
    assert_ok(sample_add_task(
        runs.store, start.run,
        &(struct sample_task){.task = 0, .name = "cifar100", .classes = 100, .test_images = 10000, .test_digest = "0"},
        &error));
    assert_ok(store_add_evaluation(runs.store, start.run,
                                   &(struct evaluation_row){.after_task = 0, .task = 0, .correct = 50, .images = 10000},
                                   &error));
    assert_ok(store_run_end(runs.store, start.run, RUN_FINISHED, NULL, &error));
    struct table table = ask(&state, "paper-table", (struct query_filter){.published = true});
    char name[128];
    snprintf(name, sizeof name, "adapters, most_used%s", expected);
    find_method(&table, 0, name);
    table_free(&table);
    store_close(runs.store);
    sample_remove(path);
}

static void runs_that_papers_did_not_make_are_marked(void **state)
{
    (void)state;
    static const char other[] = " (other setting than in papers)";
    expect_name_beside_papers("few_shot", "data.shots", "5", "ViT-B-16", "");
    expect_name_beside_papers("few_shot", "data.shots", "1", "ViT-B-16", other);
    expect_name_beside_papers("x_tail", "data.shots", "16", "vit_b_16", "");
    expect_name_beside_papers("x_tail", "data.shots", "5", "ViT-B-16", other);
    expect_name_beside_papers("full_shot", "data.shots", "0", "ViT-B-32", ", ViT-B-32");
    expect_name_beside_papers("full_shot", "data.shots", "0", "mini", " (other data than in papers)");
    expect_name_beside_papers("class_incremental", "data.class_order", "cifar100", "ViT-B-16", "");
    expect_name_beside_papers("class_incremental", "data.class_order", "[1, 0]", "ViT-B-16", other);
    expect_name_beside_papers("class_incremental", "data.class_order", "cifar100", "ViT-L-14", ", ViT-L-14");
}

/* The order in which runs were made does not matter, their accuracies do. */
static void results_have_a_digest(void **state)
{
    char one[80], other[80];
    (void)state;
    digest_of((int64_t[]){1, 2}, one);
    digest_of((int64_t[]){2, 1}, other);
    assert_string_equal(one, other);
    digest_of((int64_t[]){1, 3}, other);
    assert_string_not_equal(one, other);
}

static void configurations_with_one_name_show_their_digest(void **state)
{
    char *path = sample_path("results.sqlite");
    struct fixture twins = {.path = path};
    void *twins_state = &twins;
    (void)state;
    assert_ok(store_open(&twins.store, path, STORE_WRITE, &error));
    sample_finished_run(twins.store, 1);
    struct run_description other = sample_description(1);
    struct run_start start;
    other.suite_hash = "fedcba9876543210";
    assert_ok(store_run_start(twins.store, &other, &start, &error));
    assert_ok(sample_write(twins.store, start.run, 1, -1, 0, -1, 0, &error));
    assert_ok(store_run_end(twins.store, start.run, RUN_FINISHED, NULL, &error));
    struct table table = ask(&twins_state, "paper-table", (struct query_filter){0});
    assert_string_equal(table_cell_at(&table, 1, 1)->text, "adapters, most_used, fedcba98");
    table_free(&table);
    store_close(twins.store);
    sample_remove(path);
}

static void metrics_of_one_dataset(void **state)
{
    struct table table = ask(state, "leaderboard", (struct query_filter){.policy = "most_used", .dataset = "digits"});
    assert_int_equal(table_rows(&table), 1);
    assert_true(fabs(table.cell[column_of(&table, "last")].real - mean_last(1)) < 1e-9);
    table_free(&table);
    table = ask(state, "metrics", (struct query_filter){.run = 2, .dataset = "digits"});
    assert_int_equal(table_rows(&table), 1);
    assert_true(table.cell[column_of(&table, "last")].real ==
                100.0 * (double)sample_correct(2, SAMPLE_TASKS - 1, 1) / SAMPLE_IMAGES);
    table_free(&table);
    table = ask(state, "matrix", (struct query_filter){.run = 2, .dataset = "digits"});
    assert_int_equal(table.columns, column_of(&table, "after") + 2);
    assert_true(table_cell_at(&table, 1, column_of(&table, "digits"))->real ==
                100.0 * (double)sample_correct(2, 0, 1) / SAMPLE_IMAGES);
    table_free(&table);
}

static void filters_that_choose_nothing_are_mistakes(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    assert_ok(query_check_filter(store, &(struct query_filter){.run = 5, .suite = "sample", .policy = "none"}, &error));
    assert_ok(query_check_filter(
        store, &(struct query_filter){.since = "2026-01-31", .before = "2026-01-31T12:00", .dataset = "digits"},
        &error));
    assert_fails(query_check_filter(store, &(struct query_filter){.policy = "most_usd"}, &error), ERROR_ARGUMENT,
                 "unknown policy \"most_usd\" (did you mean \"most_used\"?); expected one of: most_used, none");
    assert_fails(query_check_filter(store, &(struct query_filter){.dataset = "cars"}, &error), ERROR_ARGUMENT,
                 "unknown dataset \"cars\"");
    assert_fails(query_check_filter(store, &(struct query_filter){.run = 6}, &error), ERROR_ARGUMENT, "no run 6");
    assert_fails(query_check_filter(store, &(struct query_filter){.since = "yesterday"}, &error), ERROR_ARGUMENT,
                 "--since: expected a time like 2026-01-31");
    static const char *const impossible[] = {"2026-13-01", "2026-00",          "2026-02-30",
                                             "2026-04-31", "2026-01-31T24:00", "2026-01-31T12:60"};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        assert_fails(query_check_filter(store, &(struct query_filter){.since = impossible[i]}, &error), ERROR_ARGUMENT,
                     impossible[i]);
    assert_ok(query_check_filter(store, &(struct query_filter){.since = "2024-02-29T23:59:59Z"}, &error));
    assert_ok(query_check_filter(store, &(struct query_filter){.has_seed = true, .seed = 2}, &error));
    assert_fails(query_check_filter(store, &(struct query_filter){.has_seed = true, .seed = 77}, &error),
                 ERROR_ARGUMENT, "unknown seed \"77\"");
    assert_fails(query_check_filter(store, &(struct query_filter){.before = "2026-01-3"}, &error), ERROR_ARGUMENT,
                 "found \"2026-01-3\"");
}

static void free_sql_only_reads(void **state)
{
    struct fixture *fixture = *state;
    static const char *const refused[] = {"DELETE FROM steps",
                                          "INSERT INTO properties VALUES ('a', 'b') RETURNING name",
                                          "DROP VIEW matrix",
                                          "ATTACH 'other.sqlite' AS other",
                                          "PRAGMA journal_mode = DELETE",
                                          "PRAGMA user_version = 5",
                                          "BEGIN",
                                          "VACUUM INTO 'copy.sqlite'",
                                          "CREATE TEMP TABLE t (x)",
                                          "WITH x AS (SELECT 1) UPDATE runs SET suite = 'y'",
                                          "SELECT load_extension('evil')"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct table table = {0};
        assert_fails(query_sql(fixture->store, refused[i], &table, &error), ERROR_ARGUMENT, "only reads");
        table_free(&table);
    }
    struct table table = {0};
    assert_fails(query_sql(fixture->store, "SELECT 1; DELETE FROM steps", &table, &error), ERROR_ARGUMENT, "one SQL");
    assert_fails(query_sql(fixture->store, "", &table, &error), ERROR_ARGUMENT, "found none");
    assert_fails(query_sql(fixture->store, "SELECT bogus FROM runs", &table, &error), ERROR_ARGUMENT,
                 "no such column: bogus");
    assert_ok(
        query_sql(fixture->store, "SELECT count(*) AS n, x'00ff' AS b, NULL, 0.5, 'é' FROM steps; ", &table, &error));
    assert_int_equal(table.columns, 5);
    assert_true(table.cell[0].integer > 0);
    assert_string_equal(table.cell[1].text, "x'00ff'");
    assert_int_equal(table.cell[2].kind, CELL_EMPTY);
    assert_string_equal(table.cell[4].text, "é");
    table_free(&table);
}

static void endless_answers_are_cut_off(void **state)
{
    struct table table = {0};
    assert_fails(query_sql(((struct fixture *)*state)->store,
                           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT zeroblob(200000000) "
                           "FROM n LIMIT 9",
                           &table, &error),
                 ERROR_ARGUMENT, "LIMIT");
    table_free(&table);
}

/* The queries of README.md, its indented blocks. */
static void the_queries_of_the_readme_work(void **state)
{
    struct bytes readme;
    struct text sql = {0};
    int asked = 0;
    assert_ok(file_read(FIXTURES "/../../results/README.md", FILE_LIMIT, &readme, &error));
    for (char *rest = (char *)readme.data, *line; (line = strsep(&rest, "\n"));) {
        if (strncmp(line, "    ", 4) == 0) {
            text_add(&sql, "%s\n", line);
        } else if (sql.size) {
            struct table table = {0};
            assert_ok(query_sql(((struct fixture *)*state)->store, sql.data, &table, &error));
            assert_true(table_rows(&table) > 0);
            table_free(&table);
            text_clear(&sql);
            asked++;
        }
    }
    assert_true(asked >= 3);
    text_free(&sql);
    bytes_free(&readme);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_query_answers),
        cmocka_unit_test(filters_choose_runs),
        cmocka_unit_test(settings_choose_and_are_shown),
        cmocka_unit_test(tasks_tell_of_images_left_out),
        cmocka_unit_test(the_leaderboard_averages_seeds),
        cmocka_unit_test(the_matrix_has_a_row_per_checkpoint),
        cmocka_unit_test(the_summary_ends_in_the_metrics),
        cmocka_unit_test(experts_and_events_tell_what_happened),
        cmocka_unit_test(merges_show_use_and_what_goes_with_it),
        cmocka_unit_test(merges_are_followed_into_the_next_task),
        cmocka_unit_test(use_is_correlated_with_transfer_within_groups),
        cmocka_unit_test(classes_are_shown_with_their_experts),
        cmocka_unit_test(the_selector_is_a_confusion),
        cmocka_unit_test(the_paper_table_has_methods_by_datasets),
        cmocka_unit_test(published_rows_stand_beside_ones_own),
        cmocka_unit_test(published_rows_alone),
        cmocka_unit_test(rows_of_suites_have_their_names),
        cmocka_unit_test(class_incremental_runs_have_avg_and_last),
        cmocka_unit_test(class_incremental_tables_have_every_configuration),
        cmocka_unit_test(runs_that_papers_did_not_make_are_marked),
        cmocka_unit_test(results_have_a_digest),
        cmocka_unit_test(configurations_with_one_name_show_their_digest),
        cmocka_unit_test(metrics_of_one_dataset),
        cmocka_unit_test(filters_that_choose_nothing_are_mistakes),
        cmocka_unit_test(free_sql_only_reads),
        cmocka_unit_test(endless_answers_are_cut_off),
        cmocka_unit_test(the_queries_of_the_readme_work),
    };
    const struct CMUnitTest writing[] = {
        cmocka_unit_test_setup_teardown(matrices_say_whose_they_are, create, destroy),
        cmocka_unit_test_setup_teardown(twins_are_told_apart, create, destroy),
        cmocka_unit_test_setup_teardown(lists_have_many_spellings, create, destroy),
        cmocka_unit_test_setup_teardown(what_is_missing_is_explained, create, destroy),
    };
    int failed = cmocka_run_group_tests(tests, create, destroy);
    return failed + cmocka_run_group_tests(writing, NULL, NULL);
}
