/* Text: a growing buffer, numbers that parse completely or not at all, and "did you mean".
 *
 *     struct text text = {0};
 *     text_add(&text, "task %zu of %zu", k, count);
 *     text_free(&text);
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The whole string must be the number; false otherwise. */
bool parse_integer(const char *string, int64_t *value);
bool parse_real(const char *string, double *value);  /* finite */
bool parse_boolean(const char *string, bool *value); /* true|false|yes|no|on|off */

/* Edit distance (insertions, deletions, substitutions, swapped neighbours), ignoring case. */
size_t edit_distance(const char *a, const char *b);

/* Whether the list, "code|batch", has the word. */
bool text_has_word(const char *list, const char *word);

/* The candidate nearest to word; NULL if none is close enough. */
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

/* Fails with ERROR_ARGUMENT: «where: unknown policy "most_usd" (did you mean "most_used"?); expected one of: none,
 * most_used». kind is the kind of names: "policy", "key". */
status error_unknown_word(struct error *error, const char *where, const char *kind, const char *word,
                          const char *const *names, size_t count);

/* The same with another hint than the nearest name; near NULL: none. */
status error_unknown_word_near(struct error *error, const char *where, const char *kind, const char *word,
                               const char *near, const char *const *names, size_t count);
