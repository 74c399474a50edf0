#include "tests/results/report/svg_fonts.h"

#include <fontconfig/fontconfig.h>
#include <glib.h>
#include <stdio.h>

#define RULE "@font-face {"
#define SOURCE "data:font/sfnt;base64,"

static void begin(GMarkupParseContext *context, const char *element, const char **names, const char **values,
                  void *closure, GError **problem)
{
    (void)context, (void)problem;
    struct svg_fonts *fonts = closure;
    if (strcmp(element, "text") != 0)
        return;
    fonts->words++;
    fonts->face = SVG_PLAIN;
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], "class") == 0 && strcmp(values[i], "pt") == 0)
            fonts->face = SVG_TITLE;
}

static void take(GMarkupParseContext *context, const char *string, size_t size, void *closure, GError **problem)
{
    (void)problem;
    struct svg_fonts *fonts = closure;
    if (strcmp(g_markup_parse_context_get_element(context), "text") == 0)
        for (const char *at = string; at < string + size; at = g_utf8_next_char(at))
            hb_set_add(fonts->drawn[fonts->face], g_utf8_get_char(at));
}

hb_face_t *svg_fonts_face(const char *rule)
{
    const char *begin = strstr(rule, SOURCE);
    assert_non_null(begin);
    begin += strlen(SOURCE);
    char *encoded = g_strndup(begin, strcspn(begin, ")"));
    size_t size;
    unsigned char *data = g_base64_decode(encoded, &size);
    g_free(encoded);
    assert_true(size > 100 && (memcmp(data, "\0\1\0\0", 4) == 0 || memcmp(data, "OTTO", 4) == 0));
    hb_blob_t *blob = hb_blob_create((char *)data, (unsigned)size, HB_MEMORY_MODE_READONLY, data, g_free);
    hb_face_t *face = hb_face_create(blob, 0);
    hb_blob_destroy(blob);
    return face;
}

/* The weight by which a reader chooses among a family's is the font's own. A glyph is drawn, or moves what follows. */
static void add_characters(hb_set_t *characters, const char *rule)
{
    hb_face_t *face = svg_fonts_face(rule);
    hb_font_t *font = hb_font_create(face);
    hb_set_t *named = hb_set_create();
    int weight = 0;
    assert_int_equal(sscanf(strstr(rule, "font-weight: "), "font-weight: %d;", &weight), 1);
    assert_int_equal(weight, (int)hb_style_get_value(font, HB_STYLE_TAG_WEIGHT));
    hb_face_collect_unicodes(face, named);
    for (hb_codepoint_t c = HB_SET_VALUE_INVALID, glyph; hb_set_next(named, &c);) {
        hb_glyph_extents_t extents = {0};
        if (hb_font_get_nominal_glyph(font, c, &glyph) && hb_font_get_glyph_extents(font, glyph, &extents) &&
            (extents.width != 0 || hb_font_get_glyph_h_advance(font, glyph) != 0))
            hb_set_add(characters, c);
    }
    hb_set_destroy(named);
    hb_font_destroy(font);
    hb_face_destroy(face);
}

/* Rules of fonts come before the one that names them. */
static void read_rules(struct svg_fonts *fonts, const char *svg)
{
    static const char *const uses[SVG_FACES] = {"\n.panels text { font-family: ", "\n.panels text.pt { font-family: "};
    const char *at = svg;
    for (enum svg_face face = 0; face < SVG_FACES; face++) {
        const char *use = strstr(at, uses[face]);
        while (use != NULL && (at = strstr(at, RULE)) != NULL && at < use) {
            add_characters(fonts->embedded[face], at);
            fonts->fonts++;
            at++;
        }
        at = use != NULL ? use : svg;
    }
}

void svg_fonts_read(struct svg_fonts *fonts, const char *svg)
{
    static const GMarkupParser parser = {.start_element = begin, .text = take};
    *fonts = (struct svg_fonts){.words = 0};
    for (enum svg_face face = 0; face < SVG_FACES; face++) {
        fonts->drawn[face] = hb_set_create();
        fonts->embedded[face] = hb_set_create();
    }
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, (GMarkupParseFlags)0, fonts, NULL);
    assert_true(g_markup_parse_context_parse(context, svg, -1, NULL));
    assert_true(g_markup_parse_context_end_parse(context, NULL));
    g_markup_parse_context_free(context);
    read_rules(fonts, svg);
}

static bool machine_has(hb_codepoint_t character)
{
    const FcFontSet *known = FcConfigGetFonts(NULL, FcSetSystem);
    FcCharSet *has;
    for (int i = 0; known != NULL && i < known->nfont; i++)
        if (FcPatternGetCharSet(known->fonts[i], FC_CHARSET, 0, &has) == FcResultMatch &&
            FcCharSetHasChar(has, character))
            return true;
    return false;
}

void svg_fonts_check(const struct svg_fonts *fonts)
{
    for (enum svg_face face = 0; face < SVG_FACES; face++) {
        for (hb_codepoint_t c = HB_SET_VALUE_INVALID; hb_set_next(fonts->drawn[face], &c);)
            if (!hb_set_has(fonts->embedded[face], c) && machine_has(c))
                fail_msg("U+%04X is drawn, and no embedded font has it", c);
        for (hb_codepoint_t c = HB_SET_VALUE_INVALID; hb_set_next(fonts->embedded[face], &c);)
            if (!hb_set_has(fonts->drawn[face], c))
                fail_msg("U+%04X is embedded and not drawn", c);
    }
}

void svg_fonts_free(struct svg_fonts *fonts)
{
    for (enum svg_face face = 0; face < SVG_FACES; face++) {
        hb_set_destroy(fonts->drawn[face]);
        hb_set_destroy(fonts->embedded[face]);
    }
}
