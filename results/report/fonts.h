/* The fonts of a figure as part of its SVG: rules for its <style> with the glyphs of its words, so that the file looks the
 * same, and stays text, where no such font is installed.
 *
 *     TRY(fonts_embed(&style, "<text class=\"pt\">Accuracy ± 95%</text>", error));
 */
#ifndef MTIL_RESULTS_REPORT_FONTS_H
#define MTIL_RESULTS_REPORT_FONTS_H

#include "core/status.h"
#include "core/text.h"

/* Appends an @font-face for each font that the text of body (well-formed elements) needs, and names these fonts for the
 * text. They are the machine's sans-serif fonts that permit embedding; each character is drawn in the first font that
 * has it. ERROR_IO when there is no font. Characters that no font has are left to the viewer. */
status fonts_embed(struct text *style, const char *body, struct error *error);

#endif
