#include "results/report/fonts.h"

#include <assert.h>
#include <fontconfig/fontconfig.h>
#include <glib.h>
#include <hb-subset.h>
#include <stdlib.h>
#include <string.h>

#include "results/report/html.h"

/* What style.css makes of text: titles (class pt) are 600. */
enum face { PLAIN, TITLE, FACES };

static const struct {
    const char *selector;
    int weight;
} faces[FACES] = {
    [PLAIN] = {".panels text", FC_WEIGHT_REGULAR},
    [TITLE] = {".panels text.pt", FC_WEIGHT_DEMIBOLD},
};

/* --- The characters drawn --- */

struct words {
    hb_set_t *characters[FACES];
    enum face face; /* of the text that is being read */
};

static void begin_element(GMarkupParseContext *context, const char *element, const char **names, const char **values,
                          void *closure, GError **problem)
{
    (void)context, (void)problem;
    struct words *words = closure;
    if (strcmp(element, "text") != 0)
        return;
    words->face = PLAIN;
    for (; *names != NULL; names++, values++)
        if (strcmp(*names, "class") == 0 && strcmp(*values, "pt") == 0)
            words->face = TITLE;
}

static void take_words(GMarkupParseContext *context, const char *string, size_t size, void *closure, GError **problem)
{
    (void)problem;
    struct words *words = closure;
    if (strcmp(g_markup_parse_context_get_element(context), "text") != 0) /* a <title> within is not drawn */
        return;
    for (const char *at = string; at < string + size; at = g_utf8_next_char(at))
        hb_set_add(words->characters[words->face], g_utf8_get_char(at));
}

static void read_words(struct words *words, const char *body)
{
    static const GMarkupParser parser = {.start_element = begin_element, .text = take_words};
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, (GMarkupParseFlags)0, words, NULL);
    bool read =
        g_markup_parse_context_parse(context, "<g>", -1, NULL) && g_markup_parse_context_parse(context, body, -1, NULL);
    assert(read);
    g_markup_parse_context_free(context);
}

/* --- Their glyphs --- */

/* OpenType, "OS/2": fsType. Documents may contain fonts that are installable or editable, and may be subset. */
static bool may_be_embedded(hb_face_t *face)
{
    enum { TYPE = 8, USAGE = 0x000e, EDITABLE = 0x0008, WHOLE_OR_BITMAPS = 0x0300 };
    hb_blob_t *table = hb_face_reference_table(face, HB_TAG('O', 'S', '/', '2'));
    unsigned size;
    const unsigned char *data = (const unsigned char *)hb_blob_get_data(table, &size);
    unsigned type = size >= TYPE + 2 ? (unsigned)data[TYPE] << 8 | data[TYPE + 1] : 0;
    hb_blob_destroy(table);
    return ((type & USAGE) == 0 || (type & EDITABLE) != 0) && (type & WHOLE_OR_BITMAPS) == 0;
}

/* NULL when the file is none that browsers read, or forbids it. The caller destroys. */
static hb_face_t *open_face(const FcPattern *font)
{
    FcChar8 *path;
    int index = 0;
    if (FcPatternGetString(font, FC_FILE, 0, &path) != FcResultMatch)
        return NULL;
    FcPatternGetInteger(font, FC_INDEX, 0, &index);
    hb_blob_t *file = hb_blob_create_from_file((const char *)path);
    hb_face_t *face = hb_face_create(file, (unsigned)index & 0xffff); /* above: an instance of a variable font */
    hb_blob_destroy(file);
    if (hb_face_get_glyph_count(face) > 0 && may_be_embedded(face))
        return face;
    hb_face_destroy(face);
    return NULL;
}

