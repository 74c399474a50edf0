#include "harness/methods/methods.h"

#include <string.h>

#include "core/text.h"

#define ENTRY(name) &method_##name,
static const struct method *const methods[] = {METHODS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(method, struct method, methods, "suite", "method")

/* Sections that belong to the methods that name them. */
static bool is_optional(const char *section)
{
    for (size_t i = 0; method_at(i) != NULL; i++)
        for (size_t k = 0; k < METHOD_SECTIONS && methods[i]->sections[k] != NULL; k++)
            if (strcmp(methods[i]->sections[k], section) == 0)
                return true;
    return false;
}

bool method_uses(const struct method *method, const struct options *options, const char *section)
{
    if (strcmp(section, "training") == 0)
        return method_groups(method, options) != GROUPS_NONE;
    if (strcmp(section, "adapter") == 0)
        return (method_groups(method, options) & GROUP_ADAPTERS) != 0;
    if (strcmp(section, "delta") == 0)
        return (method_groups(method, options) & GROUP_DELTAS) != 0;
    if ((strcmp(section, "merge") == 0 || strcmp(section, "combine") == 0) &&
        (method_groups(method, options) & GROUP_ADAPTERS) == 0)
        return false;
    for (size_t k = 0; k < METHOD_SECTIONS && method->sections[k] != NULL; k++)
        if (strcmp(method->sections[k], section) == 0)
            return true;
    return !is_optional(section);
}
