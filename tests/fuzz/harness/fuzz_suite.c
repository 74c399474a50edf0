/* Suites. What is understood is understood again, and the same, when it is written out. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "harness/run/settings.h"

static int says_the_same_again(const struct suite *suite)
{
    struct suite *again;
    struct error error;
    const char *text = suite_text(suite);
    if (suite_parse(&again, text, strlen(text), "again.yaml", settings_sections, NULL, 0, &error) != OK)
        return 1;
    int failed =
        strcmp(suite_text(again), text) != 0 || strcmp(suite_settings_hash(again), suite_settings_hash(suite)) != 0;
    suite_destroy(again);
    return failed;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct suite *suite;
    struct settings settings;
    struct error error;
    if (suite_parse(&suite, (const char *)data, size, "input.yaml", settings_sections, NULL, 0, &error) != OK)
        return 0;
    int failed = says_the_same_again(suite);
    if (settings_read(&settings, suite, &error) == OK)
        failed |= settings.task_count == 0;
    suite_destroy(suite);
    return failed;
}
