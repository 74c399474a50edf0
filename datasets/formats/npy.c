#include "datasets/formats/npy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"

static const char magic[] = "\x93NUMPY";

enum { PREFIX = 8 /* magic and version */, BYTES = 8 };

struct header {
    const char *text; /* a Python dictionary, NUL-terminated */
    size_t begin;     /* of the values */
};

static status wrong(const char *path, const char *expected, struct error *error)
{
    return error_set(error, ERROR_FORMAT, "%s: expected a .npy file with one row of whole numbers; %s", path, expected);
}

static status read_header(struct bytes *bytes, const char *path, struct header *header, struct error *error)
{
    uint8_t *data = bytes->data;
    if (bytes->size < PREFIX + 4 || memcmp(data, magic, sizeof magic - 1) != 0)
        return wrong(path, "it does not begin as one", error);
    size_t wide = data[6] == 1 ? 2 : 4, length = 0;
    for (size_t i = wide; i-- > 0;)
        length = length << 8 | data[PREFIX + i];
    header->begin = PREFIX + wide + length;
    if (data[6] < 1 || data[6] > 3 || length == 0 || header->begin > bytes->size)
        return wrong(path, "its header is cut or of an unknown version", error);
    data[header->begin - 1] = 0; /* its newline */
    header->text = (const char *)data + PREFIX + wide;
    return OK;
}

/* Behind "'key': " and blanks; NULL: there is no such key. */
static const char *value_of(const struct header *header, const char *key)
{
    const char *at = strstr(header->text, key);
    return at != NULL ? at + strlen(key) + strspn(at + strlen(key), ": ") : NULL;
}

static int64_t number_at(const uint8_t *at, size_t wide, bool is_signed)
{
    uint64_t bits = 0;
    for (size_t i = wide; i-- > 0;)
        bits = bits << 8 | at[i];
    bool negative = is_signed && wide < BYTES && bits >> (8 * wide - 1) & 1;
    return (int64_t)(negative ? bits | ~(uint64_t)0 << 8 * wide : bits);
}

/* The type's kind and bytes, of "'<i4'" or "'|u1'"; false: another type. */
static bool read_type(const char *type, bool *is_signed, size_t *wide)
{
    if (type == NULL || *type != '\'' || strchr("<|=", type[1]) == NULL || type[1] == 0 || type[2] == 0 ||
        strchr("iu", type[2]) == NULL || strchr("1248", type[3]) == NULL || type[3] == 0 || type[4] != '\'')
        return false;
    *is_signed = type[2] == 'i';
    *wide = (size_t)(type[3] - '0');
    return true;
}

/* The length of "(7,)"; false: another shape. */
static bool read_shape(const char *shape, size_t *count)
{
    char *end;
    if (shape == NULL || *shape != '(' || shape[1] < '0' || shape[1] > '9')
        return false;
    errno = 0;
    *count = strtoull(shape + 1, &end, 10);
    return errno == 0 && strncmp(end, ",)", 2) == 0;
}

static status read_values(const struct bytes *bytes, const char *path, const struct header *header, int64_t **values,
                          size_t *count, struct error *error)
{
    size_t wide, size = bytes->size - header->begin;
    bool is_signed;
    if (!read_type(value_of(header, "'descr'"), &is_signed, &wide))
        return wrong(path, "its numbers are of another type", error);
    if (!read_shape(value_of(header, "'shape'"), count) || *count != size / wide || *count * wide != size)
        return wrong(path, "its shape is another one, or the file is cut", error);
    *values = xmalloc(array_size(*count + 1, sizeof **values));
    for (size_t i = 0; i < *count; i++)
        (*values)[i] = number_at(bytes->data + header->begin + i * wide, wide, is_signed);
    return OK;
}

status npy_read_integers(const char *path, int64_t **values, size_t *count, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    struct header header;
    TRY(file_read(path, FILE_LIMIT, &bytes, error));
    TRY(read_header(&bytes, path, &header, error));
    return read_values(&bytes, path, &header, values, count, error);
}
