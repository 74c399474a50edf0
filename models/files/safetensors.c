#include "models/files/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "core/alloc.h"
#include "core/file.h"
#include "models/tensor.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian and its data is used in place");

enum { LENGTH_BYTES = 8, HEADER_LIMIT = 100000000, COPY_ALIGNMENT = 64 };

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [SAFETENSOR_BOOL] = {"BOOL", 1}, [SAFETENSOR_U8] = {"U8", 1},   [SAFETENSOR_I8] = {"I8", 1},
    [SAFETENSOR_U16] = {"U16", 2},   [SAFETENSOR_I16] = {"I16", 2}, [SAFETENSOR_F16] = {"F16", 2},
    [SAFETENSOR_BF16] = {"BF16", 2}, [SAFETENSOR_U32] = {"U32", 4}, [SAFETENSOR_I32] = {"I32", 4},
    [SAFETENSOR_F32] = {"F32", 4},   [SAFETENSOR_U64] = {"U64", 8}, [SAFETENSOR_I64] = {"I64", 8},
    [SAFETENSOR_F64] = {"F64", 8},
};
enum { TYPES = sizeof types / sizeof *types };

/* A tensor's bytes, [begin, end) from the start of the data, beside its description. */
struct entry {
    struct safetensor tensor;
    size_t begin, end;
};

struct safetensors {
    char *path;
    struct bytes bytes; /* empty when they are borrowed */
    json_t *header;     /* owns the names and the metadata */
    size_t count;
    struct safetensor *tensors; /* sorted by name */
    char *names;                /* shortened ones; NULL: as in the file */
    uint8_t *copies;            /* copies of tensors that are not aligned for their type in the file */
    void *owner;                /* of names and data that were adopted */
    void (*release)(void *owner);
};

size_t safetensor_type_size(enum safetensor_type type)
{
    return types[type].size;
}

const char *safetensor_type_name(enum safetensor_type type)
{
    return types[type].name;
}

size_t safetensor_elements(const struct safetensor *tensor)
{
    size_t elements = 1;
    for (int i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    return elements;
}

struct shape_text shape_text(int rank, const size_t *shape)
{
    struct shape_text result = {"["};
    size_t used = 1;
    for (int i = 0; i < rank && i < SAFETENSORS_RANK; i++)
        used += (size_t)snprintf(result.text + used, sizeof result.text - used, i == 0 ? "%zu" : ", %zu", shape[i]);
    snprintf(result.text + used, sizeof result.text - used, "]");
    return result;
}

/* ---- one tensor's entry in the header ---- */

static status parse_type(const char *path, const char *name, const json_t *value, enum safetensor_type *type,
                         struct error *error)
{
    const char *text = json_string_value(value);
    for (int i = 0; text != NULL && i < TYPES; i++) {
        if (strcmp(types[i].name, text) == 0) {
            *type = (enum safetensor_type)i;
            return OK;
        }
    }
    return error_set(error, ERROR_FORMAT,
                     "%s: tensor '%s': expected a dtype of BOOL, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64 "
                     "or F64, found %s",
                     path, name, text != NULL ? text : "none");
}

/* A size or an offset: an integer that is not negative. */
static bool parse_size(const json_t *value, size_t *size)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *size = (size_t)json_integer_value(value);
    return true;
}

static status parse_shape(const char *path, const char *name, const json_t *value, struct safetensor *tensor,
                          size_t *bytes, struct error *error)
{
    if (!json_is_array(value) || json_array_size(value) > SAFETENSORS_RANK)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected a shape of at most %d sizes, found %zu", path,
                         name, SAFETENSORS_RANK, json_array_size(value));
    tensor->rank = (int)json_array_size(value);
    *bytes = types[tensor->type].size;
    bool overflow = false;
    for (int i = 0; i < tensor->rank; i++) {
        if (!parse_size(json_array_get(value, (size_t)i), &tensor->shape[i]))
            return error_set(error, ERROR_FORMAT,
                             "%s: tensor '%s': expected a shape of integers that are not negative, found something "
                             "else at position %d",
                             path, name, i);
        overflow |= __builtin_mul_overflow(*bytes, tensor->shape[i], bytes);
    }
    if (overflow)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': shape %s has more bytes than can be addressed", path,
                         name, shape_text(tensor->rank, tensor->shape).text);
    return OK;
}

