#include "datasets/formats/cifar.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "datasets/formats/pickle.h"

/* The owner of the pixels: one of the two. */
struct owner {
    struct pickle *pickle;
    struct bytes file;
};

void cifar_release(void *owner)
{
    struct owner *owned = owner;
    if (owned == NULL)
        return;
    pickle_close(owned->pickle);
    bytes_free(&owned->file);
    free(owned);
}

static status create_owner(struct owner **owner, const char *path, struct error *error)
{
    *owner = calloc(1, sizeof **owner);
    return *owner != NULL ? OK : error_set(error, ERROR_MEMORY, "%s: no memory to read it", path);
}

static status create_labels(struct cifar *cifar, const char *path, struct error *error)
{
    cifar->labels = malloc((cifar->count + 1) * sizeof *cifar->labels);
    if (cifar->labels == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu labels", path, cifar->count);
    return OK;
}

/* Frees a partial result after a failure. */
static status finish(struct cifar *cifar, struct owner *owner, status result)
{
    if (result == OK) {
        cifar->owner = owner;
        return OK;
    }
    cifar_release(owner);
    free(cifar->labels);
    *cifar = (struct cifar){0};
    return result;
}

static status take_pickle(struct cifar *cifar, const struct pickle *pickle, const char *path, const char *labels,
                          struct error *error)
{
    const struct pickle_value *data = pickle_find(pickle, "data"), *list = pickle_find(pickle, labels);
    if (data == NULL || data->kind != PICKLE_ARRAY || data->array.bytes == NULL || data->array.columns != CIFAR_PIXELS)
        return error_set(error, ERROR_FORMAT, "%s: expected \"data\", an array of rows of %d bytes", path,
                         CIFAR_PIXELS);
    if (list == NULL || list->kind != PICKLE_LIST || list->list.count != data->array.rows)
        return error_set(error, ERROR_FORMAT, "%s: expected \"%s\", a list of %zu labels", path, labels,
                         data->array.rows);
    *cifar = (struct cifar){.count = data->array.rows, .stride = CIFAR_PIXELS, .pixels = data->array.bytes};
    TRY(create_labels(cifar, path, error));
    for (size_t i = 0; i < cifar->count; i++) {
        const struct pickle_value *label = list->list.items[i];
        if (label->kind != PICKLE_INTEGER || label->integer < 0 || label->integer > INT32_MAX)
            return error_set(error, ERROR_FORMAT, "%s: \"%s\"[%zu]: expected a label", path, labels, i);
        cifar->labels[i] = (int32_t)label->integer;
    }
    return OK;
}

status cifar_read_pickle(struct cifar *cifar, const char *path, const char *labels, struct error *error)
{
    struct owner *owner;
    *cifar = (struct cifar){0};
    TRY(create_owner(&owner, path, error));
    status result = pickle_open(&owner->pickle, path, error);
    NEXT(result, take_pickle(cifar, owner->pickle, path, labels, error));
    return finish(cifar, owner, result);
}

static status take_records(struct cifar *cifar, const struct bytes *file, const char *path, size_t label_bytes,
                           struct error *error)
{
    size_t record = label_bytes + CIFAR_PIXELS;
    if (file->size == 0 || file->size % record != 0)
        return error_set(error, ERROR_FORMAT, "%s: expected records of %zu bytes, found %zu bytes, %zu too many", path,
                         record, file->size, file->size % record);
    *cifar = (struct cifar){.count = file->size / record, .stride = record, .pixels = file->data + label_bytes};
    TRY(create_labels(cifar, path, error));
    for (size_t i = 0; i < cifar->count; i++)
        cifar->labels[i] = file->data[i * record + label_bytes - 1];
    return OK;
}

status cifar_read_binary(struct cifar *cifar, const char *path, int label_bytes, struct error *error)
{
    struct owner *owner;
    *cifar = (struct cifar){0};
    TRY(create_owner(&owner, path, error));
    status result = file_read(path, SIZE_MAX, &owner->file, error);
    NEXT(result, take_records(cifar, &owner->file, path, (size_t)label_bytes, error));
    return finish(cifar, owner, result);
}

static status take_names(struct strings *names, const struct pickle_value *list, const char *path, const char *key,
                         struct error *error)
{
    if (list == NULL || list->kind != PICKLE_LIST)
        return error_set(error, ERROR_FORMAT, "%s: expected \"%s\", a list of names", path, key);
    for (size_t i = 0; i < list->list.count; i++) {
        const struct pickle_value *name = list->list.items[i];
        if (name->kind != PICKLE_STRING || memchr(name->string.bytes, 0, name->string.size) != NULL)
            return error_set(error, ERROR_FORMAT, "%s: \"%s\"[%zu]: expected a name", path, key, i);
        TRY(strings_add(names, (const char *)name->string.bytes, name->string.size, error));
    }
    return OK;
}

status cifar_read_names(struct strings *names, const char *path, const char *key, struct error *error)
{
    struct pickle *pickle;
    TRY(pickle_open(&pickle, path, error));
    status result = take_names(names, pickle_find(pickle, key), path, key, error);
    pickle_close(pickle);
    return result;
}
