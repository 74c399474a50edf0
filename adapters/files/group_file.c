#include "adapters/files/group_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"

void group_tensor_slice(struct group_tensor *t, struct parameters *group, size_t number, size_t slice)
{
    const struct parameter *p = &group->list[number];
    t->group = group;
    t->rank = p->rank > 1 ? p->rank - 1 : 1;
    t->shape[0] = 1;
    for (int r = 1; r < p->rank; r++)
        t->shape[r - 1] = p->shape[r];
    t->size = p->size / p->shape[0];
    t->offset = p->offset + slice * t->size;
}

struct group_tensor *group_tensors_of_tasks(struct parameters *group, size_t tasks, size_t *count)
{
    struct group_tensor *list = xcalloc(group->count * tasks + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < group->count * tasks; i++) {
        size_t number = i % group->count, task = i / group->count;
        struct group_tensor *tensor = &list[*count];
        if (task >= group->list[number].shape[0])
            continue;
        group_tensor_slice(tensor, group, number, task);
        snprintf(tensor->name, sizeof tensor->name, "%s.%zu", group->list[number].name, task);
        ++*count;
    }
    return list;
}

status group_tensor_download(const struct group_tensor *t, float *values, struct error *error)
{
    struct backend *backend = t->group->backend;
    return backend->ops->download(backend, values, t->group->values + t->offset, t->size * sizeof *values, error);
}

status group_tensor_upload(const struct group_tensor *t, const float *values, struct error *error)
{
    struct backend *backend = t->group->backend;
    return backend->ops->upload(backend, parameters_write(t->group, t->offset, t->size), values,
                                t->size * sizeof *values, error);
}

status group_tensor_check(const struct safetensors *file, const char *name, int rank, const size_t *shape,
                          struct error *error)
{
    const struct safetensor *found = safetensors_find(file, name);
    if (found == NULL)
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor %s is missing; the file does not fit the model or the number of experts and tasks",
                         safetensors_path(file), name);
    if (found->rank != rank || memcmp(found->shape, shape, (size_t)rank * sizeof *shape) != 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected shape %s, found %s", safetensors_path(file),
                         name, shape_text(rank, shape).text, shape_text(found->rank, found->shape).text);
    return OK;
}

static status load(const struct group_tensor *t, const struct safetensors *file, const char *name,
                   enum group_missing missing, float *values, struct error *error)
{
    const struct safetensor *found = safetensors_find(file, name);
    if (found == NULL && missing == GROUP_ROUTERS_OPTIONAL && t->routing)
        return OK;
    if (found == NULL && missing == GROUP_ZERO_LEFT_OUT) {
        memset(values, 0, t->size * sizeof *values);
        return group_tensor_upload(t, values, error);
    }
    TRY(group_tensor_check(file, name, t->rank, t->shape, error));
    TRY(safetensor_to_floats(found, values, error));
    TRY(safetensors_expect_finite(file, name, values, t->size, error));
    return group_tensor_upload(t, values, error);
}

status group_tensors_load(const struct group_tensor *list, size_t count, const struct safetensors *file,
                          const char *prefix, enum group_missing missing, struct error *error)
{
    size_t largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = list[i].size > largest ? list[i].size : largest;
    OWNED float *values = xmalloc(array_size(largest + 1, sizeof *values));
    for (size_t i = 0; i < count; i++) {
        char name[192];
        snprintf(name, sizeof name, "%s%s", prefix, list[i].name);
        TRY(load(&list[i], file, name, missing, values, error));
    }
    return OK;
}

static bool has_key(const struct safetensors_metadata *metadata, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(metadata[i].key, key) == 0)
            return true;
    return false;
}

/* Fills in the tensors that stand for the list, with values from `values` on. */
static status fetch(const struct group_tensor *list, size_t count, struct safetensor *tensors, float *values,
                    const char *path, struct error *error)
{
    for (size_t i = 0; i < count; values += list[i++].size) {
        const struct group_tensor *t = &list[i];
        TRY(group_tensor_download(t, values, error));
        if (not_finite_at(values, t->size) < t->size)
            return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is not finite; nothing is written", path, t->name);
        tensors[i] = (struct safetensor){.name = t->name, .type = SAFETENSOR_F32, .rank = t->rank, .data = values};
        memcpy(tensors[i].shape, t->shape, (size_t)t->rank * sizeof *t->shape);
    }
    return OK;
}

status group_tensors_save(const struct group_tensor *list, size_t count, const struct safetensors_metadata *metadata,
                          size_t metadata_count, const struct group_extra *extra, const char *path, struct error *error)
{
    static const struct group_extra nothing;
    struct safetensors_metadata keys[GROUP_METADATA];
    size_t n = 0, key_count = 0;
    extra = extra != NULL ? extra : &nothing;
    assert(metadata_count + extra->metadata_count <= GROUP_METADATA);
    for (size_t i = 0; i < metadata_count + extra->metadata_count; i++) {
        keys[key_count] = i < metadata_count ? metadata[i] : extra->metadata[i - metadata_count];
        key_count += !has_key(keys, key_count, keys[key_count].key);
    }
    for (size_t i = 0; i < count; i++)
        n += list[i].size;
    OWNED float *values = xmalloc(array_size(n + 1, sizeof *values));
    OWNED struct safetensor *tensors = xcalloc(count + extra->tensor_count + 1, sizeof *tensors);
    TRY(fetch(list, count, tensors, values, path, error));
    for (size_t i = 0; i < extra->tensor_count; i++)
        tensors[count + i] = extra->tensors[i];
    return safetensors_write(path, tensors, count + extra->tensor_count, keys, key_count, error);
}