static status parse_entry(const char *path, const char *name, const json_t *value, struct entry *entry,
                          struct error *error)
{
    struct safetensor *tensor = &entry->tensor;
    const json_t *offsets = json_object_get(value, "data_offsets");
    size_t bytes;
    tensor->name = name;
    TRY(parse_type(path, name, json_object_get(value, "dtype"), &tensor->type, error));
    TRY(parse_shape(path, name, json_object_get(value, "shape"), tensor, &bytes, error));
    if (json_array_size(offsets) != 2 || !parse_size(json_array_get(offsets, 0), &entry->begin) ||
        !parse_size(json_array_get(offsets, 1), &entry->end) || entry->begin > entry->end)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected data_offsets [begin, end] with begin <= end",
                         path, name);
    if (entry->end - entry->begin != bytes)
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor '%s': %s of shape %s takes %zu bytes, data_offsets [%zu, %zu] hold %zu", path,
                         name, types[tensor->type].name, shape_text(tensor->rank, tensor->shape).text, bytes,
                         entry->begin, entry->end, entry->end - entry->begin);
    return OK;
}

static status check_metadata(const char *path, json_t *metadata, struct error *error)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return error_set(error, ERROR_FORMAT, "%s: expected __metadata__ to be an object of strings", path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return error_set(error, ERROR_FORMAT, "%s: metadata '%s': expected a string, found another type", path,
                             key);
    }
    return OK;
}

/* ---- all tensors ---- */

static int compare_offsets(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct safetensor *)a)->name, ((const struct safetensor *)b)->name);
}

/* The format demands that the tensors cover the data without a gap or an overlap. entries are sorted by offset. */
static status check_coverage(const char *path, const struct entry *entries, size_t count, size_t data_size,
                             struct error *error)
{
    size_t expected = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].end > data_size)
            return error_set(error, ERROR_FORMAT,
                             "%s: tensor '%s' ends at byte %zu of the data, but the file holds %zu; it is cut off or "
                             "damaged, fetch it again",
                             path, entries[i].tensor.name, entries[i].end, data_size);
        if (entries[i].begin != expected)
            return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected its data to begin at %zu, found %zu (%s)",
                             path, entries[i].tensor.name, expected, entries[i].begin,
                             entries[i].begin < expected ? "an overlap" : "a gap");
        expected = entries[i].end;
    }
    if (expected != data_size)
        return error_set(error, ERROR_FORMAT, "%s: the tensors end at byte %zu of the data, but the file holds %zu",
                         path, expected, data_size);
    return OK;
}

static bool is_aligned(const uint8_t *data, const struct entry *entry)
{
    return (uintptr_t)(data + entry->begin) % types[entry->tensor.type].size == 0;
}

