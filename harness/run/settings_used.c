#include "harness/run/settings_internal.h"

#include <string.h>

#include "adapters/options.h"
#include "harness/methods/methods.h"
#include "harness/scenario/task_settings.h"
#include "harness/selectors/selector.h"
#include "results/store/per_image.h"

/* The head that all runs had before there was a choice is not written down. */
bool settings_uses_head(const struct suite *suite, const char *section, const char *key)
{
    (void)key;
    return strcmp(options_text(suite_options(suite, section), "name"), "text") != 0;
}

static bool method_reads(const struct suite *suite, const char *section)
{
    const struct options *options = suite_options(suite, "method");
    const struct method *method;
    struct error ignored;
    return method_find(&method, options_text(options, "name"), &ignored) != OK || method_uses(method, options, section);
}

/* A key that stands for its absence is not written down. */
bool settings_uses_data(const struct suite *suite, const char *section, const char *key)
{
    const struct options *data = suite_options(suite, section);
    bool list = options_list_size(data, "task_shots") > 0;
    if (strcmp(key, "short_classes") == 0)
        return list || options_integer(data, "shots") > 0;
    if (strcmp(key, "shared_classes") == 0)
        return options_boolean(data, key);
    if (strcmp(key, "increment") == 0)
        return options_integer(data, "increment") > 0;
    return strcmp(key, "task_shots") != 0 || list;
}

bool settings_uses_adapter(const struct suite *suite, const char *section, const char *key)
{
    return method_reads(suite, section) && freeze_reads(suite_options(suite, section), key);
}

/* Which half is trained is for methods without a plan of their own. */
bool settings_uses_delta(const struct suite *suite, const char *section, const char *key)
{
    const struct method *method;
    struct error ignored;
    bool free =
        method_find(&method, options_text(suite_options(suite, "method"), "name"), &ignored) == OK && method->one_delta;
    return method_reads(suite, section) && (free || strcmp(key, "train") != 0);
}

bool settings_uses_merge(const struct suite *suite, const char *section, const char *key)
{
    return method_reads(suite, section) && merge_reads(suite_options(suite, "merge"), section, key);
}

bool settings_uses_training(const struct suite *suite, const char *section, const char *key)
{
    (void)section;
    return options_find(training_options, key) == NULL || method_reads(suite, "training");
}

/* Patches have experts of their own where tokens choose, and are results of single images. */
bool settings_uses_evaluation(const struct suite *suite, const char *section, const char *key)
{
    return strcmp(key, "patch_images") != 0 ||
           (method_reads(suite, "adapter") &&
            options_choice(suite_options(suite, "adapter"), "routing") == ROUTING_PER_TOKEN &&
            options_choice(suite_options(suite, section), "per_image") != PER_IMAGE_NONE);
}

bool settings_uses_selector(const struct suite *suite, const char *section, const char *key)
{
    return method_reads(suite, section) && selector_settings_read(suite_options(suite, section), key);
}
