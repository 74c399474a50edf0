/* A run's settings as keys and values. */
#include "tests/results/check.h"

#include "core/text.h"
#include "results/store/setting_values.h"
#include "tests/results/sample.h"

static int64_t start(struct store *store, int64_t seed, const struct setting_row *settings, size_t count)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    description.settings = settings;
    description.setting_count = count;
    assert_ok(store_run_start(store, &description, &start, &error));
    return start.run;
}

static void add_difference(void *context, const char *key, const char *a, const char *b)
{
    text_add(context, "%s: %s, %s\n", key, a != NULL ? a : "none", b != NULL ? b : "none");
}

static void settings_are_read_and_compared(void **state)
{
    (void)state;
    static const struct setting_row one[] = {{"tasks.mnist.learning_rate", "1e-4", "real"},
                                             {"merge.every", "20", "integer"},
                                             {"model.note", "", "text"}},
                                    two[] = {{"model.note", "", "text"},
                                             {"merge.moments", "keep", "text"},
                                             {"merge.every", "50", "integer"}};
    struct store *store;
    struct setting_values a, b;
    struct text differences = {0};
    char *path = sample_path("settings.sqlite");
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_ok(setting_values_read(&a, store, start(store, 1, one, 3), &error));
    assert_ok(setting_values_read(&b, store, start(store, 2, two, 3), &error));
    assert_int_equal(a.count, 3);
    assert_string_equal(setting_values_find(&a, "tasks.mnist.learning_rate"), "0.0001");
    assert_string_equal(setting_values_find(&a, "model.note"), "");
    assert_null(setting_values_find(&a, "merge"));
    setting_values_compare(&a, &b, add_difference, &differences);
    assert_string_equal(differences.data, "merge.every: 20, 50\n"
                                          "merge.moments: none, keep\n"
                                          "tasks.mnist.learning_rate: 0.0001, none\n");
    text_free(&differences);
    assert_ok(setting_values_set(&a, "merge.every", "50", &error));
    assert_ok(setting_values_set(&a, "merge.moments", "keep", &error));
    assert_ok(setting_values_set(&b, "tasks.mnist.learning_rate", "0.0001", &error));
    setting_values_compare(&a, &b, add_difference, &differences);
    assert_null(differences.data);
    setting_values_free(&a);
    setting_values_free(&b);
    assert_ok(setting_values_read(&a, store, 99, &error));
    assert_int_equal(a.count, 0);
    assert_null(setting_values_find(&a, "merge.every"));
    store_close(store);
    sample_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(settings_are_read_and_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
