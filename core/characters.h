/* Untrusted text: control characters, marks that change the writing direction, invalid UTF-8, byte order marks.
 *
 *     text_add_visible(&line, path);                  // "a\x1b[2Jb": shown, not obeyed
 *     if (!text_is_visible(name)) ...
 *     text_skip_mark(&bytes, &size);
 */
#pragma once

#include "core/text.h"

/* Appends string with control characters (also U+0080 to U+009F) as \n, \t, \r, \x1b; line separators and direction
 * marks as \u202e; invalid bytes as \xff. */
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
