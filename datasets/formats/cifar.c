#include "datasets/formats/cifar.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/pickle.h"

/* The owner of the pixels. */
struct owner {
    struct bytes file;
    struct pickle *pickle; /* NULL: records */
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

static void create_labels(struct cifar *cifar)
{
    cifar->labels = xmalloc((cifar->count + 1) * sizeof *cifar->labels);
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

static status open_pickle(struct owner *owner, const char *path, struct error *error)
{
    static const struct pickle_global globals[] = {{"numpy.core.multiarray", "_reconstruct", PICKLE_CALL},
                                                   {"numpy", "ndarray", PICKLE_NONE},
                                                   {"numpy", "dtype", PICKLE_CALL}};
    static const struct pickle_rules rules = {.globals = globals,
                                              .count = sizeof globals / sizeof *globals,
                                              .needs = "a CIFAR file needs numpy's array constructors only"};
    TRY(file_read(path, SIZE_MAX, &owner->file, error));
    return pickle_parse(&owner->pickle, path, owner->file.data, owner->file.size, &rules, error);
}

/* An array of bytes: rows of `columns`. */
struct array {
    const uint8_t *bytes;
    size_t rows, columns;
};

static const struct pickle_value *item(const struct pickle_value *list, size_t index, enum pickle_kind kind)
{
    bool has = list != NULL && list->kind == PICKLE_LIST && index < list->list.count;
    return has && list->list.items[index]->kind == kind ? list->list.items[index] : NULL;
}

static bool is_bytes_type(const struct pickle_value *type)
{
    return pickle_calls(type, "dtype") && pickle_is_text(item(type->call.arguments, 0, PICKLE_STRING), "u1");
}

/* numpy's _reconstruct makes it, and its state is: version, shape, type, Fortran order, bytes. */
static bool take_array(struct array *array, const struct pickle_value *value)
{
    if (!pickle_calls(value, "_reconstruct") || value->call.state == NULL || value->call.state->kind != PICKLE_LIST ||
        value->call.state->list.count != 5)
        return false;
    const struct pickle_value *state = value->call.state, *shape = item(state, 1, PICKLE_LIST),
                              *rows = item(shape, 0, PICKLE_INTEGER), *columns = item(shape, 1, PICKLE_INTEGER),
                              *fortran = item(state, 3, PICKLE_INTEGER), *bytes = item(state, 4, PICKLE_STRING);
    if (rows == NULL || columns == NULL || shape->list.count != 2 || fortran == NULL || fortran->integer != 0 ||
        bytes == NULL || !is_bytes_type(item(state, 2, PICKLE_CALL)) || rows->integer < 1 || columns->integer < 1)
        return false;
    *array = (struct array){bytes->string.bytes, (size_t)rows->integer, (size_t)columns->integer};
    return array->rows <= bytes->string.size / array->columns && array->rows * array->columns == bytes->string.size;
}

static status take_pickle(struct cifar *cifar, const struct pickle_value *root, const char *path, const char *labels,
                          struct error *error)
{
    struct array data;
    const struct pickle_value *list = pickle_find(root, labels);
    if (!take_array(&data, pickle_find(root, "data")) || data.columns != CIFAR_PIXELS)
        return error_set(error, ERROR_FORMAT, "%s: expected \"data\", an array of rows of %d bytes", path,
                         CIFAR_PIXELS);
    if (list == NULL || list->kind != PICKLE_LIST || list->list.count != data.rows)
        return error_set(error, ERROR_FORMAT, "%s: expected \"%s\", a list of %zu labels", path, labels, data.rows);
    *cifar = (struct cifar){.count = data.rows, .stride = CIFAR_PIXELS, .pixels = data.bytes};
    create_labels(cifar);
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
    owner = xcalloc(1, sizeof *owner);
    status result = open_pickle(owner, path, error);
    NEXT(result, take_pickle(cifar, pickle_root(owner->pickle), path, labels, error));
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
    create_labels(cifar);
    for (size_t i = 0; i < cifar->count; i++)
        cifar->labels[i] = file->data[i * record + label_bytes - 1];
    return OK;
}

status cifar_read_binary(struct cifar *cifar, const char *path, int label_bytes, struct error *error)
{
    struct owner *owner;
    *cifar = (struct cifar){0};
    owner = xcalloc(1, sizeof *owner);
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
        strings_add(names, (const char *)name->string.bytes, name->string.size);
    }
    return OK;
}

status cifar_read_names(struct strings *names, const char *path, const char *key, struct error *error)
{
    struct owner *owner;
    owner = xcalloc(1, sizeof *owner);
    status result = open_pickle(owner, path, error);
    NEXT(result, take_names(names, pickle_find(pickle_root(owner->pickle), key), path, key, error));
    cifar_release(owner);
    return result;
}
