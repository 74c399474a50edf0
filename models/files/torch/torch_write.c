#include "models/files/torch/torch_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zip.h>

#include "core/file.h"
#include "core/text.h"
#include "models/files/torch/tensors.h"

enum { YEAR_1980 = 315532800 }; /* time of every entry, in seconds since 1970: the earliest that zip can store */

/* ---- the pickle ---- */

static void put(struct text *text, const char *opcodes)
{
    text_add_bytes(text, opcodes, strlen(opcodes));
}

static void put_number(struct text *text, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        char byte = (char)(number >> (8 * i) & 0xff);
        text_add_bytes(text, &byte, 1);
    }
}

static void put_integer(struct text *text, size_t integer)
{
    if (integer <= INT32_MAX) {
        put(text, "J");
        put_number(text, integer, 4);
    } else {
        put(text, "\x8a\x08");
        put_number(text, integer, 8);
    }
}

static void put_string(struct text *text, const char *string)
{
    put(text, "X");
    put_number(text, strlen(string), 4);
    put(text, string);
}

static void put_tensor(struct text *text, const struct safetensor *tensor, const char *storage, size_t key)
{
    char digits[24];
    size_t strides[SAFETENSORS_RANK + 1];
    strides[tensor->rank] = 1;
    for (int i = tensor->rank - 1; i >= 0; i--)
        strides[i] = strides[i + 1] * (tensor->shape[i] > 0 ? tensor->shape[i] : 1);
    snprintf(digits, sizeof digits, "%zu", key);
    put(text, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_string(text, "storage");
    text_add(text, "ctorch\n%s\n", storage);
    put_string(text, digits);
    put_string(text, "cpu");
    put_integer(text, safetensor_elements(tensor));
    put(text, "tQ");
    put_integer(text, 0);
    put(text, "(");
    for (int i = 0; i < tensor->rank; i++)
        put_integer(text, tensor->shape[i]);
    put(text, "t(");
    for (int i = 0; i < tensor->rank; i++)
        put_integer(text, strides[i + 1]);
    put(text, "t\x89"
              "ccollections\nOrderedDict\n)RtR");
}

static status put_all(struct text *text, const char *path, const struct safetensor *tensors, size_t count,
                      const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error)
{
    put(text, "\x80\x02}(");
    put_string(text, "state_dict");
    put(text, "ccollections\nOrderedDict\n)R(");
    for (size_t i = 0; i < count; i++) {
        const char *storage = torch_storage_name(tensors[i].type);
        if (storage == NULL)
            return error_set(error, ERROR_ARGUMENT, "%s: tensor '%s': PyTorch has no type %s", path, tensors[i].name,
                             safetensor_type_name(tensors[i].type));
        put_string(text, tensors[i].name);
        put_tensor(text, &tensors[i], storage, i);
    }
    put(text, "u");
    put_string(text, TORCH_METADATA);
    put(text, "}(");
    for (size_t i = 0; i < metadata_count; i++) {
        put_string(text, metadata[i].key);
        put_string(text, metadata[i].value);
    }
    put(text, "uu.");
    return OK;
}

/* ---- the archive ---- */

/* data is borrowed until the archive is closed. */
static bool add_entry(zip_t *zip, const char *name, const void *data, size_t size)
{
    zip_source_t *source = zip_source_buffer(zip, size > 0 ? data : "", size, 0);
    zip_int64_t at = source != NULL ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (at < 0) {
        zip_source_free(source);
        return false;
    }
    return zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_mtime(zip, (zip_uint64_t)at, YEAR_1980, 0) == 0;
}

static bool add_entries(zip_t *zip, const struct text *pickle, const struct safetensor *tensors, size_t count)
{
    bool added = add_entry(zip, "archive/data.pkl", pickle->data, pickle->size) &&
                 add_entry(zip, "archive/byteorder", "little", 6);
    for (size_t i = 0; added && i < count; i++) {
        char name[48];
        snprintf(name, sizeof name, "archive/data/%zu", i);
        added = add_entry(zip, name, tensors[i].data,
                          safetensor_elements(&tensors[i]) * safetensor_type_size(tensors[i].type));
    }
    return added && add_entry(zip, "archive/version", "3\n", 2);
}

static status write_archive(const char *path, const struct text *pickle, const struct safetensor *tensors, size_t count,
                            struct error *error)
{
    int code;
    zip_error_t problem;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (zip == NULL) {
        zip_error_init_with_code(&problem, code);
        error_set(error, ERROR_IO, "%s: cannot be written: %s", path, zip_error_strerror(&problem));
        zip_error_fini(&problem);
        return ERROR_IO;
    }
    if (add_entries(zip, pickle, tensors, count) && zip_close(zip) == 0)
        return OK;
    error_set(error, ERROR_IO, "%s: cannot be written: %s", path, zip_strerror(zip));
    zip_discard(zip);
    return ERROR_IO;
}

static status sync_file(const char *path, struct error *error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    status result = file >= 0 && fsync(file) == 0 ? OK : error_errno(error, errno, "%s: cannot be written", path);
    if (file >= 0)
        close(file);
    return result;
}

/* libzip writes beside its target and renames. Its target here is a temporary file, so that leftovers are recognised. */
static status write_beside(const char *path, const struct text *pickle, const struct safetensor *tensors, size_t count,
                           struct error *error)
{
    struct temporary temporary;
    TRY(temporary_create_file(&temporary, path, error));
    status result = write_archive(temporary.path, pickle, tensors, count, error);
    NEXT(result, sync_file(temporary.path, error));
    if (result == OK && rename(temporary.path, path) != 0)
        result = error_errno(error, errno, "%s: cannot be written", path);
    if (result == OK) {
        file_sync_name(path);
        temporary_release(&temporary);
    } else {
        temporary_remove(&temporary);
    }
    return result;
}

status torch_write(const char *path, const struct safetensor *tensors, size_t count,
                   const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error)
{
    struct text pickle = {0};
    status result = file_exists(path) ? file_check_kind(path, error) : OK;
    NEXT(result, put_all(&pickle, path, tensors, count, metadata, metadata_count, error));
    NEXT(result, write_beside(path, &pickle, tensors, count, error));
    text_free(&pickle);
    return result;
}
