/* How a text is cleaned before it is split into tokens.
 *
 *     struct text clean = {0};
 *     TRY(tokenizer_clean(&clean, "  A “caf&eacute;”\n", error));        // a "café"
 *     text_free(&clean);
 *
 * 1. ftfy's fix_text, line by line until nothing changes, without its mojibake repairs: unescape_html (in lines up to the
 *    first with a "<"), fix_c1_controls, fix_latin_ligatures, fix_character_width, uncurl_quotes, remove_terminal_escapes,
 *    remove_control_chars, normalize (NFC). fix_line_breaks and fix_surrogates would not change the result.
 *    Not done: encode, decode, transcode, decode_inconsistent_utf8, restore_byte_a0, replace_lossy_sequences.
 * 2. HTML character references twice. 3. White space (Unicode White_Space) to single spaces, none at the ends.
 * 4. Lower case with Unicode's full rules (İ → i̇, Σ → ς at a word's end).
 */
#pragma once

#include "core/status.h"
#include "core/text.h"

enum { TOKENIZER_TEXT_LIMIT = 1 << 16 }; /* bytes of a text; bounds the time that hostile input can take */

/* Fills clean, which the caller frees, with the clean form of text. Text that is too long or not UTF-8 is an error. */
status tokenizer_clean(struct text *clean, const char *text, struct error *error);
