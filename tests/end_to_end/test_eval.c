/* mtil eval finds again what mtil run found: the last row of the matrix from the adapters or weights that the run left. */
#include "tests/end_to_end/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

/* dataset,images,correct after one task, as the database has them; accuracies follow in eval's own lines. */
static void expect_table(const struct workshop *workshop, const char *answer, const char *condition)
{
    struct text rows = {0};
    char sql[512], *database = workshop_path(workshop, "results.db");
    snprintf(sql, sizeof sql,
             "SELECT name, e.images, e.correct, 100.0 * e.correct / e.images, 100.0 * z.correct / z.images FROM "
             "evaluations e "
             "JOIN tasks USING (run, task) JOIN evaluations z USING (run, task) WHERE %s AND z.after_task = -1 ORDER "
             "BY task",
             condition);
    rows_query(database, sql, &rows);
    size_t line = 0;
    const char *found = strchr(answer, '\n') + 1;
    for (char *row = strtok(rows.data, "\n"); row != NULL; row = strtok(NULL, "\n"), line++) {
        char name[32], found_name[32];
        int images, correct, found_images, found_correct;
        double accuracy, zero_shot, found_accuracy, found_zero_shot;
        assert_int_equal(sscanf(row, "%31[^,],%d,%d,%lf,%lf", name, &images, &correct, &accuracy, &zero_shot), 5);
        assert_int_equal(sscanf(found, "%31[^,],%d,%d,%lf,%lf", found_name, &found_images, &found_correct,
                                &found_accuracy, &found_zero_shot),
                         5);
        assert_string_equal(found_name, name);
        assert_int_equal(found_images, images);
        assert_int_equal(found_correct, correct);
        assert_true(found_accuracy - accuracy < 1e-9 && accuracy - found_accuracy < 1e-9);
        assert_true(found_zero_shot - zero_shot < 1e-9 && zero_shot - found_zero_shot < 1e-9);
        found = strchr(found, '\n') + 1;
    }
    assert_int_equal(line, 3);
    assert_memory_equal(found, "average,,,", 10);
    text_free(&rows);
    free(database);
}

static void expect_eval(const struct workshop *workshop, const char *kind, const char *file, const char *rest,
                        const char *condition)
{
    char *arguments = path_format("eval tiny.yaml --quiet --format csv --%s %s%s", kind, file, rest);
    struct outcome outcome = program_run(workshop, &(struct launch){.arguments = arguments});
    if (outcome.exit_status != 0)
        fail_msg("mtil %s: %s", arguments, outcome.errors.data);
    expect_table(workshop, outcome.out.data, condition);
    outcome_free(&outcome);
    free(arguments);
}

#define LEARN "training.iterations=25 training.learning_rate=5e-2 "

static void adapters_are_as_good_as_at_the_end_of_their_run(void **state)
{
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet selector.kind=oracle " LEARN);
    char *file = workshop_find(&workshop, "runs/*/seed1/adapters.safetensors");
    expect_eval(&workshop, "adapters", file, " --router own", "e.after_task = 2");
    expect_eval(&workshop, "adapters", file, " --router none", "e.after_task = -1");
    free(file);
    workshop_close(&workshop);
}

static void weights_are_as_good_as_at_the_end_of_their_run(void **state)
{
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(
        &workshop, "run tiny.yaml --quiet method.name=continual_ft training.iterations=25 training.learning_rate=1e-3");
    char *file = workshop_find(&workshop, "runs/*/seed1/weights.safetensors");
    expect_eval(&workshop, "weights", file, "", "e.after_task = 2");
    expect_eval(&workshop, "weights", "clip.safetensors", "", "e.after_task = -1");
    free(file);
    workshop_close(&workshop);
}

