#include "harness/train/serializer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

struct archive {
    struct safetensors *file; /* when opened */
    size_t count;
    struct safetensor *tensors; /* when written: names and data are owned */
};

void archive_create(struct archive **archive)
{
    *archive = xcalloc(1, sizeof **archive);
}

status archive_open(struct archive **archive, const char *path, struct error *error)
{
    archive_create(archive);
    status result = safetensors_open(&(*archive)->file, path, WEIGHTS_WHOLE, error);
    if (result == OK && safetensors_metadata_value((*archive)->file, SAFETENSORS_DIGEST) == NULL)
        result = error_set(error, ERROR_FORMAT,
                           "%s: expected a digest of its contents, found none: the file was damaged or edited", path);
    if (result != OK) {
        archive_close(*archive);
        *archive = NULL;
    }
    return result;
}

void archive_close(struct archive *archive)
{
    if (archive == NULL)
        return;
    for (size_t i = 0; i < archive->count; i++) {
        free((void *)archive->tensors[i].name);
        free((void *)archive->tensors[i].data);
    }
    free(archive->tensors);
    safetensors_close(archive->file);
    free(archive);
}

static status add(struct archive *archive, const char *name, enum safetensor_type type, size_t count, void **data,
                  struct error *error)
{
    GROW(archive->tensors, archive->count);
    size_t bytes = array_size(count, safetensor_type_size(type));
    *data = bytes < SIZE_MAX ? malloc(bytes > 0 ? bytes : 1) : NULL;
    if (*data == NULL)
        return error_set(error, ERROR_MEMORY, "checkpoint: no memory for %s, %zu values", name, count);
    archive->tensors[archive->count++] =
        (struct safetensor){.name = xstrdup(name), .type = type, .rank = 1, .shape = {count}, .data = *data};
    return OK;
}

status archive_put(struct archive *archive, const char *name, enum safetensor_type type, size_t count,
                   const void *values, struct error *error)
{
    void *data;
    TRY(add(archive, name, type, count, &data, error));
    if (count > 0)
        memcpy(data, values, count * safetensor_type_size(type));
    return OK;
}

status archive_write(const struct archive *archive, const char *path, const struct safetensors_metadata *metadata,
                     size_t metadata_count, struct error *error)
{
    return safetensors_write(path, archive->tensors, archive->count, metadata, metadata_count, error);
}

static status find(const struct archive *archive, const char *name, enum safetensor_type type, size_t count,
                   const struct safetensor **found, struct error *error)
{
    if (archive->file != NULL)
        return safetensors_expect(archive->file, name, type, 1, &count, found, error);
    for (size_t i = 0; i < archive->count; i++) {
        *found = &archive->tensors[i];
        if (strcmp((*found)->name, name) == 0 && (*found)->type == type && (*found)->shape[0] == count)
            return OK;
    }
    return error_set(error, ERROR_FORMAT, "archive: there is no array %s of %zu values", name, count);
}

status archive_get(const struct archive *archive, const char *name, enum safetensor_type type, size_t count,
                   void *values, struct error *error)
{
    const struct safetensor *found;
    TRY(find(archive, name, type, count, &found, error));
    if (count > 0)
        memcpy(values, found->data, count * safetensor_type_size(type));
    return OK;
}

bool archive_has(const struct archive *archive, const char *name)
{
    if (archive->file != NULL)
        return safetensors_find(archive->file, name) != NULL;
    for (size_t i = 0; i < archive->count; i++)
        if (strcmp(archive->tensors[i].name, name) == 0)
            return true;
    return false;
}

const char *archive_metadata(const struct archive *archive, const char *key)
{
    return safetensors_metadata_value(archive->file, key);
}

status serializer_host(const struct serializer *p, const char *name, enum safetensor_type type, size_t count,
                       void *values, struct error *error)
{
    return p->saving ? archive_put(p->archive, name, type, count, values, error)
                     : archive_get(p->archive, name, type, count, values, error);
}

status serializer_device(const struct serializer *p, const char *name, enum safetensor_type type, size_t count,
                         void *device, struct error *error)
{
    const struct safetensor *found;
    size_t bytes = count * safetensor_type_size(type);
    void *data;
    if (p->saving) {
        TRY(add(p->archive, name, type, count, &data, error));
        return p->backend->ops->download(p->backend, data, device, bytes, error);
    }
    TRY(find(p->archive, name, type, count, &found, error));
    return p->backend->ops->upload(p->backend, device, found->data, bytes, error);
}

/* Values of a tensor that the archive has. */
static size_t stored_values(const struct serializer *p, const char *name, const struct parameter *tensor)
{
    const struct safetensor *found;
    struct error none;
    size_t fewer = p->tasks > 0 ? tensor->size / p->tasks * p->tasks_before : 0;
    bool shorter = !p->saving && p->tasks > 0 && tensor->shape[0] == p->tasks &&
                   find(p->archive, name, SAFETENSOR_F32, fewer, &found, &none) == OK;
    return shorter ? fewer : tensor->size;
}

status serializer_weights(const struct serializer *p, const char *name, struct parameters *group, struct error *error)
{
    char full[256];
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *tensor = &group->list[i];
        snprintf(full, sizeof full, "%s.%s", name, tensor->name);
        size_t count = stored_values(p, full, tensor);
        float *values =
            p->saving ? (float *)group->values + tensor->offset : parameters_write(group, tensor->offset, count);
        TRY(serializer_device(p, full, SAFETENSOR_F32, count, values, error));
    }
    return OK;
}