static size_t padded(size_t size)
{
    return (size + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
}

/* Points every tensor at its bytes: in the file where they are aligned for the type, else in a copy. */
static status place_data(struct safetensors *file, const uint8_t *data, struct entry *entries, struct error *error)
{
    size_t copied = 0, used = 0;
    for (size_t i = 0; i < file->count; i++)
        if (!is_aligned(data, &entries[i]))
            copied += padded(entries[i].end - entries[i].begin);
    if (copied > 0 && (file->copies = aligned_alloc(COPY_ALIGNMENT, copied)) == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to align %zu bytes of tensors", file->path, copied);
    for (size_t i = 0; i < file->count; i++) {
        struct entry *entry = &entries[i];
        size_t size = entry->end - entry->begin;
        entry->tensor.data = data + entry->begin;
        if (!is_aligned(data, entry)) {
            entry->tensor.data = file->copies + used;
            if (size > 0)
                memcpy(file->copies + used, data + entry->begin, size);
            used += padded(size);
        }
        file->tensors[i] = entry->tensor;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_names);
    return OK;
}

static status read_entries(struct safetensors *file, struct entry *entries, const uint8_t *data, size_t data_size,
                           struct error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach(file->header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            TRY(check_metadata(file->path, value, error));
        else
            TRY(parse_entry(file->path, name, value, &entries[file->count++], error));
    }
    qsort(entries, file->count, sizeof *entries, compare_offsets);
    TRY(check_coverage(file->path, entries, file->count, data_size, error));
    if (data != NULL)
        return place_data(file, data, entries, error);
    for (size_t i = 0; i < file->count; i++)
        file->tensors[i] = entries[i].tensor;
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_names);
    return OK;
}

static status read_header(struct safetensors *file, const uint8_t *bytes, size_t size, size_t *length,
                          struct error *error)
{
    uint64_t stated;
    if (size < LENGTH_BYTES)
        return error_set(error, ERROR_FORMAT, "%s: expected a safetensors file, found only %zu bytes", file->path,
                         size);
    memcpy(&stated, bytes, sizeof stated);
    if (stated > HEADER_LIMIT || stated > size - LENGTH_BYTES)
        return error_set(error, ERROR_FORMAT,
                         "%s: states a header of %" PRIu64
                         " bytes, but the file has %zu and at most %d are allowed; it is "
                         "no safetensors file or was cut off",
                         file->path, stated, size, HEADER_LIMIT);
    json_error_t problem;
    errno = 0;
    file->header = json_loadb((const char *)bytes + LENGTH_BYTES, (size_t)stated, JSON_REJECT_DUPLICATES, &problem);
    if (file->header == NULL) {
        error_set(error, ERROR_FORMAT, "%s: byte %zu: expected a JSON header in UTF-8: %s", file->path,
                  LENGTH_BYTES + (size_t)problem.position, problem.text);
        return memory_blame(ERROR_FORMAT, file->path, error);
    }
    if (!json_is_object(file->header))
        return error_set(error, ERROR_FORMAT, "%s: expected its header to be a JSON object", file->path);
    *length = (size_t)stated;
    return OK;
}

static status verify(const struct safetensors *file, struct error *error)
{
    const char *stated = safetensors_metadata_value(file, SAFETENSORS_DIGEST);
    if (stated == NULL)
        return OK;
    struct safetensors_digest digest =
        safetensors_digest(json_object_get(file->header, "__metadata__"), file->tensors, file->count);
    if (strcmp(stated, digest.text) == 0)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: expected the digest %s that the metadata states, found %s; the file was damaged or edited after it was "
        "written; fetch or write it again",
        file->path, stated, digest.text);
}

/* The file's bytes are the part of a file of that size. */
static status parse(struct safetensors *file, size_t size, enum weights_part part, struct error *error)
{
    const uint8_t *bytes = file->bytes.data;
    bool whole = part == WEIGHTS_WHOLE;
    size_t length;
    TRY(read_header(file, bytes, size, &length, error));
    size_t most = json_object_size(file->header) + 1, start = LENGTH_BYTES + length;
    OWNED struct entry *entries = xcalloc(most, sizeof *entries);
    file->tensors = xcalloc(most, sizeof *file->tensors);
    TRY(read_entries(file, entries, whole ? bytes + start : NULL, size - start, error));
    return whole ? verify(file, error) : OK;
}

