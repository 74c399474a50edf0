#include "models/tokenizer/clean.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "core/alloc.h"
#include "core/scope.h"

/* ---- HTML character references: "caf&eacute; &#8217; &lt" → "café ’ <" ----
 * As HTML defines them (WHATWG HTML, section 13.2.5.72 ff.) in the reading of Python's html.unescape: the longest name that
 * matches wins, some names need no semicolon, numbers out of range become U+FFFD, some control codes vanish. */

enum entity_rule {
    ENTITIES_AS_HTML,
    ENTITIES_AS_FTFY /* only references that end in a semicolon; names in capitals ("&EACUTE;") count as well */
};

struct entity {
    const char *name, *text;
    bool bare; /* counts without its semicolon */
};

static const struct entity entities[] = {
#include "models/tokenizer/entities.inc"
};
enum {
    ENTITIES = sizeof entities / sizeof *entities,
    LONGEST_NAME = 31,
    LONGEST_FTFY = 24 /* ftfy looks no further */
};

/* The meaning of a C1 control code (0x80–0x9f); the five codes without a meaning stay. */
static int32_t windows_1252(int32_t code)
{
    static const uint16_t points[32] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                        0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                        0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                        0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    return points[code - 0x80];
}

static void add_point(struct text *text, int32_t point)
{
    uint8_t bytes[4];
    text_add_bytes(text, (const char *)bytes, (size_t)utf8proc_encode_char(point, bytes));
}

