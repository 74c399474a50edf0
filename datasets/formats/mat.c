/* "MAT-File Format", The MathWorks: a header of 128 bytes, then elements of a tag (type, size) and data padded to 8
 * bytes. An element of up to 4 bytes lies in its tag. A variable is an element of type matrix, or one of type
 * compressed that unpacks to it. */
#include "datasets/formats/mat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/file.h"

enum { HEADER = 128, FILE_MOST = 1 << 26, UNPACKED_MOST = 1 << 26, ELEMENTS_MOST = 1 << 22, ZLIB_BEST_RATIO = 1032 };

enum element_type {
    TYPE_INT8 = 1,
    TYPE_UINT8,
    TYPE_INT16,
    TYPE_UINT16,
    TYPE_INT32,
    TYPE_UINT32,
    TYPE_SINGLE,
    TYPE_DOUBLE = 9,
    TYPE_INT64 = 12,
    TYPE_UINT64,
    TYPE_MATRIX,
    TYPE_COMPRESSED,
    TYPE_UTF8,
    TYPE_UTF16
};

enum array_class { CLASS_EMPTY, CLASS_CELL, CLASS_STRUCT, CLASS_CHAR = 4, CLASS_DOUBLE = 6, CLASS_UINT64 = 15 };

struct slice {
    const uint8_t *data;
    size_t size;
};

struct element {
    uint32_t type;
    struct slice data;
};

struct array {
    unsigned class;
    bool complex;
    size_t count; /* the product of its dimensions */
    struct slice name, body;
};

struct mat {
    const char *path;
    struct bytes file;
    uint8_t *unpacked; /* the variable that was looked up; NULL: it lies in the file */
};

static uint32_t read_uint32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Takes the next element from rest; false if it does not fit. */
static bool read_element(struct slice *rest, struct element *element)
{
    if (rest->size < 8)
        return false;
    uint32_t type = read_uint32(rest->data), size = read_uint32(rest->data + 4);
    size_t whole = 8;
    if (type >> 16 != 0) {
        size = type >> 16;
        *element = (struct element){type & 0xffff, {rest->data + 4, size}};
        if (size > 4)
            return false;
    } else {
        if (size > rest->size - 8)
            return false;
        *element = (struct element){type, {rest->data + 8, size}};
        whole += type == TYPE_COMPRESSED ? size : ((size_t)size + 7) / 8 * 8;
    }
    whole = whole < rest->size ? whole : rest->size; /* the last one may lack padding */
    rest->data += whole;
    rest->size -= whole;
    return true;
}

static bool count_elements(struct slice dimensions, size_t *count)
{
    *count = 1;
    for (size_t i = 0; i + 4 <= dimensions.size; i += 4) {
        uint32_t size = read_uint32(dimensions.data + i);
        if (size > ELEMENTS_MOST || *count * size > ELEMENTS_MOST)
            return false;
        *count *= size;
    }
    return dimensions.size >= 8 && dimensions.size % 4 == 0;
}

static bool read_array(struct slice matrix, struct array *array)
{
    struct element flags, dimensions, name;
    *array = (struct array){0};
    if (matrix.size == 0)
        return true; /* how an empty cell is stored */
    if (!read_element(&matrix, &flags) || flags.type != TYPE_UINT32 || flags.data.size != 8 ||
        !read_element(&matrix, &dimensions) || dimensions.type != TYPE_INT32 || !read_element(&matrix, &name) ||
        name.type != TYPE_INT8)
        return false;
    array->class = flags.data.data[0];
    array->complex = (flags.data.data[1] & 8) != 0;
    array->name = name.data;
    array->body = matrix;
    return count_elements(dimensions.data, &array->count);
}

/* --- numbers and strings ------------------------------------------------------------------------------------------ */

static size_t type_size(uint32_t type)
{
    static const uint8_t sizes[] = {
        [TYPE_INT8] = 1,   [TYPE_UINT8] = 1,  [TYPE_INT16] = 2,  [TYPE_UINT16] = 2, [TYPE_INT32] = 4,
        [TYPE_UINT32] = 4, [TYPE_SINGLE] = 4, [TYPE_DOUBLE] = 8, [TYPE_INT64] = 8,  [TYPE_UINT64] = 8};
    return type < sizeof sizes ? sizes[type] : 0;
}

