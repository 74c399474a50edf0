/* The fonts that go into a figure's SVG: all that is drawn and no more, none that forbids it, the right one of a collection. */
#include "tests/results/report/svg_fonts.h"

#include <fontconfig/fontconfig.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/report/fonts.h"
#include "tests/results/sample.h"

#define BODY                                                                                                                     \
    "<g><text class=\"pt\">Größe ±2 Ω</text><text class=\"tl\" x=\"1\">α–β −1.5 &amp;&lt;&#39;é<title>QXZ</title>…" \
    "</text></g><svg viewBox=\"0 0 1 1\"><text>漢</text></svg>"

static char *embed(const char *body)
{
    struct text svg = {0};
    text_add(&svg, "<svg><style>\n");
    assert_ok(fonts_embed(&svg, body, &error));
    text_add(&svg, "</style>%s</svg>", body);
    assert_false(svg.failed);
    return svg.data;
}

static void expect_characters(const hb_set_t *set, const char *const *characters, bool there)
{
    for (; *characters != NULL; characters++) {
        hb_buffer_t *buffer = hb_buffer_create();
        hb_buffer_add_utf8(buffer, *characters, -1, 0, -1);
        if (hb_set_has(set, hb_buffer_get_glyph_infos(buffer, NULL)->codepoint) != there)
            fail_msg("%s is%s embedded", *characters, there ? " not" : "");
        hb_buffer_destroy(buffer);
    }
}

static void what_is_drawn_has_its_glyph(void **state)
{
    (void)state;
    char *svg = embed(BODY);
    struct svg_fonts fonts;
    svg_fonts_read(&fonts, svg);
    svg_fonts_check(&fonts);
    assert_int_equal(fonts.words, 3);
    assert_true(fonts.fonts >= 2);
    expect_characters(fonts.embedded[SVG_TITLE], (const char *const[]){"G", "r", "ö", "ß", " ", "±", "2", NULL}, true);
    expect_characters(fonts.embedded[SVG_TITLE], (const char *const[]){"1", "&", "–", "é", "A", NULL}, false);
    expect_characters(fonts.embedded[SVG_PLAIN],
                      (const char *const[]){"–", " ", "−", "1", ".", "5", "&", "<", "'", "é", "…", NULL}, true);
    expect_characters(fonts.embedded[SVG_PLAIN], (const char *const[]){"Q", "X", ";", "m", "G", "2", NULL}, false);
    svg_fonts_free(&fonts);
    free(svg);
}

static void twice_is_the_same(void **state)
{
    (void)state;
    char *first = embed(BODY), *second = embed(BODY);
    assert_string_equal(first, second);
    assert_true(strlen(first) < 40000);
    free(first);
    free(second);
}

static int weight_of_match(int weight)
{
    FcResult result;
    FcPattern *wanted =
        FcPatternBuild(NULL, FC_FAMILY, FcTypeString, "sans-serif", FC_WEIGHT, FcTypeInteger, weight, NULL);
    FcConfigSubstitute(NULL, wanted, FcMatchPattern);
    FcDefaultSubstitute(wanted);
    FcPattern *match = FcFontMatch(NULL, wanted, &result);
    assert_int_equal(FcPatternGetInteger(match, FC_WEIGHT, 0, &weight), FcResultMatch);
    FcPatternDestroy(match);
    FcPatternDestroy(wanted);
    return FcWeightToOpenType(weight);
}

static int weight_of_rule(const char *body)
{
    int weight = 0;
    char *svg = embed(body);
    assert_int_equal(sscanf(strstr(svg, "font-weight: "), "font-weight: %d;", &weight), 1);
    free(svg);
    return weight;
}

static void titles_are_bold_where_there_is_such_a_font(void **state)
{
    (void)state;
    assert_int_equal(weight_of_rule("<text>a</text>"), weight_of_match(FC_WEIGHT_REGULAR));
    assert_int_equal(weight_of_rule("<text class=\"pt\">a</text>"), weight_of_match(FC_WEIGHT_DEMIBOLD));
}

/* --- Machines with other fonts --- */

static void use_fonts(const char *const *paths)
{
    FcConfig *config = FcConfigCreate();
    for (; *paths != NULL; paths++)
        assert_true(FcConfigAppFontAddFile(config, (const FcChar8 *)*paths));
    assert_true(FcConfigSetCurrent(config));
    FcConfigDestroy(config);
}

