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

TEST(adapters_are_as_good_as_at_the_end_of_their_run)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet selector.kind=oracle " LEARN);
    char *file = workshop_find(&workshop, "runs/*/seed1/adapters.safetensors");
    expect_eval(&workshop, "adapters", file, " --router own", "e.after_task = 2");
    expect_eval(&workshop, "adapters", file, " --router none", "e.after_task = -1");
    free(file);
    workshop_close(&workshop);
}

TEST(weights_are_as_good_as_at_the_end_of_their_run)
{
    struct workshop workshop;
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
TEST(the_saved_selector_gives_the_last_row)
{
    static const char *const settings[] = {
        "",
        "selector.decision=per_batch selector.decision_batch=5 ",
        "evaluation.label_space=all ",
        "method.name=diki method.prefix_blocks=1 selector.kind=task_gaussian ",
    };
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
