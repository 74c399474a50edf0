#include "tests/replay/pyjson.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

static bool is_unusual(const char *word, size_t length)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    enum { DIGITS_MOST = 18 };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length == strlen(words[i]) && strncmp(word, words[i], length) == 0)
            return true;
    return length > DIGITS_MOST && strspn(word, "0123456789") == length;
}

static void add_quoted(struct text *plain, const char *json)
{
    static const char characters[] = "+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    bool inside = false; /* a string */
    for (const char *at = json; *at != 0;) {
        size_t length = inside ? 0 : strspn(at, characters);
        bool quoted = is_unusual(at, length);
        inside ^= *at == '"';
        if (length == 0)
            length = inside && *at == '\\' && at[1] != 0 ? 2 : 1;
        text_add(plain, quoted ? "\"" : "");
        text_add_bytes(plain, at, length);
        text_add(plain, quoted ? "\"" : "");
        at += length;
    }
}

status pyjson_read(json_t **json, const char *path, struct error *error)
{
    struct bytes bytes;
    struct text plain = {0};
    json_error_t wrong;
    TRY(file_read(path, FILE_LIMIT, &bytes, error));
    add_quoted(&plain, (const char *)bytes.data);
    *json = json_loads(plain.data != NULL ? plain.data : "", 0, &wrong);
    bytes_free(&bytes);
    text_free(&plain);
    return *json != NULL ? OK : error_set(error, ERROR_FORMAT, "%s:%d: %s", path, wrong.line, wrong.text);
}

double pyjson_number(const json_t *value)
{
    const char *word = json_string_value(value);
    return word != NULL ? strtod(word, NULL) : json_is_number(value) ? json_number_value(value) : (double)NAN;
}

json_int_t pyjson_integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *pyjson_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}