static void use_machine(void)
{
    FcConfig *config = FcInitLoadConfigAndFonts();
    assert_true(FcConfigSetCurrent(config));
    FcConfigDestroy(config);
}

/* One with the letters in it, from the machine's, with another fsType. */
static hb_blob_t *make_font(const char *letters, unsigned type)
{
    struct text svg = {0}, body = {0};
    text_add(&body, "<text>%s</text>", letters);
    assert_ok(fonts_embed(&svg, body.data, &error));
    hb_face_t *face = svg_fonts_face(svg.data), *made = hb_face_builder_create();
    hb_tag_t tags[64];
    unsigned count = 64;
    hb_face_get_table_tags(face, 0, &count, tags);
    for (unsigned i = 0; i < count; i++) {
        hb_blob_t *table = hb_face_reference_table(face, tags[i]), *own = hb_blob_copy_writable_or_fail(table);
        unsigned size;
        char *data = hb_blob_get_data_writable(own, &size);
        if (tags[i] == HB_TAG('O', 'S', '/', '2')) {
            data[8] = (char)(type >> 8);
            data[9] = (char)type;
        }
        assert_true(hb_face_builder_add_table(made, tags[i], own));
        hb_blob_destroy(own);
        hb_blob_destroy(table);
    }
    hb_blob_t *font = hb_face_reference_blob(made);
    hb_face_destroy(made);
    hb_face_destroy(face);
    text_free(&svg);
    text_free(&body);
    return font;
}

static void write_blob(const char *path, hb_blob_t *blob)
{
    unsigned size;
    const char *data = hb_blob_get_data(blob, &size);
    assert_ok(file_write(path, data, size, &error));
}

static void expect_allowed(const char *rule)
{
    hb_face_t *face = svg_fonts_face(rule);
    hb_blob_t *table = hb_face_reference_table(face, HB_TAG('O', 'S', '/', '2'));
    const char *data = hb_blob_get_data(table, NULL);
    assert_true(data[8] == 0 && (data[9] == 0 || (data[9] & 8) != 0));
    hb_blob_destroy(table);
    hb_face_destroy(face);
}

static void expect_embedded(const char *const *paths, const char *letters, bool expected)
{
    struct text svg = {0}, body = {0};
    text_add(&body, "<text>%s</text>", letters);
    use_fonts(paths);
    if (expected) {
        assert_ok(fonts_embed(&svg, body.data, &error));
        expect_allowed(svg.data);
    } else {
        assert_fails(fonts_embed(&svg, body.data, &error), ERROR_IO, "install one");
        assert_null(svg.data);
    }
    text_free(&svg);
    text_free(&body);
    use_machine();
}

/* OpenType, "OS/2": 2 forbids, 4 is for reading alone, 0x100 without subsets, 0x200 for bitmaps alone. */
static void a_font_that_forbids_it_is_left_out(void **state)
{
    (void)state;
    static const struct {
        unsigned type;
        bool expected;
    } types[] = {{0, true},   {2, false},     {4, false},     {8, true},
                 {0xc, true}, {0x100, false}, {0x108, false}, {0x200, false}};
    char *path = sample_path("font.ttf");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hb_blob_t *font = make_font("abc", types[i].type);
        write_blob(path, font);
        hb_blob_destroy(font);
        expect_embedded((const char *const[]){path, NULL}, "abc", types[i].expected);
    }
    sample_remove(path);
}

/* Each has its turn, in fontconfig's order, until one may be embedded. */
static void the_next_font_takes_its_place(void **state)
{
    (void)state;
    char *path = sample_path("font.ttf"), *other = path_format("%s.other", path);
    for (unsigned forbidden = 0; forbidden < 2; forbidden++) {
        hb_blob_t *first = make_font("abc", forbidden == 0 ? 2 : 0), *second = make_font("abc", forbidden == 1 ? 2 : 0);
        write_blob(path, first);
        write_blob(other, second);
        expect_embedded((const char *const[]){path, other, NULL}, "abc", true);
        hb_blob_destroy(first);
        hb_blob_destroy(second);
    }
    free(other);
    sample_remove(path);
}

static void put_big_endian(char *at, unsigned value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(value >> (24 - 8 * i));
}

