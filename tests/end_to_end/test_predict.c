/* mtil predict answers as the evaluation of the run whose adapters it has; what it takes and refuses is in scripts/predict.txt. */
#include "tests/end_to_end/rows.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/dataset.h"
#include "results/store/per_image.h"

#define MODEL "--weights clip.safetensors --vocabulary vocabulary.txt --quiet "
#define LEARN "training.iterations=25 training.learning_rate=5e-2 "
#define PREFIXES "method.name=diki method.prefix_blocks=1 selector.kind=task_gaussian "

static struct workshop workshop;

static int set_up(void **state)
{
    (void)state;
    workshop_open(&workshop);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    workshop_close(&workshop);
    return 0;
}

/* The only run, whose adapters lie in saved.safetensors. */
static void make_run(const char *settings)
{
    char *arguments =
        path_format("run tiny.yaml --quiet run.folder=trained run.database=trained.db " LEARN "%s", settings);
    workshop_shell(&workshop, "rm -rf trained trained.db*");
    program_succeeds(&workshop, arguments);
    assert_int_equal(workshop_shell(&workshop, "mv trained/*/seed1/adapters.safetensors saved.safetensors"), 0);
    free(arguments);
}

/* --- As the run --- */

static const char *const order[] = {"mnist", "eurosat", "dtd"};
enum { TASKS = 3 };

static struct dataset *open_dataset(const char *name)
{
    struct dataset *dataset;
    char *root = workshop_path(&workshop, "data");
    assert_ok(dataset_open(&dataset, name, root, NULL, NULL, &error));
    free(root);
    return dataset;
}

/* The test images of a task in order, a path per line, in images.txt; returns how many. */
static size_t list_test_images(const char *task)
{
    struct dataset *dataset = open_dataset(task);
    struct text list = {0};
    size_t n = dataset_size(dataset, SPLIT_TEST);
    for (size_t i = 0; i < n; i++) {
        char *item = dataset_item_name(dataset, SPLIT_TEST, i);
        text_add(&list, "data/%s\n", item);
        free(item);
    }
    scratch_write_text(&workshop.scratch, "images.txt", list.data);
    text_free(&list);
    dataset_close(dataset);
    return n;
}

/* What the run's last row kept of the images of a task. */
static void read_stored(const char *task, size_t n, struct per_image *stored)
{
    struct text rows = {0};
    char sql[256], *database = workshop_path(&workshop, "trained.db");
    snprintf(sql, sizeof sql,
             "SELECT hex(data) FROM per_image JOIN tasks USING (run, task) WHERE after_task = 2 AND name = '%s'", task);
    rows_query(database, sql, &rows);
    size_t size = (rows.size - 1) / 2;
    uint8_t *bytes = xmalloc(size);
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(rows.data + 2 * i, "%2x", &byte), 1);
        bytes[i] = (uint8_t)byte;
    }
    assert_ok(per_image_unpack(stored, PER_IMAGE_PREDICTIONS, n, bytes, size, &error));
    free(bytes);
    text_free(&rows);
    free(database);
}

static json_t *predict(const char *arguments)
{
    json_error_t reason;
    char *line = path_format("predict " MODEL "--format json --adapters saved.safetensors %s", arguments);
    struct outcome outcome = program_ends(&workshop, line, 0);
    json_t *answers = json_loads(outcome.out.data, 0, &reason);
    if (!json_is_array(answers))
        fail_msg("mtil %s: expected an array, found: %s", line, outcome.out.data);
    outcome_free(&outcome);
    free(line);
    return answers;
}

static const char *word(const json_t *answers, size_t row, const char *key)
{
    return json_string_value(json_object_get(json_array_get(answers, row), key));
}

/* A class number of the run's: of one task, or counted over all. */
static void expect_class(struct dataset *const *datasets, size_t task, bool all_labels, size_t number,
                         const char *found_task, const char *found)
{
    size_t t = all_labels ? 0 : task;
    while (all_labels && number >= dataset_classes(datasets[t]))
        number -= dataset_classes(datasets[t++]);
    assert_string_equal(found_task, order[t]);
    assert_string_equal(found, dataset_class_name(datasets[t], number));
}

/* Image for image: the router always, and the class where both had the same classes to choose from; returns for how
 * many. */
static size_t compare_with_run(size_t task, const char *options, bool all_labels)
{
    struct dataset *datasets[TASKS];
    struct per_image stored;
    size_t n = list_test_images(order[task]), compared = 0;
    for (size_t t = 0; t < TASKS; t++)
        datasets[t] = open_dataset(order[t]);
    read_stored(order[task], n, &stored);
    json_t *answers = predict(options);
    assert_int_equal(json_array_size(answers), n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(word(answers, i, "router"), stored.router[i] < 0 ? "none" : order[stored.router[i]]);
        if (!all_labels && stored.router[i] != (int16_t)task)
            continue;
        expect_class(datasets, task, all_labels, stored.predicted[i], word(answers, i, "task"),
                     word(answers, i, "class"));
        compared++;
    }
    for (size_t t = 0; t < TASKS; t++)
        dataset_close(datasets[t]);
    json_decref(answers);
    per_image_free(&stored);
    return compared;
}

TEST(answers_are_those_of_the_run)
{
    make_run("");
    compare_with_run(1, "@images.txt", false);
    compare_with_run(2, "--list images.txt", false);
    compare_with_run(2, "--threads 3 --router auto @images.txt", false);
}

/* With the adapters of the run above. */
TEST(ranks_add_up)
{
    double total = 0, before = 1;
    json_t *answers = predict("--router mnist --top 99 data/dtd/dtd/images/braided/braided_0040.jpg");
    assert_int_equal(json_array_size(answers), 10); /* as many as there are classes */
    for (size_t k = 0; k < 10; k++) {
        const json_t *row = json_array_get(answers, k);
        double confidence = json_real_value(json_object_get(row, "confidence"));
        assert_int_equal(json_integer_value(json_object_get(row, "rank")), k + 1);
        assert_string_equal(word(answers, k, "task"), "mnist");
        assert_true(json_is_null(json_object_get(row, "error")));
        assert_true(confidence <= before);
        before = confidence;
        total += confidence;
    }
    assert_true(total > 1 - 1e-9 && total < 1 + 1e-9);
    json_decref(answers);
}

TEST(with_all_labels_and_decisions_per_batch)
{
    make_run("evaluation.label_space=all selector.decision=per_batch selector.decision_batch=3");
    assert_true(compare_with_run(1, "--labels all @images.txt", true) > 0);
    assert_true(compare_with_run(2, "--labels all @images.txt", true) > 0);
}

TEST(with_the_router_that_the_data_name)
{
    make_run("selector.kind=oracle");
    assert_true(compare_with_run(1, "--router eurosat @images.txt", false) > 0);
    assert_true(compare_with_run(2, "--router 2 @images.txt", false) > 0);
}

/* Class prompts have the mean weight of the images that take the same prefixes. */
TEST(with_prefixes)
{
    make_run(PREFIXES "evaluation.label_space=all");
    for (size_t task = 1; task < TASKS; task++) /* MNIST's images are no files */
        assert_true(compare_with_run(task, "--labels all @images.txt", true) > 0);
}

TEST_GROUP(set_up, tear_down)
