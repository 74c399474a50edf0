#include <string.h>

#include "harness/heads/heads.h"
#include "harness/methods/methods.h"
#include "harness/train/method.h"
#include "tests/test.h"

static struct error error;

TEST(every_method_is_found_by_its_name)
{
    size_t count = 0;
    for (; method_at(count) != NULL; count++) {
        const struct method *method = method_at(count), *found = NULL;
        assert_int_equal(method_find(&found, method->name, &error), OK);
        assert_ptr_equal(found, method); /* so names differ */
        assert_true(method->source != NULL && method->source[0] != 0);
        if (method->formula == NULL || method->formula[0] == 0 || strchr(method->formula, '\n') != NULL)
            fail_msg("%s: expected a formula in one line", method->name);
    }
    assert_true(count >= 4);
    assert_null(method_at(count));
}

/* What trains nothing is never stepped, and learns, if at all, when a task ends; whatever is trained starts a task with a fresh optimizer. */
TEST(hooks_fit_what_is_trained)
{
    for (size_t i = 0; method_at(i) != NULL; i++) {
        const struct method *method = method_at(i);
        struct options *values;
        assert_int_equal(options_create(&values, method->options, &error), OK);
        unsigned groups = method_groups(method, values);
        if (groups == GROUPS_NONE)
            assert_true(method->begin_task == NULL && method->after_step == NULL &&
                        (method->end_task == NULL) == (method->scores == NULL));
        else
            assert_non_null(method->begin_task);
        assert_false(groups & GROUP_ADAPTERS && groups & GROUPS_TOWERS);
        assert_true(method_uses(method, values, "adapter") == ((groups & GROUP_ADAPTERS) != 0));
        if (method_uses(method, values, "selector"))
            assert_true(groups == GROUP_ADAPTERS || groups == GROUP_PREFIXES);
        if (method_uses(method, values, "merge"))
            assert_int_equal(groups, GROUP_ADAPTERS);
        assert_true(method_uses(method, values, "training") == (groups != GROUPS_NONE));
        const struct head *head;
        assert_int_equal(head_find(&head, method->head != NULL ? method->head : "text", &error), OK);
        assert_true((groups & GROUP_HEAD) == 0 || head->parameters != NULL);
        options_destroy(values);
    }
}

TEST(an_unknown_name_gets_the_nearest)
{
    const struct method *found;
    assert_int_equal(method_find(&found, "continual_tf", &error), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "continual_tf"));
    assert_non_null(strstr(error.message, "did you mean \"continual_ft\""));
    assert_non_null(strstr(error.message, "moe_adapters"));
    assert_int_equal(method_find(&found, "", &error), ERROR_ARGUMENT);
}
