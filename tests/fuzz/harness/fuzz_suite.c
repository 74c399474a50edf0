/* Suites. What is understood is understood again, and the same, when it is written out. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "harness/run/settings.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct suite *suite, *again;
    struct settings settings;
    if (suite_parse(&suite, (const char *)data, size, "input.yaml", settings_sections, NULL, 0, &fuzz_error) != OK)
        return 0;
    const char *text = suite_text(suite);
    assert(suite_parse(&again, text, strlen(text), "again.yaml", settings_sections, NULL, 0, &fuzz_error) == OK);
    assert(strcmp(suite_text(again), text) == 0);
    assert(strcmp(suite_settings_hash(again), suite_settings_hash(suite)) == 0);
    if (settings_read(&settings, suite, &fuzz_error) == OK)
        assert(settings.task_count > 0);
    suite_destroy(again);
    suite_destroy(suite);
    return 0;
}
