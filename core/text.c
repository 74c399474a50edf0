#include "core/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "core/alloc.h"

static void reserve(struct text *text, size_t more)
{
    if (text->size + more + 1 <= text->capacity)
        return;
    text->capacity = text->capacity * 2 + more + 64;
    text->data = xrealloc(text->data, text->capacity);
}

void text_add_list(struct text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    reserve(text, 0);
    size_t left = text->capacity - text->size;
    int length = vsnprintf(text->data + text->size, left, format, arguments);
    if (length >= 0 && (size_t)length >= left) {
        reserve(text, (size_t)length);
        vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
    }
    text->size += length > 0 ? (size_t)length : 0;
    text->data[text->size] = 0;
    va_end(again);
}

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_add_list(text, format, arguments);
    va_end(arguments);
}

void text_add_real(struct text *text, double value)
{
    char number[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    text_add(text, "%s", number);
}

void text_add_bytes(struct text *text, const char *bytes, size_t size)
{
    reserve(text, size);
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = 0;
}

void text_add_duration(struct text *text, double seconds)
{
    unsigned long long whole = (unsigned long long)fmin(fmax(seconds, 0) + 0.5, 1e9);
    if (whole < 60)
        text_add(text, "%llu s", whole);
    else if (whole < 3600)
        text_add(text, "%llu min %02llu s", whole / 60, whole % 60);
    else
        text_add(text, "%llu h %02llu min", whole / 3600, whole / 60 % 60);
}

void text_clear(struct text *text)
{
    text->size = 0;
    if (text->data != NULL)
        text->data[0] = 0;
}

void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

/* --- Untrusted text --- */

static bool must_be_escaped(utf8proc_int32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfffe || code == 0xffff;
}

/* Returns the size of the next character in bytes; *code is negative for an invalid byte. */
static size_t next_character(const char *string, utf8proc_int32_t *code)
{
    utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)string, -1, code);
    if (size > 0)
        return (size_t)size;
    *code = -1;
    return 1;
}

static void add_escaped(struct text *text, unsigned char byte, utf8proc_int32_t code)
{
    static const char known[] = "\n\t\r", letters[] = "ntr";
    const char *found = byte != 0 ? strchr(known, byte) : NULL;
    if (found != NULL)
        text_add(text, "\\%c", letters[found - known]);
    else if (code > 0xff)
        text_add(text, "\\u%04x", (unsigned)code);
    else
        text_add(text, "\\x%02x", code >= 0 ? (unsigned)code : byte);
}

void text_add_visible(struct text *text, const char *string)
{
    text_add_bytes(text, "", 0);
    while (*string != 0) {
        utf8proc_int32_t code;
        size_t size = next_character(string, &code);
        if (must_be_escaped(code))
            add_escaped(text, (unsigned char)*string, code);
        else
            text_add_bytes(text, string, size);
        string += size;
    }
}

/* The first character that is; NULL: there is none. */
static const char *find_character(const char *string, bool (*is)(utf8proc_int32_t code))
{
    while (*string != 0) {
        utf8proc_int32_t code;
        size_t size = next_character(string, &code);
        if (is(code))
            return string;
        string += size;
    }
    return NULL;
}

bool text_is_visible(const char *string)
{
    return find_character(string, must_be_escaped) == NULL;
}

static bool is_invalid(utf8proc_int32_t code)
{
    return code < 0;
}

const char *text_find_invalid(const char *string)
{
    return find_character(string, is_invalid);
}

void text_add_word(struct text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
    if (*word != 0 && word[strspn(word, plain)] == 0) {
        text_add(text, "%s", word);
        return;
    }
    text_add(text, "'");
    for (; *word != 0; word++)
        text_add(text, *word == '\'' ? "'\\''" : "%c", *word);
    text_add(text, "'");
}

void text_add_replaced(struct text *text, const char *string, const char *const *list)
{
    while (*string != 0) {
        const char *const *pair = list;
        while (*pair != NULL && strncmp(string, *pair, strlen(*pair)) != 0)
            pair += 2;
        if (*pair != NULL)
            text_add(text, "%s", pair[1]);
        else
            text_add_bytes(text, string, 1);
        string += *pair != NULL ? strlen(*pair) : 1;
    }
}

void text_skip_mark(const char **text, size_t *size)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (*size >= 3 && memcmp(*text, mark, 3) == 0) {
        *text += 3;
        *size -= 3;
    }
}

/* --- Numbers and words --- */

bool parse_integer(const char *string, int64_t *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(string, &end, 10);
    if (errno != 0 || end == string || *end != 0)
        return false;
    *value = parsed;
    return true;
}

bool parse_real(const char *string, double *value)
{
    char *end;
    errno = 0;
    double parsed = strtod(string, &end);
    bool vanished = parsed == 0 && errno == ERANGE, hexadecimal = strpbrk(string, "xX") != NULL;
    if (end == string || *end != 0 || !isfinite(parsed) || vanished || hexadecimal)
        return false;
    *value = parsed;
    return true;
}

bool parse_boolean(const char *string, bool *value)
{
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(string, yes[i]) == 0 || strcasecmp(string, no[i]) == 0) {
            *value = strcasecmp(string, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Only for ASCII; other characters are compared as they are. */
static bool differ(char a, char b)
{
    char small_a = a >= 'A' && a <= 'Z' ? (char)(a - 'A' + 'a') : a,
         small_b = b >= 'A' && b <= 'Z' ? (char)(b - 'A' + 'a') : b;
    return small_a != small_b;
}

size_t edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t n = least(strlen(a), LONGEST), m = least(strlen(b), LONGEST);
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + differ(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && !differ(a[i - 1], b[j - 2]) && !differ(a[i - 2], b[j - 1]))
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

bool text_find_word(const char *list, const char *word, size_t *position)
{
    size_t length = strlen(word);
    *position = 0;
    for (const char *at = list; length > 0; (*position)++) {
        size_t span = strcspn(at, "|");
        if (span == length && memcmp(at, word, span) == 0)
            return true;
        if (at[span] == 0)
            return false;
        at += span + 1;
    }
    return false;
}

bool text_has_word(const char *list, const char *word)
{
    size_t position;
    return text_find_word(list, word, &position);
}

bool text_ends_with(const char *string, const char *ending)
{
    size_t size = strlen(string), tail = strlen(ending);
    return size >= tail && strcmp(string + size - tail, ending) == 0;
}

const char *nearest_word(const char *word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}

status error_unknown_word(struct error *error, const char *where, const char *kind, const char *word,
                          const char *const *names, size_t count)
{
    return error_unknown_word_near(error, where, kind, word, nearest_word(word, names, count), names, count);
}

status error_unknown_word_near(struct error *error, const char *where, const char *kind, const char *word,
                               const char *near, const char *const *names, size_t count)
{
    SCOPED(text_free) struct text message = {0};
    text_add(&message, "%s: unknown %s \"%s\"", where, kind, word);
    if (near != NULL)
        text_add(&message, " (did you mean \"%s\"?)", near);
    text_add(&message, "; expected one of: %s", count == 0 ? "(there are none)" : "");
    for (size_t i = 0; i < count; i++)
        text_add(&message, "%s%s", i > 0 ? ", " : "", names[i]);
    error_set(error, ERROR_ARGUMENT, "%s", message.data);
    return ERROR_ARGUMENT;
}