static status read_beginning(struct safetensors *file, int descriptor, uint64_t size, struct error *error)
{
    uint64_t length = 0;
    if (size >= LENGTH_BYTES)
        TRY(file_read_at(descriptor, file->path, &length, sizeof length, 0, error));
    if (length > HEADER_LIMIT || length + LENGTH_BYTES > size) /* parse says what is wrong */
        length = 0;
    file->bytes.size = size < LENGTH_BYTES ? (size_t)size : LENGTH_BYTES + (size_t)length;
    file->bytes.data = xmalloc(file->bytes.size + 1);
    return file_read_at(descriptor, file->path, file->bytes.data, file->bytes.size, 0, error);
}

/* size: of the file */
static status read_part(struct safetensors *file, enum weights_part part, uint64_t *size, struct error *error)
{
    int descriptor;
    if (part == WEIGHTS_WHOLE) {
        TRY(file_read(file->path, SIZE_MAX, &file->bytes, error));
        *size = file->bytes.size;
        return OK;
    }
    TRY(file_open(file->path, &descriptor, size, error));
    status result = read_beginning(file, descriptor, *size, error);
    close(descriptor);
    return result;
}

static struct safetensors *create(const char *path)
{
    struct safetensors *file = xcalloc(1, sizeof *file);
    file->path = xstrdup(path);
    return file;
}

status safetensors_open(struct safetensors **file, const char *path, enum weights_part part, struct error *error)
{
    SCOPED(safetensors_close_at) struct safetensors *opened = create(path);
    uint64_t size;
    *file = NULL;
    TRY(read_part(opened, part, &size, error));
    TRY(parse(opened, (size_t)size, part, error));
    *file = TAKE(opened);
    return OK;
}

static void fill_adopted(struct safetensors *file, const struct safetensor *tensors, size_t count,
                         const struct safetensors_metadata *metadata, size_t metadata_count)
{
    json_t *object = json_object();
    file->header = json_object();
    file->tensors = xcalloc(count + 1, sizeof *file->tensors);
    json_object_set_new(file->header, "__metadata__", object);
    for (size_t i = 0; i < metadata_count; i++)
        json_object_set_new(object, metadata[i].key, json_string(metadata[i].value));
    for (size_t i = 0; i < count; i++)
        file->tensors[i] = tensors[i];
    file->count = count;
    qsort(file->tensors, count, sizeof *file->tensors, compare_names);
}

void safetensors_adopt(struct safetensors **file, const char *path, const struct safetensor *tensors, size_t count,
                       const struct safetensors_metadata *metadata, size_t metadata_count, void *owner,
                       void (*release)(void *owner))
{
    *file = create(path);
    (*file)->owner = owner;
    (*file)->release = release;
    fill_adopted(*file, tensors, count, metadata, metadata_count);
}

void safetensors_close(struct safetensors *file)
{
    if (file == NULL)
        return;
    if (file->release != NULL)
        file->release(file->owner);
    json_decref(file->header);
    bytes_free(&file->bytes);
    free(file->tensors);
    free(file->names);
    free(file->copies);
    free(file->path);
    free(file);
}

/* ---- names that wrappers of a model lengthened ---- */

/* What PyTorch's compile, DataParallel, FSDP and activation checkpoints, Lightning and Fabric put before a module's name; the
 * last word is that of many trainers, and part of other names within. */
static const char *const wrappers[] = {
    "_orig_mod.", "module.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_forward_module.", "model."};
enum { WRAPPERS = sizeof wrappers / sizeof *wrappers };

static const char *skip_wrappers(const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(name, wrappers[i], strlen(wrappers[i])) == 0)
            return skip_wrappers(name + strlen(wrappers[i]), count);
    return name;
}

/* Returns the end of the short name, after its NUL. */
static char *shorten(char *to, const char *name)
{
    const char *from = skip_wrappers(name, WRAPPERS);
    while (*from != 0) {
        bool ends = *from == '.';
        *to++ = *from++;
        if (ends)
            from = skip_wrappers(from, WRAPPERS - 1);
    }
    *to = 0;
    return to + 1;
}

