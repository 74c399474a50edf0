#include "models/files/safetensors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/file_writer.h"
#include "core/json.h"

enum { LENGTH_BYTES = 8, DATA_ALIGNMENT = 64, HEADER_LIMIT = 100000000 };

/* The NUL is included, so that "ab", "c" differs from "a", "bc". */
static uint64_t add_string(uint64_t digest, const char *string)
{
    return digest_quick(string, strlen(string) + 1, digest);
}

static uint64_t digest_tensor(const struct safetensor *tensor)
{
    uint64_t digest = add_string(add_string(1, tensor->name), safetensor_type_name(tensor->type));
    for (int i = 0; i < tensor->rank; i++) {
        uint64_t size = tensor->shape[i];
        digest = digest_quick(&size, sizeof size, digest);
    }
    return digest_quick(tensor->data, safetensor_elements(tensor) * safetensor_type_size(tensor->type), digest);
}

/* Entries are summed up, because their order in a file means nothing. */
struct safetensors_digest safetensors_digest(const json_t *metadata, const struct safetensor *tensors, size_t count)
{
    struct safetensors_digest digest;
    uint64_t sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (strcmp(key, SAFETENSORS_DIGEST) != 0)
            sum += add_string(add_string(0, key), json_string_value(value));
    }
    for (size_t i = 0; i < count; i++)
        sum += digest_tensor(&tensors[i]);
    snprintf(digest.text, sizeof digest.text, "xxh3:%016" PRIx64, sum);
    return digest;
}

/* The tensor's size in bytes; false when it cannot be addressed. */
static bool tensor_bytes(const struct safetensor *tensor, size_t *bytes)
{
    *bytes = safetensor_type_size(tensor->type);
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(*bytes, tensor->shape[i], bytes))
            return false;
    return true;
}

static json_t *shape_array(const struct safetensor *tensor)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
    return shape;
}

static status add_tensor(json_t *header, const char *path, const struct safetensor *tensor, size_t *offset,
                         struct error *error)
{
    size_t bytes, end;
    if (tensor->rank < 0 || tensor->rank > SAFETENSORS_RANK)
        return error_set(error, ERROR_ARGUMENT, "%s: tensor '%s': expected a rank of at most %d, found %d", path,
                         tensor->name, SAFETENSORS_RANK, tensor->rank);
    if (!tensor_bytes(tensor, &bytes) || __builtin_add_overflow(*offset, bytes, &end))
        return error_set(error, ERROR_ARGUMENT, "%s: tensor '%s': shape %s has more bytes than can be addressed", path,
                         tensor->name, shape_text(tensor->rank, tensor->shape).text);
    if (json_object_get(header, tensor->name) != NULL || strcmp(tensor->name, "__metadata__") == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: tensor '%s': expected a unique name, but another tensor has it",
                         path, tensor->name);
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensor_type_name(tensor->type), "shape",
                              shape_array(tensor), "data_offsets", (json_int_t)*offset, (json_int_t)end);
    if (json_object_set_new(header, tensor->name, entry) != 0)
        return error_set(error, ERROR_ARGUMENT, "%s: tensor '%s': its name is not valid UTF-8", path, tensor->name);
    *offset = end;
    return OK;
}

static status add_metadata(json_t *header, const char *path, const struct safetensors_metadata *metadata, size_t count,
                           struct error *error)
{
    json_t *object = json_object();
    json_object_set_new(header, "__metadata__", object);
    for (size_t i = 0; i < count; i++)
        if (json_object_set_new(object, metadata[i].key, json_string(metadata[i].value)) != 0)
            return error_set(error, ERROR_ARGUMENT, "%s: metadata '%s': expected UTF-8 text", path, metadata[i].key);
    return OK;
}

static void add_digest(json_t *header, const struct safetensor *tensors, size_t count)
{
    json_t *metadata = json_object_get(header, "__metadata__");
    struct safetensors_digest digest = safetensors_digest(metadata, tensors, count);
    json_object_set_new(metadata, SAFETENSORS_DIGEST, json_string(digest.text));
}

/* The header as text; the caller frees. */
static status build_header(char **text, const char *path, const struct safetensor *tensors, size_t count,
                           const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error)
{
    SCOPED(json_decref_at) json_t *header = json_object();
    size_t offset = 0;
    TRY(add_metadata(header, path, metadata, metadata_count, error));
    for (size_t i = 0; i < count; i++)
        TRY(add_tensor(header, path, &tensors[i], &offset, error));
    add_digest(header, tensors, count);
    *text = json_dumps(header, JSON_COMPACT);
    return OK;
}

static status write_header(struct file_writer *writer, const char *text, struct error *error)
{
    static const char spaces[DATA_ALIGNMENT] = "                                                               ";
    size_t length = strlen(text);
    size_t padding = DATA_ALIGNMENT - 1 - (LENGTH_BYTES + length + DATA_ALIGNMENT - 1) % DATA_ALIGNMENT;
    uint64_t stated = length + padding;
    TRY(file_writer_write(writer, &stated, sizeof stated, error));
    TRY(file_writer_write(writer, text, length, error));
    return file_writer_write(writer, spaces, padding, error);
}

static status write_file(const char *path, const char *header, const struct safetensor *tensors, size_t count,
                         struct error *error)
{
    struct file_writer writer;
    TRY(file_writer_open(&writer, path, error));
    TRY(write_header(&writer, header, error));
    for (size_t i = 0; i < count; i++) {
        size_t bytes = safetensor_elements(&tensors[i]) * safetensor_type_size(tensors[i].type);
        TRY(file_writer_write(&writer, tensors[i].data, bytes, error));
    }
    return file_writer_close(&writer, error);
}

status safetensors_write(const char *path, const struct safetensor *tensors, size_t count,
                         const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error)
{
    OWNED char *header = NULL;
    TRY(build_header(&header, path, tensors, count, metadata, metadata_count, error));
    if (strlen(header) >= HEADER_LIMIT - DATA_ALIGNMENT)
        return error_set(error, ERROR_ARGUMENT, "%s: its header would have %zu bytes, the format allows %d", path,
                         strlen(header), HEADER_LIMIT);
    return write_file(path, header, tensors, count, error);
}