/* Runs, and finds the last row of their matrix again: the selector that is saved with the adapters chooses as it did. */
static void the_saved_selector_gives_the_last_row(void **state)
{
    static const char *const settings[] = {
        "",
        "selector.decision=per_batch selector.decision_batch=5 ",
        "evaluation.label_space=all ",
        "method.name=diki method.prefix_blocks=1 selector.kind=task_gaussian ",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct workshop workshop;
        workshop_open(&workshop);
        char *arguments = path_format("run tiny.yaml --quiet " LEARN "%s", settings[i]);
        program_succeeds(&workshop, arguments);
        char *file = workshop_find(&workshop, "runs/*/seed1/adapters.safetensors");
        const char *labels = strstr(settings[i], "label_space") != NULL ? settings[i] : "";
        char *rest = path_format(" %s --router auto", labels), *by_default = path_format(" %s", labels);
        expect_eval(&workshop, "adapters", file, rest,
                    "e.after_task = 2"); /* the suite says per_image, the file decides */
        expect_eval(&workshop, "adapters", file, by_default, "e.after_task = 2");
        free(by_default);
        free(rest);
        free(file);
        free(arguments);
        workshop_close(&workshop);
    }
}

/* The row of one dataset in eval's answer, from its name to the end of the line; static. */
static const char *row_of(const char *answer, const char *name)
{
    static char row[256];
    char *key = path_format("\n%s,", name);
    const char *at = strstr(answer, key);
    assert_non_null(at);
    snprintf(row, sizeof row, "%.*s", (int)strcspn(at + 1, "\r\n"), at + 1);
    free(key);
    return row;
}

/* Another order, or a part of the tasks: each dataset has the same numbers as in the run's own order. */
static void routers_are_found_by_name(void **state)
{
    static const char *const orders[] = {"dtd,mnist", "eurosat,dtd,mnist", "dtd"};
    static const char *const routers[] = {"own", "auto"};
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet " LEARN);
    char *file = workshop_find(&workshop, "runs/*/seed1/adapters.safetensors");
    for (size_t r = 0; r < 2; r++) {
        char *whole = path_format("eval tiny.yaml --quiet --format csv --router %s --adapters %s", routers[r], file);
        struct outcome expected = program_ends(&workshop, whole, 0);
        for (size_t i = 0; i < 3; i++) {
            char *part = path_format("%s data.order=%s", whole, orders[i]);
            struct outcome outcome = program_ends(&workshop, part, 0);
            char *row = strdup(row_of(outcome.out.data, "dtd"));
            assert_string_equal(row, row_of(expected.out.data, "dtd"));
            free(row);
            outcome_free(&outcome);
            free(part);
        }
        outcome_free(&expected);
        free(whole);
    }
    free(file);
    workshop_close(&workshop);
}

/* Of a run that has only come to its second task, or never had the one that is asked for. */
static void routers_that_were_not_trained_are_refused(void **state)
{
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet run.checkpoints=all data.order=mnist,dtd");
    char *first = workshop_find(&workshop, "runs/*/seed1/task00.adapters.safetensors"),
         *last = workshop_find(&workshop, "runs/*/seed1/task01.adapters.safetensors"),
         *untrained = path_format("eval tiny.yaml --quiet data.order=mnist,dtd --router own --adapters %s", first),
         *absent = path_format("eval tiny.yaml --quiet --router own --adapters %s", last),
         *other = path_format("eval tiny.yaml --quiet --router auto model.weights=bare.safetensors model.heads=1,1 "
                              "model.activation=gelu --adapters %s",
                              last),
         *chosen = path_format("eval tiny.yaml --quiet --router auto --adapters %s", last);
    workshop_drop_metadata(&workshop, "clip.safetensors", "bare.safetensors");
    program_fails(&workshop, &(struct launch){.arguments = untrained},
                  (const char *const[]){"no trained router for the task dtd", "its tasks are: mnist;", NULL});
    program_fails(&workshop, &(struct launch){.arguments = absent},
                  (const char *const[]){"no trained router for the task eurosat", "mnist, dtd", "--router auto", NULL});
    program_fails(&workshop, &(struct launch){.arguments = other},
                  (const char *const[]){"belong to the model clip", "activation", NULL});
    program_succeeds(&workshop, chosen); /* eurosat is answered by whom the selector finds nearest, or by CLIP */
    free(chosen);
    free(other);
    free(absent);
    free(untrained);
    free(last);
    free(first);
    workshop_close(&workshop);
}

