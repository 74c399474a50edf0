/* The fonts in an SVG, read back: a test fails where a word has a character without a glyph.
 *
 *     struct svg_fonts fonts;
 *     svg_fonts_read(&fonts, svg);               // sound XML
 *     svg_fonts_check(&fonts);
 *     svg_fonts_free(&fonts);
 */
#ifndef MTIL_TESTS_RESULTS_REPORT_SVG_FONTS_H
#define MTIL_TESTS_RESULTS_REPORT_SVG_FONTS_H

#include "tests/results/check.h"

#include <hb.h>
#include <stdbool.h>

enum svg_face { SVG_PLAIN, SVG_TITLE, SVG_FACES };

struct svg_fonts {
    hb_set_t *drawn[SVG_FACES];    /* characters of the words */
    hb_set_t *embedded[SVG_FACES]; /* those that a font of the file has a glyph for */
    size_t words, fonts;
    enum svg_face face;
};

void svg_fonts_read(struct svg_fonts *fonts, const char *svg);

/* Every character that is drawn is embedded, where the machine has a font with it, and no other is. */
void svg_fonts_check(const struct svg_fonts *fonts);
void svg_fonts_free(struct svg_fonts *fonts);

/* The font of the first rule that begins there. The caller destroys. */
hb_face_t *svg_fonts_face(const char *rule);

#endif
