#include "tests/harness/suites.h"

#include <stdio.h>
#include <string.h>

#include "harness/model/head.h"
#include "harness/selectors/selector.h"
#include "harness/train/method.h"

struct error error;

static struct settings s; /* of the suite that was read last */

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

/* A setting that follows from several keys, or a number of them. */
static const char *derived(const char *name)
{
    static char number[32];
    const char *const words[][2] = {{"order", s.order},
                                    {"setting", s.setting},
                                    {"method", s.method->name},
                                    {"head", s.head->name},
                                    {"policy", s.merge.policy->name},
                                    {"selector", settings_select(&s) ? s.selector.kind->name : "none"},
                                    {"alexnet", s.selector.alexnet != NULL ? s.selector.alexnet : "none"}};
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"task_count", (double)s.task_count},
                   {"groups", method_groups(s.method, s.method_options)},
                   {"one_moment", s.one_moment},
                   {"width", (double)s.scratch.width},
                   {"heads", (double)s.scratch.heads},
                   {"hidden", (double)s.scratch.hidden},
                   {"experts", (double)s.adapter.experts},
                   {"top_k", (double)s.adapter.top_k},
                   {"bottleneck", (double)s.adapter.bottleneck},
                   {"routers", (double)s.adapter.tasks},
                   {"scale", s.adapter.scale},
                   {"dropout", s.adapter.dropout},
                   {"noise_epsilon", s.adapter.noise_epsilon},
                   {"init_noise", s.adapter.init_noise},
                   {"score_noise", s.adapter.score_noise},
                   {"banks", (double)s.adapter.place.banks},
                   {"decisions", (double)s.adapter.place.decisions},
                   {"freeze_top_k", (double)s.freeze.top_k},
                   {"every", (double)s.merge.every},
                   {"threshold", s.selector.threshold},
                   {"decision_batch", (double)s.selector.decision_batch},
                   {"iterations", (double)s.selector.iterations},
                   {"code", (double)s.selector.code},
                   {"quantile", s.selector.quantile},
                   {"l2", s.selector.l2}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i][0]) == 0)
            return words[i][1];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            snprintf(number, sizeof number, "%g", numbers[i].value);
            return number;
        }
    fail_msg("no setting is called %s", name);
    return NULL;
}

void expect_values(const struct suite *suite, const char *expected)
{
    char copy[1024], *rest = copy;
    assert_between(snprintf(copy, sizeof copy, "%s", expected), 1, sizeof copy - 1);
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
