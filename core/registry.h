/* Lookups in a constant table of entries, by number and by name, the same for every registry.
 *
 *     #define ENTRY(name) &method_##name,
 *     static const struct method *const methods[] = {METHODS(ENTRY)};
 *     #undef ENTRY
 *     REGISTRY_LOOKUPS(method, struct method, methods, "suite", "method")
 *
 * defines method_at(index), which is NULL past the last entry, and method_find(&found, name, error), which fails with
 * ERROR_ARGUMENT and the nearest name for an unknown one. Entries have a member `name`; the last two arguments are `where`
 * and `kind` of error_unknown_word.
 */
#pragma once

#include <string.h>

#include "core/text.h"

/* clang-format off */
#define REGISTRY_AT(stem, type, entries)                                                                               \
    const type *stem##_at(size_t index)                                                                                \
    {                                                                                                                  \
        return index < sizeof(entries) / sizeof *(entries) ? (entries)[index] : NULL;                                  \
    }

#define REGISTRY_LOOKUPS(stem, type, entries, where, kind)                                                             \
    REGISTRY_AT(stem, type, entries)                                                                                   \
    status stem##_find(const type **found, const char *name, struct error *error)                                      \
    {                                                                                                                  \
        const char *names[sizeof(entries) / sizeof *(entries)];                                                        \
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {                                                    \
            names[i] = (entries)[i]->name;                                                                             \
            if (strcmp(names[i], name) == 0) {                                                                         \
                *found = (entries)[i];                                                                                 \
                return OK;                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        return error_unknown_word(error, where, kind, name, names, sizeof names / sizeof *names);                      \
    }
/* clang-format on */
