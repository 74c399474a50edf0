/* HTML character references in text: "caf&eacute; &#8217; &lt" → "café ’ <".
 *
 *     struct text decoded = {0};
 *     entities_decode(&decoded, text, strlen(text), ENTITIES_AS_HTML);
 *
 * As HTML defines them (WHATWG HTML, section 13.2.5.72 ff.) in the reading of Python's html.unescape: the longest name that
 * matches wins, some names need no semicolon, numbers out of range become U+FFFD, some control codes vanish.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

enum entities_rule {
    ENTITIES_AS_HTML,
    ENTITIES_AS_FTFY /* only references that end in a semicolon; names in capitals ("&EACUTE;") count as well */
};

/* Adds text, which is UTF-8, to out with its references decoded once. */
void entities_decode(struct text *out, const char *text, size_t size, enum entities_rule rule);

/* The meaning of a C1 control code (0x80–0x9f) in Windows-1252; the five codes without a meaning stay. */
int32_t entities_windows_1252(int32_t code);

/* Adds the UTF-8 form of a code point. */
void entities_add_point(struct text *text, int32_t point);
