/* Class orders: the built-in ones, how they cut a dataset, what is refused; and a class-incremental run. */
#include <string.h>

#include <jansson.h>

#include "harness/run/settings_internal.h"
#include "harness/scenario/label_split.h"
#include "harness/scenario/task_settings.h"
#include "tests/harness/whole_run.h"

enum { MOST = 1024 };

/* What the last cut came to. */
static uint32_t order[MOST], task_of[MOST];

/* Of a dataset called toy, by those values of the keys. */
static status cut(size_t classes, const char *class_order, const char *first, const char *parts, const char *increment)
{
    const char *const values[][2] = {
        {"class_order", class_order}, {"first", first}, {"parts", parts}, {"increment", increment}};
    const struct option *table;
    struct options *options;
    must(settings_split_keys("order", &table, &error));
    must(options_create(&options, table, &error));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][1] != NULL)
            must(options_set(options, values[i][0], values[i][1], "test", &error));
    status result = class_order_cut(options, "toy", classes, order, task_of, &error);
    options_destroy(options);
    return result;
}

static void expect_built_in(const json_t *orders, const char *name)
{
    const json_t *expected = json_object_get(orders, name);
    size_t classes = json_array_size(expected);
    assert_between(classes, 100, MOST);
    must(cut(classes, name, "0", "10", "0"));
    for (size_t i = 0; i < classes; i++) {
        assert_int_equal(order[i], json_integer_value(json_array_get(expected, i)));
        assert_int_equal(task_of[order[i]], i / (classes / 10));
    }
}

TEST(built_in_orders)
{
    json_error_t reason;
    json_t *orders = json_load_file(FIXTURES "/cil/class_orders.json", 0, &reason);
    assert_non_null(orders);
    expect_built_in(orders, "cifar100");
    expect_built_in(orders, "tinyimagenet");
    assert_null(class_order_numbers("imagenet"));
    json_decref(orders);
}

TEST(a_first_task_of_its_own_size)
{
    static const uint32_t expected[8] = {2, 0, 1, 0, 2, 1, 1, 2}; /* 3 1; then 2 5 6, 0 4 7 */
    must(cut(8, "3 1 2 5 6 0 4 7", "2", "2", "0"));
    assert_memory_equal(task_of, expected, sizeof expected);
}

/* Printed by NumPy 2.4: np.random.seed(seed); np.random.permutation(n), and a checksum of it. */
TEST(orders_of_numpy)
{
    static const uint32_t of_twenty[20] = {14, 6, 5, 8, 12, 11, 18, 2, 4, 16, 10, 15, 9, 13, 7, 0, 3, 19, 17, 1};
    static const struct {
        const char *name;
        uint32_t classes, sum;
    } drawn[] = {
        {"numpy-1993", 10, 897686587u},        {"numpy-1993", 100, 1657893834u}, {"numpy-1993", 196, 1034472630u},
        {"numpy-1993", 200, 3502983566u},      {"numpy-0", 7, 2005413282u},      {"numpy-42", 1, 1u},
        {"numpy-4294967295", 50, 3073979147u}, {"numpy-1", 345, 71546823u},      {"numpy-7", 1024, 2655420274u},
    };
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        must(cut(drawn[i].classes, drawn[i].name, "0", "1", "0"));
        uint32_t sum = 0;
        for (size_t k = 0; k < drawn[i].classes; k++)
            sum = 31 * sum + order[k] + 1;
        assert_int_equal(sum, drawn[i].sum);
    }
    must(cut(20, "numpy-1993", "0", "10", "0"));
    assert_memory_equal(order, of_twenty, sizeof of_twenty);
}

