#include "models/files/torch/torch_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
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