/* The font with these characters alone, without hints for coarse screens; NULL when it cannot be made. */
static char *encode_subset(hb_face_t *face, const hb_set_t *characters)
{
    hb_subset_input_t *input = hb_subset_input_create_or_fail();
    if (input == NULL)
        return NULL;
    hb_set_union(hb_subset_input_unicode_set(input), characters);
    hb_subset_input_set_flags(input, HB_SUBSET_FLAGS_NO_HINTING);
    hb_face_t *subset = hb_subset_or_fail(face, input);
    hb_blob_t *file = subset != NULL ? hb_face_reference_blob(subset) : hb_blob_get_empty();
    unsigned size = 0;
    const char *data = hb_blob_get_data(file, &size);
    char *encoded = size > 0 ? g_base64_encode((const guchar *)data, size) : NULL;
    hb_blob_destroy(file);
    hb_face_destroy(subset);
    hb_subset_input_destroy(input);
    return encoded;
}

static void add_rule(struct text *style, const char *family, const FcPattern *font, const char *encoded, int weight)
{
    FcPatternGetInteger(font, FC_WEIGHT, 0, &weight); /* a variable font has the one asked for */
    text_add(style, "@font-face { font-family: \"");
    html_escape(style, family);
    text_add(style, "\"; font-weight: %d; src: url(data:font/sfnt;base64,%s); }\n", FcWeightToOpenType(weight),
             encoded);
}

/* Takes those of characters that the font has. */
static void add_font(struct text *style, struct text *families, const FcPattern *font, hb_set_t *characters, int weight)
{
    FcCharSet *has;
    FcChar8 *family;
    if (FcPatternGetCharSet(font, FC_CHARSET, 0, &has) != FcResultMatch ||
        FcPatternGetString(font, FC_FAMILY, 0, &family) != FcResultMatch)
        return;
    hb_set_t *drawn = hb_set_create();
    for (hb_codepoint_t c = HB_SET_VALUE_INVALID; hb_set_next(characters, &c);)
        if (FcCharSetHasChar(has, c))
            hb_set_add(drawn, c);
    hb_face_t *face = hb_set_is_empty(drawn) ? NULL : open_face(font);
    char *encoded = face != NULL ? encode_subset(face, drawn) : NULL;
    if (encoded != NULL) {
        add_rule(style, (const char *)family, font, encoded, weight);
        text_add(families, "\"");
        html_escape(families, (const char *)family);
        text_add(families, "\", ");
        hb_set_subtract(characters, drawn);
    }
    g_free(encoded);
    hb_face_destroy(face);
    hb_set_destroy(drawn);
}

/* In fontconfig's order, the one in which librsvg chooses. */
static status add_face(struct text *style, enum face face, hb_set_t *characters, struct error *error)
{
    struct text families = {0};
    FcResult found;
    FcPattern *pattern =
        FcPatternBuild(NULL, FC_FAMILY, FcTypeString, "sans-serif", FC_WEIGHT, FcTypeInteger, faces[face].weight, NULL);
    FcConfigSubstitute(NULL, pattern, FcMatchPattern);
    FcDefaultSubstitute(pattern);
    FcFontSet *fonts = FcFontSort(NULL, pattern, FcFalse, NULL, &found);
    for (int i = 0; fonts != NULL && i < fonts->nfont && !hb_set_is_empty(characters); i++)
        add_font(style, &families, fonts->fonts[i], characters, faces[face].weight);
    if (fonts != NULL)
        FcFontSetDestroy(fonts);
    FcPatternDestroy(pattern);
    bool any = families.size > 0;
    if (any)
        text_add(style, "%s { font-family: %ssans-serif; }\n", faces[face].selector, families.data);
    style->failed |= families.failed;
    text_free(&families);
    return any ? OK
               : error_set(error, ERROR_IO,
                           "no font for the figures: expected one that may be embedded in a file, fontconfig "
                           "(fc-list) has none; install one (Debian: fonts-dejavu-core), or write no figures "
                           "(--figures=false)");
}

status fonts_embed(struct text *style, const char *body, struct error *error)
{
    struct words words = {{hb_set_create(), hb_set_create()}, PLAIN};
    read_words(&words, body);
    status result = OK;
    for (enum face face = 0; face < FACES; face++) {
        if (result == OK && !hb_set_is_empty(words.characters[face]))
            result = add_face(style, face, words.characters[face], error);
        hb_set_destroy(words.characters[face]);
    }
    return result;
}
