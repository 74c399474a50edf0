#include "models/tokenizer/entities.h"

#include <ctype.h>
#include <string.h>

#include <utf8proc.h>

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

int32_t entities_windows_1252(int32_t code)
{
    static const uint16_t points[32] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                        0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                        0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                        0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    return points[code - 0x80];
}

void entities_add_point(struct text *text, int32_t point)
{
    uint8_t bytes[4];
    text_add_bytes(text, (const char *)bytes, (size_t)utf8proc_encode_char(point, bytes));
}

/* ASCII alone, whatever the locale. */
static bool is_name_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static const struct entity *find(const char *name, size_t length)
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
        const struct entity *entity = find(text, length);
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
    const struct entity *entity = find(text, length);
    if (entity != NULL)
        return entity;
    char small[LONGEST_FTFY];
    for (size_t i = 0; i < length; i++) {
        if (text[i] >= 'a' && text[i] <= 'z')
            return NULL;
        small[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    }
    *capital = true;
    return find_longest(text, size, &ignored) == NULL ? find(small, length) : NULL;
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
        return entities_windows_1252(number);
    if (number == 0 || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
        return 0xfffd;
    bool space = number == '\t' || number == '\n' || number == '\f' || number == '\r';
    bool control = (number < 0x20 && !space) || number == 0x7f;
    bool no_character = (number >= 0xfdd0 && number <= 0xfdef) || (number & 0xfffe) == 0xfffe;
    return control || no_character ? -1 : number;
}

/* Decodes "#…" after an ampersand; returns the bytes used, 0 if it is no reference. */
static size_t decode_number(struct text *out, const char *text, size_t size, enum entities_rule rule)
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
        entities_add_point(out, point);
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
            entities_add_point(out, utf8proc_toupper(point));
    }
}

static size_t decode_name(struct text *out, const char *text, size_t size, enum entities_rule rule)
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

void entities_decode(struct text *out, const char *text, size_t size, enum entities_rule rule)
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