status safetensors_unwrap(struct safetensors *file, struct error *error)
{
    size_t size = 1;
    for (size_t i = 0; i < file->count; i++)
        size += strlen(file->tensors[i].name) + 1;
    char *next = file->names = xmalloc(size);
    for (size_t i = 0; i < file->count; i++) {
        char *name = next;
        next = shorten(name, file->tensors[i].name);
        file->tensors[i].name = name;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_names);
    for (size_t i = 1; i < file->count; i++)
        if (compare_names(&file->tensors[i - 1], &file->tensors[i]) == 0)
            return error_set(error, ERROR_FORMAT,
                             "%s: has tensor '%s' twice, with and without a wrapper's name (module., _orig_mod., "
                             "model.); save one model alone",
                             file->path, file->tensors[i].name);
    return OK;
}

/* ---- contents ---- */

size_t safetensors_count(const struct safetensors *file)
{
    return file->count;
}

const struct safetensor *safetensors_at(const struct safetensors *file, size_t index)
{
    return &file->tensors[index];
}

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name)
{
    struct safetensor key = {.name = name};
    return bsearch(&key, file->tensors, file->count, sizeof *file->tensors, compare_names);
}

const char *safetensors_metadata_value(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

const char *safetensors_metadata_key(const struct safetensors *file, size_t index)
{
    void *at = json_object_iter(json_object_get(file->header, "__metadata__"));
    while (at != NULL && index-- > 0)
        at = json_object_iter_next(json_object_get(file->header, "__metadata__"), at);
    return at != NULL ? json_object_iter_key(at) : NULL;
}

const char *safetensors_path(const struct safetensors *file)
{
    return file->path;
}

status safetensors_expect(const struct safetensors *file, const char *name, enum safetensor_type type, int rank,
                          const size_t *shape, const struct safetensor **tensor, struct error *error)
{
    const struct safetensor *found = safetensors_find(file, name);
    struct shape_text expected = shape_text(rank, shape);
    if (found == NULL)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is missing; expected %s %s", file->path, name,
                         types[type].name, expected.text);
    bool same = found->type == type && found->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = found->shape[i] == shape[i];
    if (!same)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected %s %s, found %s %s", file->path, name,
                         types[type].name, expected.text, types[found->type].name,
                         shape_text(found->rank, found->shape).text);
    *tensor = found;
    return OK;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16: subnormals are multiples of 2^-24, exponent 31 holds infinities and NaNs. */
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 0)
        return (sign != 0 ? -0x1p-24F : 0x1p-24F) * (float)fraction;
    return float_of_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

status safetensor_to_floats(const struct safetensor *tensor, float *values, struct error *error)
{
    size_t elements = safetensor_elements(tensor);
    switch (tensor->type) {
    case SAFETENSOR_F32:
        if (elements > 0)
            memcpy(values, tensor->data, elements * sizeof *values);
        return OK;
    case SAFETENSOR_F16:
        for (size_t i = 0; i < elements; i++)
            values[i] = float_of_half(((const uint16_t *)tensor->data)[i]);
        return OK;
    case SAFETENSOR_BF16:
        for (size_t i = 0; i < elements; i++)
            values[i] = float_of_bits((uint32_t)((const uint16_t *)tensor->data)[i] << 16);
        return OK;
    case SAFETENSOR_F64:
        for (size_t i = 0; i < elements; i++)
            values[i] = (float)((const double *)tensor->data)[i];
        return OK;
    default:
        return error_set(error, ERROR_FORMAT, "tensor '%s': expected F32, F16, BF16 or F64, found %s", tensor->name,
                         types[tensor->type].name);
    }
}

status safetensors_expect_finite(const struct safetensors *file, const char *name, const float *values, size_t n,
                                 struct error *error)
{
    size_t at = not_finite_at(values, n);
    return at == n ? OK
                   : error_set(error, ERROR_FORMAT,
                               "%s: tensor '%s': expected finite numbers, found %g at position %zu; the file is "
                               "damaged or comes from a training that diverged",
                               file->path, name, (double)values[at], at);
}
