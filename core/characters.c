#include "core/characters.h"

#include <string.h>
#include <utf8proc.h>

static bool must_be_escaped(utf8proc_int32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
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

bool text_is_visible(const char *string)
{
    while (*string != 0) {
        utf8proc_int32_t code;
        size_t size = next_character(string, &code);
        if (must_be_escaped(code))
            return false;
        string += size;
    }
    return true;
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

const char *text_find_invalid(const char *string)
{
    while (*string != 0) {
        utf8proc_int32_t code;
        size_t size = next_character(string, &code);
        if (code < 0)
            return string;
        string += size;
    }
    return NULL;
}

void text_skip_mark(const char **text, size_t *size)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (*size >= 3 && memcmp(*text, mark, 3) == 0) {
        *text += 3;
        *size -= 3;
    }
}