/* ASCII alone, whatever the locale. */
static bool is_name_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static const struct entity *find_name(const char *name, size_t length)
{
    size_t low = 0, high = ENTITIES;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strncmp(entities[middle].name, name, length);
        if (order == 0 && entities[middle].name[length] == 0)
            return &entities[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static size_t name_length(const char *text, size_t size)
{
    size_t length = 0;
    while (length < size && is_name_byte(text[length]))
        length++;
    return length;
}

/* The longest name at text that HTML accepts there; *used covers its semicolon. */
static const struct entity *find_longest(const char *text, size_t size, size_t *used)
{
    size_t length = name_length(text, size);
    if (length > LONGEST_NAME)
        length = LONGEST_NAME;
    for (; length >= 2; length--) {
        const struct entity *entity = find_name(text, length);
        bool closed = length < size && text[length] == ';';
        if (entity != NULL && (closed || entity->bare)) {
            *used = length + closed;
            return entity;
        }
    }
    return NULL;
}

/* A name with its semicolon. ftfy also reads a name in capitals, which HTML does not know, as the capital of the character
 * that the name in small letters stands for. */
static const struct entity *find_complete(const char *text, size_t size, size_t *used, bool *capital)
{
    size_t length = name_length(text, size), ignored;
    if (length == 0 || length > LONGEST_FTFY || length == size || text[length] != ';')
        return NULL;
    *used = length + 1;
    const struct entity *entity = find_name(text, length);
    if (entity != NULL)
        return entity;
    char small[LONGEST_FTFY];
    for (size_t i = 0; i < length; i++) {
        if (text[i] >= 'a' && text[i] <= 'z')
            return NULL;
        small[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    }
    *capital = true;
    return find_longest(text, size, &ignored) == NULL ? find_name(small, length) : NULL;
}

/* The value of the digits after "&#" or "&#x"; 0 of them give *used = 0. */
static int32_t parse_number(const char *text, size_t size, size_t *used)
{
    bool hexadecimal = size > 0 && (text[0] == 'x' || text[0] == 'X');
    int32_t base = hexadecimal ? 16 : 10, value = 0;
    size_t start = hexadecimal ? 1 : 0, i = start;
    for (; i < size && (hexadecimal ? isxdigit((unsigned char)text[i]) : isdigit((unsigned char)text[i])); i++) {
        int32_t digit = text[i] <= '9' ? text[i] - '0' : (text[i] | 32) - 'a' + 10;
        if (value <= 0x10ffff)
            value = value * base + digit;
    }
    *used = i == start ? 0 : i;
    return value;
}

/* The code point that a number stands for, -1 when it vanishes. */
static int32_t point_of_number(int32_t number)
{
    if (number >= 0x80 && number <= 0x9f)
        return windows_1252(number);
    if (number == 0 || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
        return 0xfffd;
    bool space = number == '\t' || number == '\n' || number == '\f' || number == '\r';
    bool control = (number < 0x20 && !space) || number == 0x7f;
    bool no_character = (number >= 0xfdd0 && number <= 0xfdef) || (number & 0xfffe) == 0xfffe;
    return control || no_character ? -1 : number;
}

/* Decodes "#…" after an ampersand; returns the bytes used, 0 if it is no reference. */
static size_t decode_number(struct text *out, const char *text, size_t size, enum entity_rule rule)
{
    size_t digits;
    int32_t number = parse_number(text + 1, size - 1, &digits);
    if (digits == 0)
        return 0;
    bool closed = digits + 1 < size && text[digits + 1] == ';';
    if (rule == ENTITIES_AS_FTFY && (!closed || digits > LONGEST_FTFY || number == ';'))
        return 0;
    int32_t point = point_of_number(number);
    if (point >= 0)
        add_point(out, point);
    return 1 + digits + closed;
}

static void add_capital(struct text *out, const char *text)
{
    utf8proc_int32_t point;
    for (utf8proc_ssize_t length; *text != 0; text += length) {
        length = utf8proc_iterate((const uint8_t *)text, -1, &point);
        if (point == 0xdf)
            text_add_bytes(out, "SS", 2);
        else
            add_point(out, utf8proc_toupper(point));
    }
}

static size_t decode_name(struct text *out, const char *text, size_t size, enum entity_rule rule)
{
    size_t used = 0;
    bool capital = false;
    const struct entity *entity =
        rule == ENTITIES_AS_FTFY ? find_complete(text, size, &used, &capital) : find_longest(text, size, &used);
    if (entity == NULL)
        return 0;
    if (capital)
        add_capital(out, entity->text);
    else
        text_add_bytes(out, entity->text, strlen(entity->text));
    return used;
}

/* Adds text, which is UTF-8, to out with its references decoded once. */
static void decode_entities(struct text *out, const char *text, size_t size, enum entity_rule rule)
{
    size_t done = 0;
    while (done < size) {
        const char *ampersand = memchr(text + done, '&', size - done);
        size_t plain = ampersand == NULL ? size - done : (size_t)(ampersand - text) - done;
        text_add_bytes(out, text + done, plain);
        done += plain;
        if (done == size)
            return;
        const char *rest = text + done + 1;
        size_t left = size - done - 1;
        size_t used =
            left > 0 && rest[0] == '#' ? decode_number(out, rest, left, rule) : decode_name(out, rest, left, rule);
        if (used == 0)
            text_add_bytes(out, "&", 1);
        done += 1 + used;
    }
}

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
        add_point(out, parts[i]);
}

/* fix_c1_controls, fix_latin_ligatures, fix_character_width, uncurl_quotes: each replaces single characters. */
static void replace_characters(struct text *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        int32_t point = next_point(text, size, &at);
        if (point >= 0x80 && point <= 0x9f)
            point = windows_1252(point);
        const char *letters = ligature(point);
        if (letters != NULL)
            text_add_bytes(out, letters, strlen(letters));
        else if (point == 0x3000)
            add_point(out, ' ');
        else if (point > 0xff00 && point < 0xfff0)
            add_ordinary_width(out, point);
        else
            add_point(out, straight_quote(point));
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
    OWNED utf8proc_uint8_t *composed = NULL;
    utf8proc_ssize_t length = utf8proc_map((const uint8_t *)text, (utf8proc_ssize_t)size, &composed,
                                           (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    text_add_bytes(out, xgiven(composed, size), (size_t)length);
}

/* Applies ftfy's rules to line; spare is scratch. */
static void fix_line(struct text *line, struct text *spare, bool unescape)
{
    SCOPED(text_free) struct text before = {0};
    bool changed = true;
    for (int round = 0; changed && round < MOST_ROUNDS; round++) {
        text_clear(&before);
        text_add_bytes(&before, line->data, line->size);
        if (unescape) {
            text_clear(spare);
            decode_entities(spare, line->data, line->size, ENTITIES_AS_FTFY);
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
}

static void fix_text(struct text *out, const char *text, size_t size)
{
    SCOPED(text_free) struct text line = {0}, spare = {0};
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
            add_point(out, cased_precedes(text, start) && !cased_follows(text, size, at) ? 0x3c2 : 0x3c3);
        else
            add_point(out, utf8proc_tolower(point));
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
    SCOPED(text_free) struct text a = {0}, b = {0};
    fix_text(&a, text, size);
    decode_entities(&b, a.data, a.size, ENTITIES_AS_HTML);
    text_clear(&a);
    decode_entities(&a, b.data, b.size, ENTITIES_AS_HTML);
    text_clear(&b);
    squeeze_spaces(&b, a.data, a.size);
    lower_case(clean, b.data, b.size);
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