TEST(parts_that_do_not_divide)
{
    static const struct {
        size_t classes;
        const char *first, *parts, *increment;
        size_t sizes[12];
    } cases[] = {{100, "0", "3", "0", {34, 33, 33}},
                 {101, "50", "5", "0", {50, 11, 10, 10, 10, 10}},
                 {100, "0", "4", "30", {30, 30, 30, 10}},
                 {101, "50", "6", "10", {50, 10, 10, 10, 10, 10, 1}},
                 {196, "16", "9", "20", {16, 20, 20, 20, 20, 20, 20, 20, 20, 20}},
                 {3, "0", "3", "1", {1, 1, 1}},
                 {7, "0", NULL, "3", {3, 3, 1}},
                 {7, "4", NULL, "2", {4, 2, 1}},
                 {7, "7", NULL, "3", {7}},
                 {7, "7", NULL, "0", {7}},
                 {100, "0", NULL, "30,20,50", {30, 20, 50}},
                 {10, "3", NULL, "1 4 2", {3, 1, 4, 2}},
                 {10, "0", "2", "4 6", {4, 6}},
                 {100, "50", NULL, "0", {50, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t found[12] = {0};
        must(cut(cases[i].classes, "", cases[i].first, cases[i].parts, cases[i].increment));
        for (size_t k = 0; k < cases[i].classes; k++) {
            assert_true(k == 0 || task_of[k] == task_of[k - 1] || task_of[k] == task_of[k - 1] + 1);
            found[task_of[k]]++;
        }
        assert_memory_equal(found, cases[i].sizes, sizeof found);
    }
}

TEST(what_is_no_order)
{
    static const struct {
        size_t classes;
        const char *order, *first, *parts, *increment, *words[4];
    } cases[] = {
        {4, "0 1 2", "0", "2", "0", {"toy has 4 classes", "names 3"}},
        {4, "0 1 2 2", "0", "2", "0", {"from 0 to 3 once", "\"2\" as number 4"}},
        {4, "0 1 2 4", "0", "2", "0", {"\"4\" as number 4"}},
        {4, "0 1 2 -1", "0", "2", "0", {"\"-1\""}},
        {4, "0 1 2 cat", "0", "2", "0", {"\"cat\""}},
        {4, "", "0", "5", "0", {"4 classes", "5 tasks"}},
        {4, "", "1", "4", "0", {"first task of 1", "4 tasks"}},
        {4, "numpy-", "0", "2", "0", {"expected numpy-SEED"}},
        {4, "numpy-4294967296", "0", "2", "0", {"found numpy-4294967296"}},
        {4, "", "4", "1", "0", {"first task of 4"}},
        {10, "", "0", "3", "3", {"toy has 10 classes", "of 3 classes are 4", "is 3"}},
        {10, "", "4", "2", "2", {"first task of 4", "of 2 classes are 3"}},
        {10, "", "0", "4", "10", {"of 10 classes are 1"}},
        {10, "", "0", NULL, "4,5", {"0 (data.first) 10 are left", "4, 5 sum to 9"}},
        {10, "", "1", NULL, "4,6", {"9 are left", "sum to 10"}},
        {10, "", "0", "3", "4,6", {"of 4, 6 classes are 2", "is 3"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refusal(cut(cases[i].classes, cases[i].order, cases[i].first, cases[i].parts, cases[i].increment),
                      ERROR_ARGUMENT, cases[i].words);
}

#define CUT "data.order=third", "tasks.third.classes=6", "data.split_by=order"

/* Shots are drawn in each task, which still knows how many images there were; or a number for each: all of the first. */
RUN_TEST(few_images_of_each_task, NULL)
{
    static const struct {
        const char *word;
        size_t images[3];
    } cases[] = {{"data.shots=2", {4, 4, 4}}, {"data.task_shots=0,1,2", {12, 2, 4}}};
    for (size_t i = 0; i < 2; i++) {
        small_run_reopen(run, 1, WORDS(CUT, "data.parts=3", cases[i].word));
        assert_string_equal(run->experiment->model.settings.setting, "few_shot");
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(dataset_size(run->experiment->data.tasks[k].dataset, SPLIT_TRAIN), cases[i].images[k]);
            assert_int_equal(run->experiment->data.tasks[k].all_images, 2 * 6);
        }
    }
}

/* A row has the tasks so far; Avg and Last are over images, so that the first task, of half the classes, counts double. */
RUN_TEST(accuracies_are_over_all_classes_seen, CUT, "data.class_order=5 0 3 4 1 2", "data.first=4", "data.parts=2",
         "training.epochs=1", "training.iterations=1000", "training.reference_iterations=yes",
         "evaluation.label_space=seen", "run.log_every=1", "adapter.routers=one", "selector.kind=none",
         "adapter.freeze_top_k=0", NULL)
{
    static const char *const answers[][2] = {
        {"SELECT group_concat(after_task || ':' || task, ' ') FROM (SELECT * FROM evaluations ORDER BY 3, 2)",
         "-1:0 -1:1 -1:2 0:0 1:0 1:1 2:0 2:1 2:2"},
        {"SELECT group_concat(name, ' ') FROM (SELECT task_classes.name FROM task_classes ORDER BY task, class)",
         "white red yellow black green blue"},
        {"SELECT group_concat(name || ' ' || training_images, ', ') FROM tasks", "third-1 24, third-2 6, third-3 6"},
        {"SELECT group_concat(images, ' ') FROM (SELECT images FROM evaluations WHERE after_task = 2)", "12 3 3"},
        {"WITH rows AS (SELECT after_task, 100.0 * sum(correct) / sum(images) AS accuracy FROM evaluations "
         "GROUP BY after_task) "
         "SELECT iif(abs(metrics.average - (SELECT avg(accuracy) FROM rows WHERE after_task >= 0)) < 1e-9 "
         "AND abs(metrics.last - (SELECT accuracy FROM rows WHERE after_task = 2)) < 1e-9 "
         "AND abs(metrics.zero_shot - (SELECT accuracy FROM rows WHERE after_task = -1)) < 1e-9 "
         "AND transfer IS NULL, 'so', average || ' ' || last) FROM metrics",
         "so"},
        {"SELECT setting || ' ' || selector || ' ' || selection FROM runs", "class_incremental none none"},
        {"SELECT count(*) FROM router_choices", "0"},
        /* 4 classes of 6 images and 1 of 6 in batches of 8: an epoch and one iteration more */
        {"SELECT group_concat(last, ' ') FROM (SELECT max(iteration) AS last FROM steps GROUP BY task)", "4 2 2"},
        {"SELECT group_concat(length(labels) || ' ') FROM test_labels", "24 ,6 ,6 "}}; /* two bytes each */
    must(whole_run(run, "a.db", NULL));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        expect_text(run, "a.db", answers[i][0], answers[i][1]);
    assert_int_equal(whole_run_faults(run, "a.db", whole_run_cells), 0);
}