/* With an "OS/2" that ends in the middle, as in old fonts, which HarfBuzz does not cut. */
static hb_blob_t *make_damaged_font(const char *letters)
{
    hb_blob_t *font = make_font(letters, 0), *damaged = hb_blob_copy_writable_or_fail(font);
    char *data = hb_blob_get_data_writable(damaged, NULL);
    for (int table = 0; table < data[5]; table++)
        if (memcmp(data + 12 + 16 * table, "OS/2", 4) == 0)
            put_big_endian(data + 12 + 16 * table + 12, 68);
    hb_blob_destroy(font);
    return damaged;
}

static void a_font_that_cannot_be_cut_is_left_out(void **state)
{
    (void)state;
    char *path = sample_path("font.ttf"), *other = path_format("%s.other", path);
    hb_blob_t *damaged = make_damaged_font("abc"), *whole = make_font("abc", 0);
    write_blob(path, damaged);
    write_blob(other, whole);
    expect_embedded((const char *const[]){path, NULL}, "abc", false);
    expect_embedded((const char *const[]){path, other, NULL}, "abc", true);
    hb_blob_destroy(damaged);
    hb_blob_destroy(whole);
    free(other);
    sample_remove(path);
}

static void without_a_font_it_says_so(void **state)
{
    (void)state;
    expect_embedded((const char *const[]){NULL}, "abc", false);
}

static unsigned big_endian(const char *at)
{
    const unsigned char *bytes = (const unsigned char *)at;
    return (unsigned)bytes[0] << 24 | (unsigned)bytes[1] << 16 | (unsigned)bytes[2] << 8 | bytes[3];
}

/* OpenType's collection: where its fonts begin, then these, whose tables count from the beginning of the file. */
static void write_collection(const char *path, const char *const *letters)
{
    char head[20] = {'t', 't', 'c', 'f', 0, 1, 0, 0, 0, 0, 0, 2};
    struct text fonts = {0};
    for (int i = 0; i < 2; i++) {
        hb_blob_t *font = make_font(letters[i], 0), *own = hb_blob_copy_writable_or_fail(font);
        unsigned size, begin = (unsigned)(sizeof head + fonts.size);
        char *data = hb_blob_get_data_writable(own, &size);
        for (int table = 0; table < data[5]; table++)
            put_big_endian(data + 12 + 16 * table + 8, big_endian(data + 12 + 16 * table + 8) + begin);
        put_big_endian(head + 12 + 4 * i, begin);
        text_add_bytes(&fonts, data, size);
        hb_blob_destroy(own);
        hb_blob_destroy(font);
    }
    struct text file = {0};
    text_add_bytes(&file, head, sizeof head);
    text_add_bytes(&file, fonts.data, fonts.size);
    assert_ok(file_write(path, file.data, file.size, &error));
    text_free(&file);
    text_free(&fonts);
}

static void of_a_collection_it_is_the_one_with_the_glyphs(void **state)
{
    (void)state;
    char *path = sample_path("fonts.ttc");
    write_collection(path, (const char *const[]){"abc", "xyz"});
    use_fonts((const char *const[]){path, NULL});
    static const char *const bodies[] = {"<text>cab</text>", "<text>zyx</text>", "<text>ax</text>"};
    for (size_t i = 0; i < 3; i++) {
        struct svg_fonts fonts;
        char *svg = embed(bodies[i]);
        svg_fonts_read(&fonts, svg);
        assert_true(hb_set_is_equal(fonts.drawn[SVG_PLAIN], fonts.embedded[SVG_PLAIN]));
        assert_int_equal(fonts.fonts, i < 2 ? 1 : 2);
        svg_fonts_free(&fonts);
        free(svg);
    }
    use_machine();
    sample_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_drawn_has_its_glyph),
        cmocka_unit_test(twice_is_the_same),
        cmocka_unit_test(titles_are_bold_where_there_is_such_a_font),
        cmocka_unit_test(a_font_that_forbids_it_is_left_out),
        cmocka_unit_test(the_next_font_takes_its_place),
        cmocka_unit_test(a_font_that_cannot_be_cut_is_left_out),
        cmocka_unit_test(without_a_font_it_says_so),
        cmocka_unit_test(of_a_collection_it_is_the_one_with_the_glyphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