static char *count_of(const struct workshop *workshop, const char *sql)
{
    struct text rows = {0};
    char *database = workshop_path(workshop, "results.db");
    rows_query(database, sql, &rows);
    free(database);
    return rows.data;
}

static void expect_counts(const struct workshop *workshop, const char *sql, const char *expected)
{
    char *found = count_of(workshop, sql);
    assert_string_equal(found, expected);
    free(found);
}

/* Stored beside the run's rows; what is there is not computed again. */
static void other_selectors_answer_beside_the_runs_own(void **state)
{
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet run.checkpoints=all " LEARN);
    const char *arguments = "eval results.db 1 --quiet --format csv --selector clip,oracle,text selector.code=4 "
                            "selector.iterations=9 selector.batch=9";
    struct outcome first = program_ends(&workshop, arguments, 0);
    expect_counts(&workshop, "SELECT DISTINCT trial, selector, selection FROM trials",
                  "1,clip,per_image\n2,oracle,oracle\n3,text,per_image\n");
    expect_counts(&workshop, "SELECT trial, count(*) FROM trials GROUP BY trial", "1,9\n2,9\n3,9\n");
    expect_counts(
        &workshop,
        "SELECT count(*) FROM trials, json_each(routers) AS router WHERE trial = 2 AND CAST(router.key AS INTEGER) <> "
        "iif(task <= after_task, task, -1)",
        "0\n");
    struct outcome again = program_ends(&workshop, arguments, 0);
    assert_string_equal(again.out.data, first.out.data);
    program_succeeds(&workshop, "verify results.db --quiet");
    outcome_free(&again);
    outcome_free(&first);
    workshop_close(&workshop);
}

/* With the run's settings, the run's own rows: every count and every choice. */
static void the_same_selector_gives_the_same_rows(void **state)
{
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet run.checkpoints=all selector.kind=gaussian " LEARN);
    program_succeeds(&workshop, "eval results.db 1 --quiet --selector gaussian");
    expect_counts(&workshop,
                  "SELECT count(*) FROM trials JOIN evaluations USING (run, task, after_task, correct, images)", "9\n");
    expect_counts(
        &workshop,
        "SELECT count(*) FROM (SELECT after_task, task, CAST(router.key AS INTEGER), router.value FROM trials, "
        "json_each(routers) AS router EXCEPT SELECT after_task, task, router, count FROM router_choices)",
        "0\n");
    expect_counts(&workshop,
                  "SELECT (SELECT count(*) FROM trials, json_each(routers)) = (SELECT count(*) FROM router_choices)",
                  "1\n");
    workshop_close(&workshop);
}

