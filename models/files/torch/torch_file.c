#include "models/files/torch/torch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zip.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/text.h"
#include "models/files/torch/archive.h"
#include "models/files/torch/tensors.h"

/* Copies of tensors that are not contiguous may take this many times the bytes of the file. */
enum { COPIES_MOST = 4 };

/* Memory that the tensors of an open file point to. */
struct content {
    struct torch_tensors tensors;
    struct bytes *storages; /* by storage */
    void **copies;          /* by tensor; NULL: it lies in its storage */
};

static void release(void *owner)
{
    struct content *content = owner;
    for (size_t i = 0; content->storages != NULL && i < content->tensors.storage_count; i++)
        bytes_free(&content->storages[i]);
    for (size_t i = 0; content->copies != NULL && i < content->tensors.count; i++)
        free(content->copies[i]);
    free(content->storages);
    free(content->copies);
    torch_tensors_free(&content->tensors);
    free(content);
}

/* ---- values ---- */

static status read_storage(struct torch_archive *archive, const struct torch_storage *storage, struct bytes *bytes,
                           struct error *error)
{
    char *name = path_format("data/%s", storage->key);
    status result = torch_archive_read(archive, name, bytes, error);
    size_t each = safetensor_type_size(storage->type);
    if (result == OK && (bytes->size % each != 0 || bytes->size / each != storage->elements))
        result = error_set(error, ERROR_FORMAT, "%s: entry '%s': expected %zu numbers of type %s, found %zu bytes",
                           torch_archive_path(archive), name, storage->elements, safetensor_type_name(storage->type),
                           bytes->size);
    free(name);
    return result;
}

/* Copies rows of the last axis; index counts the rows. */
static void gather(const struct torch_tensor *t, size_t each, const uint8_t *source, uint8_t *target)
{
    size_t index[SAFETENSORS_RANK] = {0}, columns = t->rank > 0 ? t->shape[t->rank - 1] : 1,
           step = t->rank > 0 ? t->stride[t->rank - 1] : 1, rows = torch_tensor_elements(t) / columns;
    for (size_t row = 0; row < rows; row++) {
        size_t at = t->offset;
        for (int r = 0; r < t->rank - 1; r++)
            at += index[r] * t->stride[r];
        for (size_t c = 0; c < columns; c++, target += each)
            memcpy(target, source + (at + c * step) * each, each);
        for (int r = t->rank - 2; r >= 0 && ++index[r] == t->shape[r]; r--)
            index[r] = 0;
    }
}

static status place(struct torch_archive *archive, struct content *content, size_t i, uint64_t *copied,
                    struct safetensor *tensor, struct error *error)
{
    const struct torch_tensor *t = &content->tensors.list[i];
    const uint8_t *data = content->storages[t->storage].data;
    size_t each = safetensor_type_size(tensor->type), size = torch_tensor_elements(t) * each;
    tensor->data = data;
    if (t->contiguous) {
        if (size > 0)
            tensor->data = data + t->offset * each;
        return OK;
    }
    *copied += size;
    if (*copied > COPIES_MOST * torch_archive_bytes(archive))
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor '%s': its tensors that are not contiguous take more than %d times the file",
                         torch_archive_path(archive), t->name, COPIES_MOST);
    content->copies[i] = malloc(size);
    if (content->copies[i] == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for the %zu bytes of tensor '%s'",
                         torch_archive_path(archive), size, t->name);
    gather(t, each, data, content->copies[i]);
    tensor->data = content->copies[i];
    return OK;
}

static status read_values(struct torch_archive *archive, struct content *content, struct safetensor *list,
                          struct error *error)
{
    const struct torch_tensors *tensors = &content->tensors;
    uint64_t copied = 0;
    content->storages = xcalloc(tensors->storage_count, sizeof *content->storages);
    content->copies = xcalloc(tensors->count, sizeof *content->copies);
    for (size_t i = 0; i < tensors->storage_count; i++)
        TRY(read_storage(archive, &tensors->storages[i], &content->storages[i], error));
    for (size_t i = 0; i < tensors->count; i++)
        TRY(place(archive, content, i, &copied, &list[i], error));
    return OK;
}

