/* Text: a growing buffer, untrusted characters, numbers that parse completely or not at all, "did you mean", and lookups by
 * name.
 *
 *     struct text text = {0};
 *     text_add(&text, "task %zu of %zu", k, count);
 *     text_add_visible(&text, path);              // "a\x1b[2Jb": shown, not obeyed
 *     text_free(&text);
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/status.h"

struct text {
    char *data; /* NUL-terminated once something was added, else NULL */
    size_t size, capacity;
};

void text_add(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_add_list(struct text *text, const char *format, va_list arguments);
void text_add_real(struct text *text, double value); /* the shortest digits that read back as the same number */
void text_add_bytes(struct text *text, const char *bytes, size_t size);
/* "42 s", "3 min 05 s", "2 h 10 min": precise enough for a waiting user. */
void text_add_duration(struct text *text, double seconds);
void text_clear(struct text *text); /* keeps the allocation */
void text_free(struct text *text);

/* --- Untrusted text: control characters, marks that change the writing direction, invalid UTF-8, byte order marks --- */

/* Appends string with control characters (also U+0080 to U+009F) as \n, \t, \r, \x1b; line separators, direction marks,
 * U+FFFE and U+FFFF as \u202e; invalid bytes as \xff. What is left may stand in XML. */
void text_add_visible(struct text *text, const char *string);

/* Whether text_add_visible would change nothing. */
bool text_is_visible(const char *string);

/* The first byte that is not UTF-8; NULL: there is none. */
const char *text_find_invalid(const char *string);

/* Appends a word as a shell reads it: plain where it can be, else in quotes. */
void text_add_word(struct text *text, const char *word);

/* Appends string with, for each character or word of the list {"<", "&lt;", "&", "&amp;", NULL}, what follows it there. */
void text_add_replaced(struct text *text, const char *string, const char *const *list);

/* Skips a leading UTF-8 byte order mark. */
void text_skip_mark(const char **text, size_t *size);

/* --- Numbers and words --- */

/* The whole string must be the number; false otherwise. */
bool parse_integer(const char *string, int64_t *value);
bool parse_real(const char *string, double *value);  /* decimal, finite, and 0 only where it says 0, not for 1e-400 */
bool parse_boolean(const char *string, bool *value); /* true|false|yes|no|on|off */

/* Edit distance (insertions, deletions, substitutions, swapped neighbours), ignoring case. */
size_t edit_distance(const char *a, const char *b);

/* Whether the list, "code|batch", has the word; its position there. */
bool text_has_word(const char *list, const char *word);
bool text_find_word(const char *list, const char *word, size_t *position);

bool text_ends_with(const char *string, const char *ending);

/* The candidate nearest to word; NULL if none is close enough. */
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

/* Fails with ERROR_ARGUMENT: «where: unknown policy "most_usd" (did you mean "most_used"?); expected one of: none,
 * most_used». kind is the kind of names: "policy", "key". */
status error_unknown_word(struct error *error, const char *where, const char *kind, const char *word,
                          const char *const *names, size_t count);

/* Hints at `near` in place of the nearest name; NULL: no hint. */
status error_unknown_word_near(struct error *error, const char *where, const char *kind, const char *word,
                               const char *near, const char *const *names, size_t count);

/* Lookups in a constant table of entries, by number and by name, the same for every registry.
 *
 *     #define ENTRY(name) &method_##name,
 *     static const struct method *const methods[] = {METHODS(ENTRY)};
 *     #undef ENTRY
 *     REGISTRY_LOOKUPS(method, struct method, methods, "suite", "method")
 *
 * defines method_at(index), which is NULL past the last entry, and method_find(&found, name, error), which fails with
 * ERROR_ARGUMENT and the nearest name for an unknown one. Entries have a member `name`; the last two arguments are `where`
 * and `kind` of error_unknown_word. REGISTRY_AT and REGISTRY_FIND define one of the two. */
/* clang-format off */
#define REGISTRY_AT(stem, type, entries)                                                                               \
    const type *stem##_at(size_t index)                                                                                \
    {                                                                                                                  \
        return index < sizeof(entries) / sizeof *(entries) ? (entries)[index] : NULL;                                  \
    }

#define REGISTRY_LOOKUPS(stem, type, entries, where, kind)                                                             \
    REGISTRY_AT(stem, type, entries)                                                                                   \
    REGISTRY_FIND(stem, type, entries, where, kind)

#define REGISTRY_FIND(stem, type, entries, where, kind)                                                                \
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