/* A selector that failed leaves no trial; a folder is what is in it, wherever it is. */
static void trials_are_of_what_was_computed(void **state)
{
    static const char *const failures[][3] = {
        {"clip selector.unrelated=absent", "selector.unrelated: there is no folder absent"},
        {"alexnet selector.alexnet=clip.safetensors", "features.0.weight"},
        {"alexnet selector.alexnet=absent",
         "selector.alexnet: there is no file absent; expected AlexNet's weights: torchvision's"},
        {"clip selector.kind=text", "--selector names the kind"},
        {"clip --precision bf16", "do not change what is computed"},
    };
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet");
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        char *arguments = path_format("eval results.db 1 --quiet --selector %s", failures[i][0]);
        program_fails(&workshop, &(struct launch){.arguments = arguments}, &failures[i][1]);
        free(arguments);
    }
    expect_counts(&workshop, "SELECT count(DISTINCT trial) FROM trials", "0\n");
    scratch_write_png(&workshop.scratch, "one/a.png", 20, 17, 0x070301u);
    scratch_write_png(&workshop.scratch, "two/a.png", 20, 17, 0x070301u);
    program_succeeds(&workshop, "eval results.db 1 --quiet --selector clip selector.unrelated=one");
    program_succeeds(&workshop, "eval results.db 1 --quiet --selector clip selector.unrelated=two");
    expect_counts(&workshop, "SELECT count(DISTINCT trial) FROM trials", "1\n");
    scratch_write_png(&workshop.scratch, "two/a.png", 20, 17, 0x030107u);
    program_succeeds(&workshop, "eval results.db 1 --quiet --selector clip selector.unrelated=two");
    expect_counts(&workshop, "SELECT count(DISTINCT trial) FROM trials", "2\n");
    workshop_close(&workshop);
}

/* Adapters of the last task alone give the last row. */
static void trials_take_what_was_saved(void **state)
{
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet");
    program_succeeds(&workshop, "eval results.db 1 --quiet --selector text");
    expect_counts(&workshop, "SELECT DISTINCT after_task FROM trials", "2\n");
    program_fails(&workshop, &(struct launch){.arguments = "eval results.db 1 --quiet --selector none"},
                  (const char *const[]){"expected one that chooses", NULL});
    program_fails(&workshop,
                  &(struct launch){.arguments = "eval results.db 1 --quiet --selector text training.batch=3"},
                  (const char *const[]){"do not change what is computed", NULL});
    program_fails(&workshop, &(struct launch){.arguments = "eval results.db 7 --quiet --selector text"},
                  (const char *const[]){"no run 7", NULL});
    char *file = workshop_find(&workshop, "runs/*/seed1/adapters.safetensors");
    FILE *out = fopen(file, "ae");
    assert_non_null(out);
    fputc(0, out);
    fclose(out);
    program_fails(&workshop, &(struct launch){.arguments = "eval results.db 1 --quiet --selector oracle"},
                  (const char *const[]){"adapters that the run saved", NULL});
    free(file);
    workshop_close(&workshop);
}

/* A router beyond the suite's own tasks: adapters of a longer sequence. */
static void one_router_serves_all_tasks(void **state)
{
    struct workshop workshop;
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet selector.kind=oracle " LEARN);
    char *file = workshop_find(&workshop, "runs/*/seed1/adapters.safetensors");
    char *arguments = path_format("eval tiny.yaml --quiet --format csv data.order=dtd --router 2 --adapters %s", file);
    struct outcome outcome = program_run(&workshop, &(struct launch){.arguments = arguments});
    struct text rows = {0};
    char *database = workshop_path(&workshop, "results.db");
    rows_query(database, "SELECT 'dtd', images, correct FROM evaluations WHERE task = 2 AND after_task = 2", &rows);
    assert_int_equal(outcome.exit_status, 0);
    assert_memory_equal(strchr(outcome.out.data, '\n') + 1, rows.data, rows.size - 1);
    text_free(&rows);
    outcome_free(&outcome);
    free(database);
    free(arguments);
    free(file);
    workshop_close(&workshop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_are_as_good_as_at_the_end_of_their_run),
        cmocka_unit_test(weights_are_as_good_as_at_the_end_of_their_run),
        cmocka_unit_test(one_router_serves_all_tasks),
        cmocka_unit_test(the_saved_selector_gives_the_last_row),
        cmocka_unit_test(routers_are_found_by_name),
        cmocka_unit_test(routers_that_were_not_trained_are_refused),
        cmocka_unit_test(other_selectors_answer_beside_the_runs_own),
        cmocka_unit_test(the_same_selector_gives_the_same_rows),
        cmocka_unit_test(trials_are_of_what_was_computed),
        cmocka_unit_test(trials_take_what_was_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
