#include "models/tokenizer/clean.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "core/alloc.h"
#include "models/tokenizer/entities.h"

/* ftfy repeats its rules until they change nothing; each round undoes one level of "&amp;amp;…". */
enum { MOST_ROUNDS = 100 };

/* The code point at text[*at], which is valid UTF-8, and moves *at behind it. */
static int32_t next_point(const char *text, size_t size, size_t *at)
{
    utf8proc_int32_t point;
    *at += (size_t)utf8proc_iterate((const uint8_t *)text + *at, (utf8proc_ssize_t)(size - *at), &point);
    return point;
}

static void swap(struct text *a, struct text *b)
{
    struct text other = *a;
    *a = *b;
    *b = other;
}

/* ---- 1. ftfy ---- */

static const char *ligature(int32_t point)
{
    static const char *const presentation[] = {"ff", "fi", "fl", "ffi", "ffl", "\u017ft", "st"};
    static const char *const digraphs[] = {"D\u017d", "D\u017e", "d\u017e", "LJ", "Lj", "lj", "NJ", "Nj", "nj"};
    static const char *const letters[] = {"DZ", "Dz", "dz"};
    if (point >= 0xfb00 && point <= 0xfb06)
        return presentation[point - 0xfb00];
    if (point >= 0x1c4 && point <= 0x1cc)
        return digraphs[point - 0x1c4];
    if (point >= 0x1f1 && point <= 0x1f3)
        return letters[point - 0x1f1];
    if (point == 0x132 || point == 0x133)
        return point == 0x132 ? "IJ" : "ij";
    return point == 0x149 ? "'n" : NULL;
}

static int32_t straight_quote(int32_t point)
{
    if (point == 0x2bc || (point >= 0x2018 && point <= 0x201b))
        return '\'';
    return point >= 0x201c && point <= 0x201f ? '"' : point;
}

static void add_ordinary_width(struct text *out, int32_t point)
{
    utf8proc_int32_t parts[8];
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(
        point, parts, 8, (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), &boundary);
    for (utf8proc_ssize_t i = 0; i < count && i < 8; i++)
        entities_add_point(out, parts[i]);
}

/* fix_c1_controls, fix_latin_ligatures, fix_character_width, uncurl_quotes: each replaces single characters. */
static void replace_characters(struct text *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        int32_t point = next_point(text, size, &at);
        if (point >= 0x80 && point <= 0x9f)
            point = entities_windows_1252(point);
        const char *letters = ligature(point);
        if (letters != NULL)
            text_add_bytes(out, letters, strlen(letters));
        else if (point == 0x3000)
            entities_add_point(out, ' ');
        else if (point > 0xff00 && point < 0xfff0)
            add_ordinary_width(out, point);
        else
            entities_add_point(out, straight_quote(point));
    }
}

static bool is_control(int32_t point)
{
    return point < 9 || point == 0xb || (point >= 0xe && point < 0x20) || point == 0x7f ||
           (point >= 0x206a && point <= 0x206f) || point == 0xfeff || (point >= 0xfff9 && point <= 0xfffc);
}

/* The length of an escape sequence "ESC [ digits and semicolons letter"; 0: there is none. */
static size_t terminal_escape(const char *text, size_t size)
{
    size_t length = 2;
    if (size < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (length < size && ((text[length] >= '0' && text[length] <= '9') || text[length] == ';'))
        length++;
    char small = length < size ? (char)(text[length] | 32) : 0;
    return small >= 'a' && small <= 'z' ? length + 1 : 0;
}

/* remove_terminal_escapes, remove_control_chars. */
static void remove_characters(struct text *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t escape = terminal_escape(text + at, size - at), start = at + escape;
        at = start;
        if (escape == 0 && !is_control(next_point(text, size, &at)))
            text_add_bytes(out, text + start, at - start);
    }
}

