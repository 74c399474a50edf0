/* The fonts of a figure as part of its SVG: rules for its <style> with the glyphs of its words, so that the file looks the
 * same, and stays text, where no such font is installed.
 *
 *     TRY(fonts_embed(&style, "<text class=\"pt\">Accuracy ± 95%</text>", error));
 */
#ifndef MTIL_RESULTS_REPORT_FONTS_H
#define MTIL_RESULTS_REPORT_FONTS_H

#include "core/status.h"
#include "core/text.h"

/* Appends an @font-face for each font in which words of body, well-formed elements, are drawn, and names these fonts for
 * the text. Those are the machine's for sans-serif, each character in the first that has it, leaving out fonts that forbid
 * being embedded. ERROR_IO when there is none. What no font has is left to whoever shows the file. */
status fonts_embed(struct text *style, const char *body, struct error *error);

#endif
