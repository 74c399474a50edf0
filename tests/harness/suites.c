#include "tests/harness/suites.h"

#include <stdio.h>
#include <string.h>

#include "harness/heads/head.h"
#include "harness/selectors/selectors.h"
#include "harness/train/method.h"

struct settings s;
struct error error;

static struct suite *kept[8];
static size_t reads;

/* The place of the next suite, which is empty. */
static struct suite **next_place(void)
{
    struct suite **next = &kept[reads++ % (sizeof kept / sizeof *kept)];
    suite_destroy(*next);
    *next = NULL;
    return next;
}

int forget_suites(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        next_place();
    return 0;
}

status suites_try(struct suite **suite, const char *yaml, const char *const *overrides)
{
    size_t count = 0;
    while (overrides[count] != NULL)
        count++;
    *suite = NULL;
    TRY(suite_parse(suite, yaml, strlen(yaml), "test.yaml", settings_sections, overrides, count, &error));
    return settings_read(&s, *suite, &error);
}

struct suite *suites_read(const char *yaml, const char *const *overrides)
{
    struct suite **suite = next_place();
    if (suites_try(suite, yaml, overrides) != OK)
        fail_msg("%s+ %s: %s", yaml, overrides[0] != NULL ? overrides[0] : "", error.message);
    return *suite;
}

struct suite *suites_load(const char *name, const char *override)
{
    struct suite **suite = next_place();
    if (suite_load(suite, name, settings_sections, &override, override != NULL, &error) != OK ||
        settings_read(&s, *suite, &error) != OK)
        fail_msg("%s, %s: %s", name, override != NULL ? override : "", error.message);
    return *suite;
}

const char *value_of(const struct suite *suite, const char *key)
{
    char section[32], entry[64];
    const char *end = strchr(key, '.'), *name = strrchr(key, '.') + 1;
    snprintf(section, sizeof section, "%.*s", (int)(end - key), key);
    if (name == end + 1)
        return options_as_text(suite_options(suite, section), name);
    snprintf(entry, sizeof entry, "%.*s", (int)(name - end - 2), end + 1);
    return options_as_text(suite_entry(suite, section, entry), name);
}

/* A setting that follows from several keys. */
static const char *derived(const char *name)
{
    static char tasks[16], routers[16], threshold[16];
    const char *const values[][2] = {{"order", s.order},
                                     {"setting", s.setting},
                                     {"task_count", tasks},
                                     {"routers", routers},
                                     {"method", s.method->name},
                                     {"head", s.head->name},
                                     {"policy", s.merge.policy->name},
                                     {"selector", settings_select(&s) ? s.selector.kind->name : "none"},
                                     {"threshold", threshold},
                                     {"alexnet", s.selector.alexnet != NULL ? s.selector.alexnet : "none"}};
    snprintf(tasks, sizeof tasks, "%zu", s.task_count);
    snprintf(routers, sizeof routers, "%zu", s.adapter.tasks);
    snprintf(threshold, sizeof threshold, "%g", s.selector.threshold);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(name, values[i][0]) == 0)
            return values[i][1];
    fail_msg("no setting is called %s", name);
    return NULL;
}

void expect_values(const struct suite *suite, const char *expected)
{
    char copy[1024], *rest = copy;
    assert_in_range(snprintf(copy, sizeof copy, "%s", expected), 1, sizeof copy - 1);
    for (char *key; (key = strsep(&rest, ";")) != NULL;) {
        key += strspn(key, " ");
        char *value = strchr(key, '=');
        assert_non_null(value);
        *value++ = 0;
        const char *found = strchr(key, '.') != NULL ? value_of(suite, key) : derived(key);
        if (strcmp(found, value) != 0)
            fail_msg("%s: expected \"%s\", found \"%s\", of %s: %s", key, value, found, suite_name(suite), expected);
    }
}

void expect_reread(const struct suite *suite)
{
    const struct suite *again = must_read(suite_text(suite), NULL);
    assert_string_equal(suite_text(again), suite_text(suite));
    assert_string_equal(suite_settings_hash(again), suite_settings_hash(suite));
}
