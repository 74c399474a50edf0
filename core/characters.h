/* Characters that text from outside may hold: control characters, marks that turn the writing direction, bytes that are no
 * UTF-8, a byte order mark.
 *
 *     text_add_visible(&line, path);                  // "a\x1b[2Jb": shown, not obeyed
 *     if (!text_is_visible(name)) ...
 *     text_skip_mark(&bytes, &size);
 */
#ifndef MTIL_CORE_CHARACTERS_H
#define MTIL_CORE_CHARACTERS_H

#include "core/text.h"

/* Appends string for a person or a line-based program: control characters, also those from U+0080 to U+009F, as \n, \t,
 * \r, \x1b; line separators and what turns the writing direction as \u202e; bytes that are no UTF-8 as \xff. */
void text_add_visible(struct text *text, const char *string);

/* Whether text_add_visible would change nothing. */
bool text_is_visible(const char *string);

/* Steps over the byte order mark of UTF-8 where text begins with one. */
void text_skip_mark(const char **text, size_t *size);

#endif
