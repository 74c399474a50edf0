/* Class orders: the built-in ones, how they cut a dataset, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "harness/run/settings_internal.h"
#include "harness/scenario/class_order.h"
#include "harness/scenario/label_split.h"
#include "tests/harness/small_run.h"

enum { MOST = 200 };

static struct options *keys(const char *order, const char *first, const char *parts)
{
    const struct option *table;
    struct options *options;
    must(settings_split_keys("order", &table, &error));
    must(options_create(&options, table, &error));
    must(options_set(options, "class_order", order, "test", &error));
    must(options_set(options, "first", first, "test", &error));
    must(options_set(options, "parts", parts, "test", &error));
    return options;
}

static void expect_built_in(const json_t *orders, const char *name)
{
    const json_t *expected = json_object_get(orders, name);
    size_t classes = json_array_size(expected);
    uint32_t order[MOST], task_of[MOST];
    struct options *options = keys(settings_data_shorthand("class_order", name), "0", "10");
    assert_in_range(classes, 100, MOST);
    must(class_order_cut(options, name, classes, order, task_of, &error));
    for (size_t i = 0; i < classes; i++) {
        assert_int_equal(order[i], json_integer_value(json_array_get(expected, i)));
        assert_int_equal(task_of[order[i]], i / (classes / 10));
    }
    options_destroy(options);
}

static void built_in_orders(void **state)
{
    (void)state;
    json_error_t reason;
    json_t *orders = json_load_file(FIXTURES "/cil/class_orders.json", 0, &reason);
    assert_non_null(orders);
    expect_built_in(orders, "cifar100");
    expect_built_in(orders, "tinyimagenet");
    assert_null(class_order_numbers("imagenet"));
    json_decref(orders);
}

static void a_first_task_of_its_own_size(void **state)
{
    (void)state;
    uint32_t order[8], task_of[8];
    static const uint32_t expected[8] = {2, 0, 1, 0, 2, 1, 1, 2}; /* 3 1; then 2 5 6, 0 4 7 */
    struct options *options = keys("3 1 2 5 6 0 4 7", "2", "2");
    must(class_order_cut(options, "toy", 8, order, task_of, &error));
    assert_memory_equal(task_of, expected, sizeof expected);
    options_destroy(options);
}

static void refuse(const char *order, const char *first, const char *parts, const char *const *words)
{
    uint32_t found[4], task_of[4];
    struct options *options = keys(order, first, parts);
    assert_int_equal(class_order_cut(options, "toy", 4, found, task_of, &error), ERROR_ARGUMENT);
    error_tells(words);
    options_destroy(options);
}

static void what_is_no_order(void **state)
{
    (void)state;
    refuse("0 1 2", "0", "2", (const char *const[]){"toy has 4 classes", "names 3", NULL});
    refuse("0 1 2 2", "0", "2", (const char *const[]){"from 0 to 3 once", "\"2\" as number 4", NULL});
    refuse("0 1 2 4", "0", "2", (const char *const[]){"\"4\" as number 4", NULL});
    refuse("0 1 2 -1", "0", "2", (const char *const[]){"\"-1\"", NULL});
    refuse("0 1 2 cat", "0", "2", (const char *const[]){"\"cat\"", NULL});
    refuse("", "0", "3", (const char *const[]){"4 classes", "3 tasks of equal size", NULL});
    refuse("", "1", "2", (const char *const[]){"first task of 1", "2 tasks of equal size", NULL});
    refuse("", "4", "1", (const char *const[]){"first task of 4", NULL});
}

/* Tasks have the classes in the order that was asked for, with the images of those classes. */
static void tasks_follow_the_order(void **state)
{
    (void)state;
    static const size_t expected[3][3] = {{5, 0}, {3, 4}, {1, 2}};
    struct small_run run;
    small_run_open(&run, 1,
                   (const char *const[]){"data.order=third", "tasks.third.classes=6", "data.split_by=order",
                                         "data.class_order=5 0 3 4 1 2", "data.first=2", "data.parts=2",
                                         "training.epochs=2", "training.iterations=1000",
                                         "training.reference_iterations=yes", NULL});
    const struct data *data = &run.experiment->data;
    assert_int_equal(data->task_count, 3);
    assert_string_equal(data->tasks[2].settings.name, "third-3");
    for (size_t k = 0; k < 3; k++) {
        const struct dataset *part = data->tasks[k].dataset;
        assert_int_equal(dataset_classes(part), 2);
        assert_int_equal(dataset_size(part, SPLIT_TRAIN), 2 * 6);
        for (size_t c = 0; c < 2; c++)
            assert_string_equal(dataset_class_name(part, c), dataset_class_name(data->whole.dataset, expected[k][c]));
        /* 12 images in batches of 8, twice, and one iteration more */
        assert_int_equal(data->tasks[k].settings.iterations, 2 * 2 + 1);
        assert_int_equal(data->tasks[k].settings.schedule_end, 2 * 2);
    }
    small_run_close(&run);
}

/* Shots are drawn in each task, which still knows how many images there were. */
static void few_images_of_each_task(void **state)
{
    (void)state;
    struct small_run run;
    small_run_open(&run, 1,
                   (const char *const[]){"data.order=third", "tasks.third.classes=6", "data.split_by=order",
                                         "data.parts=3", "data.shots=2", NULL});
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(dataset_size(run.experiment->data.tasks[k].dataset, SPLIT_TRAIN), 2 * 2);
        assert_int_equal(run.experiment->data.tasks[k].all_images, 2 * 6);
    }
    small_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_orders),         cmocka_unit_test(a_first_task_of_its_own_size),
        cmocka_unit_test(what_is_no_order),        cmocka_unit_test(tasks_follow_the_order),
        cmocka_unit_test(few_images_of_each_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