static double read_value(const struct element *element, size_t i)
{
    size_t size = type_size(element->type);
    const uint8_t *bytes = element->data.data + i * size;
    uint64_t bits = 0;
    for (size_t b = 0; b < size; b++)
        bits |= (uint64_t)bytes[b] << (8 * b);
    switch (element->type) {
    case TYPE_INT8:
        return (int8_t)bits;
    case TYPE_INT16:
        return (int16_t)bits;
    case TYPE_INT32:
        return (int32_t)bits;
    case TYPE_INT64:
        return (double)(int64_t)bits;
    case TYPE_SINGLE: {
        uint32_t half = (uint32_t)bits;
        float single;
        memcpy(&single, &half, sizeof single);
        return (double)single;
    }
    case TYPE_DOUBLE: {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    default:
        return (double)bits;
    }
}

/* Reads `count` whole numbers of 32 bits from a numeric array; the storage type may be narrower than the class says. */
static bool read_integers(const struct array *array, size_t count, int32_t *numbers)
{
    struct slice rest = array->body;
    struct element element;
    if (array->class < CLASS_DOUBLE || array->class > CLASS_UINT64 || array->complex || array->count < count)
        return false;
    if (!read_element(&rest, &element) || type_size(element.type) == 0 ||
        element.data.size / type_size(element.type) < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        double value = read_value(&element, i);
        if (!(value >= INT32_MIN && value <= INT32_MAX) || value != (double)(int32_t)value)
            return false;
        numbers[i] = (int32_t)value;
    }
    return true;
}

/* A row of characters, appended as UTF-8; false when it is none. */
static bool add_string(const struct array *array, struct strings *strings)
{
    enum { LONGEST = 4096 };
    struct slice rest = array->body;
    struct element element;
    char text[3 * LONGEST];
    size_t size = 0;
    if (array->class != CLASS_CHAR || array->count > LONGEST || !read_element(&rest, &element))
        return false;
    bool wide = element.type == TYPE_UINT16 || element.type == TYPE_UTF16;
    size_t count = wide ? element.data.size / 2 : element.data.size;
    if (count > LONGEST || (!wide && type_size(element.type) != 1 && element.type != TYPE_UTF8))
        return false;
    for (size_t i = 0; i < count; i++) {
        unsigned unit =
            wide ? element.data.data[2 * i] | (unsigned)element.data.data[2 * i + 1] << 8 : element.data.data[i];
        if (unit == 0 || (wide && unit >= 0xd800 && unit <= 0xdfff))
            return false;
        if (wide)
            size += (size_t)utf8proc_encode_char((utf8proc_int32_t)unit, (utf8proc_uint8_t *)text + size);
        else
            text[size++] = (char)unit;
    }
    strings_add(strings, text, size);
    return true;
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

/* The matrix in a compressed element. That it is whole is what counts: files are found whose compressed data lack their end. */
static status inflate_element(struct mat *mat, struct slice packed, struct element *matrix, struct error *error)
{
    uLongf size = packed.size < UNPACKED_MOST / ZLIB_BEST_RATIO ? packed.size * ZLIB_BEST_RATIO : UNPACKED_MOST;
    mat->unpacked = xmalloc(size + 1);
    errno = 0;
    uncompress(mat->unpacked, &size, packed.data, packed.size);
    if (read_element(&(struct slice){mat->unpacked, size}, matrix) && matrix->type == TYPE_MATRIX)
        return OK;
    error_set(error, ERROR_FORMAT, "%s: a compressed variable is damaged, ends early or is larger than any dataset's",
              mat->path);
    return memory_blame(ERROR_FORMAT, mat->path, error);
}

/* array points into the file or into what was unpacked. */
static status find_variable(struct mat *mat, const char *name, struct array *array, struct error *error)
{
    struct slice rest = {mat->file.data + HEADER, mat->file.size - HEADER};
    while (rest.size > 0) {
        struct element element;
        size_t position = mat->file.size - rest.size;
        if (!read_element(&rest, &element))
            return error_set(error, ERROR_FORMAT, "%s: ends inside the variable at byte %zu", mat->path, position);
        if (element.type == TYPE_COMPRESSED)
            TRY(inflate_element(mat, element.data, &element, error));
        if (element.type != TYPE_MATRIX)
            continue;
        bool good = read_array(element.data, array);
        if (good && array->name.size == strlen(name) && memcmp(array->name.data, name, array->name.size) == 0)
            return OK;
        free(mat->unpacked);
        mat->unpacked = NULL;
        if (!good)
            return error_set(error, ERROR_FORMAT, "%s: the variable at byte %zu is damaged", mat->path, position);
    }
    return error_set(error, ERROR_FORMAT, "%s: expected a variable \"%s\", found none", mat->path, name);
}

/* Walks over the elements of a cell array, or one field of a struct array. */
struct walk {
    struct slice rest;
    size_t fields, wanted; /* of a cell array: 1 and 0 */
};

static bool walk_start(struct walk *walk, const struct array *array, const char *field)
{
    struct element length, names;
    *walk = (struct walk){array->body, 1, 0};
    if (field == NULL)
        return array->class == CLASS_CELL;
    if (array->class != CLASS_STRUCT || !read_element(&walk->rest, &length) || length.type != TYPE_INT32 ||
        length.data.size != 4 || !read_element(&walk->rest, &names) || names.type != TYPE_INT8)
        return false;
    size_t size = read_uint32(length.data.data);
    if (size == 0 || size > names.data.size)
        return false;
    walk->fields = names.data.size / size;
    while (walk->wanted < walk->fields) {
        const char *name = (const char *)names.data.data + walk->wanted * size;
        if (strnlen(name, size) == strlen(field) && memcmp(name, field, strlen(field)) == 0)
            return true;
        walk->wanted++;
    }
    return false;
}

static bool walk_next(struct walk *walk, struct array *array)
{
    bool good = true;
    for (size_t f = 0; good && f < walk->fields; f++) {
        struct element element;
        good = read_element(&walk->rest, &element) && element.type == TYPE_MATRIX;
        if (good && f == walk->wanted)
            good = read_array(element.data, array);
    }
    return good;
}

static status unexpected(const struct mat *mat, const char *variable, size_t i, const char *field, const char *what,
                         struct error *error)
{
    return error_set(error, ERROR_FORMAT, "%s: %s[%zu]%s%s: expected %s", mat->path, variable, i,
                     field != NULL ? "." : "", field != NULL ? field : "", what);
}

static status collect_numbers(const struct mat *mat, const char *variable, const char *field, const struct array *array,
                              struct mat_numbers *numbers, struct error *error)
{
    struct walk walk;
    numbers->values = xmalloc((array->count + 1) * sizeof *numbers->values);
    numbers->count = array->count;
    if (field == NULL)
        return read_integers(array, array->count, numbers->values)
                   ? OK
                   : error_set(error, ERROR_FORMAT, "%s: %s: expected %zu whole numbers", mat->path, variable,
                               array->count);
    if (!walk_start(&walk, array, field))
        return error_set(error, ERROR_FORMAT, "%s: %s: expected structs with a field \"%s\"", mat->path, variable,
                         field);
    for (size_t i = 0; i < array->count; i++) {
        struct array element;
        if (!walk_next(&walk, &element) || !read_integers(&element, 1, &numbers->values[i]))
            return unexpected(mat, variable, i, field, "a whole number", error);
    }
    return OK;
}

static status collect_strings(const struct mat *mat, const char *variable, const char *field, const struct array *array,
                              struct strings *strings, struct error *error)
{
    struct walk walk;
    if (!walk_start(&walk, array, field))
        return error_set(error, ERROR_FORMAT, "%s: %s: expected %s%s%s", mat->path, variable,
                         field != NULL ? "structs with a field \"" : "a cell array of strings",
                         field != NULL ? field : "", field != NULL ? "\"" : "");
    for (size_t i = 0; i < array->count; i++) {
        struct array element;
        if (!walk_next(&walk, &element) || !add_string(&element, strings))
            return unexpected(mat, variable, i, field, "a string", error);
    }
    return OK;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static status check_header(const struct mat *mat, struct error *error)
{
    const struct bytes *file = &mat->file;
    bool hdf5 = file->size >= 8 && memcmp(file->data, "\x89HDF\r\n\x1a\n", 8) == 0;
    if (hdf5 || (file->size >= 10 && memcmp(file->data, "MATLAB 7.3", 10) == 0))
        return error_set(error, ERROR_FORMAT, "%s: MATLAB 7.3 (HDF5) is not supported; save it with -v7", mat->path);
    if (file->size < HEADER || memcmp(file->data + 124, "\x00\x01IM", 4) != 0)
        return error_set(error, ERROR_FORMAT, "%s: expected a little-endian MATLAB 5 file, found another header",
                         mat->path);
    return OK;
}

static void close_file(struct mat *mat)
{
    bytes_free(&mat->file);
    free(mat->unpacked);
}

static status open_variable(struct mat *mat, const char *path, const char *variable, struct array *array,
                            struct error *error)
{
    *mat = (struct mat){.path = path};
    TRY(file_read(path, FILE_MOST, &mat->file, error));
    TRY(check_header(mat, error));
    return find_variable(mat, variable, array, error);
}

status mat_read_numbers(const char *path, const char *variable, const char *field, struct mat_numbers *numbers,
                        struct error *error)
{
    SCOPED(close_file) struct mat mat = {0};
    struct array array;
    *numbers = (struct mat_numbers){0};
    TRY(open_variable(&mat, path, variable, &array, error));
    status result = collect_numbers(&mat, variable, field, &array, numbers, error);
    if (result != OK)
        mat_numbers_free(numbers);
    return result;
}

status mat_read_strings(const char *path, const char *variable, const char *field, struct strings *strings,
                        struct error *error)
{
    SCOPED(close_file) struct mat mat = {0};
    struct array array;
    TRY(open_variable(&mat, path, variable, &array, error));
    return collect_strings(&mat, variable, field, &array, strings, error);
}

void mat_numbers_free(struct mat_numbers *numbers)
{
    free(numbers->values);
    *numbers = (struct mat_numbers){0};
}