/* ---- the file ---- */

static status find_tensors(struct torch_archive *archive, struct torch_tensors *tensors, struct error *error)
{
    struct bytes pickle;
    TRY(torch_archive_read(archive, "data.pkl", &pickle, error));
    char *name = path_format("%s: data.pkl", torch_archive_path(archive));
    status result = torch_tensors_find(tensors, name != NULL ? name : "data.pkl", pickle.data, pickle.size, error);
    free(name);
    bytes_free(&pickle);
    return result;
}

static void describe(struct safetensor *list, const struct torch_tensors *tensors)
{
    for (size_t i = 0; i < tensors->count; i++) {
        const struct torch_tensor *t = &tensors->list[i];
        list[i] = (struct safetensor){.name = t->name, .type = tensors->storages[t->storage].type, .rank = t->rank};
        memcpy(list[i].shape, t->shape, sizeof t->shape);
    }
}

/* Takes ownership of content. */
static status build(struct safetensors **file, struct torch_archive *archive, struct content *content, bool data,
                    struct error *error)
{
    const struct torch_tensors *tensors = &content->tensors;
    struct safetensor *list = NULL;
    status result = find_tensors(archive, &content->tensors, error);
    if (result == OK) {
        list = xcalloc(tensors->count, sizeof *list);
        describe(list, tensors);
    }
    if (data)
        NEXT(result, read_values(archive, content, list, error));
    if (result == OK)
        safetensors_adopt(file, torch_archive_path(archive), list, tensors->count, tensors->metadata,
                          tensors->metadata_count, content, release);
    else
        release(content);
    free(list);
    return result;
}

static status open_archive(struct safetensors **file, const char *path, bool data, struct error *error)
{
    struct torch_archive *archive;
    *file = NULL;
    TRY(torch_archive_open(&archive, path, error));
    status result = build(file, archive, xcalloc(1, sizeof(struct content)), data, error);
    torch_archive_close(archive);
    return result;
}

status torch_file_open(struct safetensors **file, const char *path, struct error *error)
{
    return open_archive(file, path, true, error);
}

status torch_file_open_header(struct safetensors **file, const char *path, struct error *error)
{
    return open_archive(file, path, false, error);
}

bool torch_file_is_one(const void *beginning, size_t size)
{
    return size >= 4 && memcmp(beginning, "PK\x03\x04", 4) == 0;
}

status torch_file_refuse_old(const char *path, const void *beginning, size_t size, struct error *error)
{
    const uint8_t *bytes = beginning;
    if (size < 2 || bytes[0] != 0x80 || bytes[1] < 2 || bytes[1] > 5)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: expected a zip archive or safetensors, found a bare pickle, as PyTorch wrote it before version "
        "1.6; load it with PyTorch and save it again: torch.save(torch.load(path, weights_only=True), path)",
        path);
}

/* Time of every entry, in seconds since 1970: the earliest that zip can store. */
enum { YEAR_1980 = 315532800 };

/* ---- writing: the pickle ---- */

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

/* ---- writing: the archive ---- */

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

/* libzip writes beside its target and renames, which leaves the lock of a temporary file behind: the folder's stays. */
static status write_beside(const char *path, const struct text *pickle, const struct safetensor *tensors, size_t count,
                           struct error *error)
{
    struct temporary folder;
    TRY(temporary_create_folder(&folder, path, error));
    char *inside = path_format("%s/archive", folder.path);
    status result = write_archive(inside, pickle, tensors, count, error);
    NEXT(result, sync_file(inside, error));
    if (result == OK && rename(inside, path) != 0)
        result = error_errno(error, errno, "%s: cannot be written", path);
    if (result == OK)
        file_sync_name(path);
    free(inside);
    temporary_remove(&folder);
    return result;
}

status torch_file_write(const char *path, const struct safetensor *tensors, size_t count,
                        const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error)
{
    struct text pickle = {0};
    status result = file_exists(path) ? file_check_kind(path, error) : OK;
    NEXT(result, put_all(&pickle, path, tensors, count, metadata, metadata_count, error));
    NEXT(result, write_beside(path, &pickle, tensors, count, error));
    text_free(&pickle);
    return result;
}