static void normalize(struct text *out, const char *text, size_t size)
{
    utf8proc_uint8_t *composed = NULL;
    utf8proc_ssize_t length = utf8proc_map((const uint8_t *)text, (utf8proc_ssize_t)size, &composed,
                                           (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    text_add_bytes(out, xgiven(composed, size), (size_t)length);
    free(composed);
}

/* Applies ftfy's rules to line; spare is scratch. */
static void fix_line(struct text *line, struct text *spare, bool unescape)
{
    struct text before = {0};
    bool changed = true;
    for (int round = 0; changed && round < MOST_ROUNDS; round++) {
        text_clear(&before);
        text_add_bytes(&before, line->data, line->size);
        if (unescape) {
            text_clear(spare);
            entities_decode(spare, line->data, line->size, ENTITIES_AS_FTFY);
            swap(line, spare);
        }
        void (*const steps[])(struct text *, const char *, size_t) = {replace_characters, remove_characters, normalize};
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            text_clear(spare);
            steps[i](spare, line->data, line->size);
            swap(line, spare);
        }
        changed = line->size > 0 && (line->size != before.size || memcmp(line->data, before.data, line->size) != 0);
    }
    text_free(&before);
}

static void fix_text(struct text *out, const char *text, size_t size)
{
    struct text line = {0}, spare = {0};
    bool unescape = true;
    for (size_t start = 0, length; start < size; start += length) {
        const char *end = memchr(text + start, '\n', size - start);
        length = end == NULL ? size - start : (size_t)(end - text) + 1 - start;
        unescape = unescape && memchr(text + start, '<', length) == NULL;
        text_clear(&line);
        text_add_bytes(&line, text + start, length);
        fix_line(&line, &spare, unescape);
        if (line.size > 0)
            text_add_bytes(out, line.data, line.size);
    }
    text_free(&line);
    text_free(&spare);
}

/* ---- 3. and 4. white space and case ---- */

static bool is_space(int32_t point)
{
    if (point < 0x80)
        return point == ' ' || (point >= '\t' && point <= '\r');
    return point == 0x85 || point == 0xa0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200a) ||
           point == 0x2028 || point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

static void squeeze_spaces(struct text *out, const char *text, size_t size)
{
    bool pending = false;
    for (size_t at = 0; at < size;) {
        size_t start = at;
        if (is_space(next_point(text, size, &at))) {
            pending = out->size > 0;
            continue;
        }
        if (pending)
            text_add_bytes(out, " ", 1);
        pending = false;
        text_add_bytes(out, text + start, at - start);
    }
}

/* Unicode's Case_Ignorable: modifiers, marks, formats, and punctuation found inside words. */
static bool is_case_ignorable(int32_t point)
{
    static const int32_t inside_words[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,  0x5f4,  0x2018, 0x2019,
                                           0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    for (size_t i = 0; i < sizeof inside_words / sizeof *inside_words; i++)
        if (point == inside_words[i])
            return true;
    utf8proc_category_t category = utf8proc_category(point);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_SK;
}

/* Unicode's Cased, but for characters that are Case_Ignorable as well. */
static bool is_cased(int32_t point)
{
    utf8proc_category_t category = utf8proc_category(point);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
           point == 0xaa || point == 0xba || (point >= 0x2160 && point <= 0x217f) ||
           (point >= 0x24b6 && point <= 0x24e9) || (point >= 0x1f130 && point <= 0x1f149) ||
           (point >= 0x1f150 && point <= 0x1f169) || (point >= 0x1f170 && point <= 0x1f189);
}

static bool cased_follows(const char *text, size_t size, size_t at)
{
    while (at < size) {
        int32_t point = next_point(text, size, &at);
        if (!is_case_ignorable(point))
            return is_cased(point);
    }
    return false;
}

static bool cased_precedes(const char *text, size_t at)
{
    while (at > 0) {
        size_t end = at;
        do
            at--;
        while (at > 0 && (text[at] & 0xc0) == 0x80);
        size_t start = at;
        int32_t point = next_point(text, end, &start);
        if (!is_case_ignorable(point))
            return is_cased(point);
    }
    return false;
}

/* Unicode's SpecialCasing has two rules for lower case that hold in every language. */
static void lower_case(struct text *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = next_point(text, size, &at);
        if (point == 0x130)
            text_add_bytes(out, "i\u0307", strlen("i\u0307"));
        else if (point == 0x3a3)
            entities_add_point(out, cased_precedes(text, start) && !cased_follows(text, size, at) ? 0x3c2 : 0x3c3);
        else
            entities_add_point(out, utf8proc_tolower(point));
    }
}

/* ---- all steps ---- */

static status check_text(const char *text, size_t size, bool *plain, struct error *error)
{
    if (size > TOKENIZER_TEXT_LIMIT)
        return error_set(error, ERROR_ARGUMENT, "a text of %zu bytes is too long for a prompt; expected at most %d",
                         size, TOKENIZER_TEXT_LIMIT);
    *plain = true;
    for (size_t at = 0; at < size;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t length = utf8proc_iterate((const uint8_t *)text + at, (utf8proc_ssize_t)(size - at), &point);
        if (length <= 0)
            return error_set(error, ERROR_ARGUMENT,
                             "byte %zu of the text, 0x%02x, is not valid UTF-8; convert the text to UTF-8 first", at,
                             (unsigned char)text[at]);
        *plain = *plain && point != '&' && point < 0x7f && (point >= ' ' || point == '\t' || point == '\n');
        at += (size_t)length;
    }
    return OK;
}

/* Printable ASCII without a reference, which is nearly every prompt, needs only spaces and case. */
static void clean_plain(struct text *clean, const char *text, size_t size)
{
    squeeze_spaces(clean, text, size);
    for (size_t i = 0; i < clean->size; i++)
        if (clean->data[i] >= 'A' && clean->data[i] <= 'Z')
            clean->data[i] = (char)(clean->data[i] - 'A' + 'a');
}

static void clean_fully(struct text *clean, const char *text, size_t size)
{
    struct text a = {0}, b = {0};
    fix_text(&a, text, size);
    entities_decode(&b, a.data, a.size, ENTITIES_AS_HTML);
    text_clear(&a);
    entities_decode(&a, b.data, b.size, ENTITIES_AS_HTML);
    text_clear(&b);
    squeeze_spaces(&b, a.data, a.size);
    lower_case(clean, b.data, b.size);
    text_free(&a);
    text_free(&b);
}

status tokenizer_clean(struct text *clean, const char *text, struct error *error)
{
    size_t size = strlen(text);
    bool plain;
    TRY(check_text(text, size, &plain, error));
    text_clear(clean);
    if (plain)
        clean_plain(clean, text, size);
    else
        clean_fully(clean, text, size);
    return OK;
}
