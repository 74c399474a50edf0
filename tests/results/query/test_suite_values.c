/* A suite's text taken apart into keys and values. */
#include "tests/results/check.h"

#include <stdio.h>

#include "core/text.h"
#include "results/query/suite_values.h"

static const char text[] = "model:\n  weights: mini\n"
                           "data:\n  order: [mnist, \"a b\", dtd]\n"
                           "merge:\n  policy: most_used\n  every: 20\n"
                           "tasks:\n  mnist: {learning_rate: 1e-4}\n";

static void expect(const struct suite_values *values, const char *key, const char *expected)
{
    const char *found = suite_values_find(values, key);
    assert_non_null(found);
    assert_string_equal(found, expected);
}

static void keys_are_paths(void **state)
{
    (void)state;
    struct suite_values values;
    assert_ok(suite_values_read(&values, text, &error));
    assert_int_equal(values.count, 5);
    expect(&values, "model.weights", "mini");
    expect(&values, "data.order", "[mnist, a b, dtd]");
    expect(&values, "merge.every", "20");
    expect(&values, "tasks.mnist.learning_rate", "1e-4");
    assert_null(suite_values_find(&values, "merge"));
    assert_null(suite_values_find(&values, "merge.moments"));
    suite_values_free(&values);
    assert_null(suite_values_find(&values, "merge.every"));
}

static void an_empty_text_has_no_values(void **state)
{
    (void)state;
    struct suite_values values;
    assert_ok(suite_values_read(&values, "", &error));
    assert_int_equal(values.count, 0);
    suite_values_free(&values);
    assert_ok(suite_values_read(&values, "suite: \"\"\n", &error));
    expect(&values, "suite", "");
    suite_values_free(&values);
}

static void add_difference(void *context, const char *key, const char *a, const char *b)
{
    text_add(context, "%s: %s, %s\n", key, a != NULL ? a : "none", b != NULL ? b : "none");
}

static void differences_come_in_order(void **state)
{
    (void)state;
    struct suite_values a, b;
    struct text differences = {0};
    assert_ok(suite_values_read(&a, text, &error));
    assert_ok(suite_values_read(&b,
                                "merge: {every: 50, policy: most_used, moments: keep}\nmodel: {weights: mini}\n"
                                "data:\n  order:\n    - mnist\n    - a b\n    - dtd\n",
                                &error));
    suite_values_compare(&a, &b, add_difference, &differences);
    assert_string_equal(differences.data, "merge.every: 20, 50\n"
                                          "merge.moments: none, keep\n"
                                          "tasks.mnist.learning_rate: 1e-4, none\n");
    text_free(&differences);
    suite_values_compare(&a, &a, add_difference, &differences);
    assert_null(differences.data);
    suite_values_free(&a);
    suite_values_free(&b);
}

static void what_is_no_suite_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"[1, 2]",         "just words",      "a: [[1]]",  "a: [1, {b: 2}]", "a: {b: 1",
                                        "a: &x 1\nb: *x", "? [a, b]\n: 1\n", "a: \"open", "\xff\xfe\xfd"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct suite_values values;
        assert_fails(suite_values_read(&values, wrong[i], &error), ERROR_FORMAT, "suite text, line ");
        suite_values_free(&values);
    }
    struct suite_values values;
    struct text deep = {0};
    for (int i = 0; i < 40; i++)
        text_add(&deep, "{a: ");
    assert_fails(suite_values_read(&values, deep.data, &error), ERROR_FORMAT, "too many levels");
    suite_values_free(&values);
    text_free(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_paths),
        cmocka_unit_test(an_empty_text_has_no_values),
        cmocka_unit_test(differences_come_in_order),
        cmocka_unit_test(what_is_no_suite_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
