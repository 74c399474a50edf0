/* cifar-10-batches-py/{data_batch_1 … 5,test_batch,batches.meta} or cifar-10-batches-bin/{….bin,batches.meta.txt};
 * cifar-100-python/{train,test,meta} or cifar-100-binary/{train.bin,test.bin,fine_label_names.txt}, fine labels. */
#include "datasets/readers/cifar.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/pickle.h"
#include "datasets/readers/reader.h"

/* --- files -------------------------------------------------------------------------------------------------------- */

/* The owner of the pixels. */
struct owner {
    struct bytes file;
    struct pickle *pickle; /* NULL: records */
};

void cifar_release(void *owner)
{
    OWNED struct owner *owned = owner;
    if (owned == NULL)
        return;
    pickle_close(owned->pickle);
    bytes_free(&owned->file);
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
static bool read_array(struct array *array, const struct pickle_value *value)
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

static status read_pickle(struct cifar *cifar, const struct pickle_value *root, const char *path, const char *labels,
                          struct error *error)
{
    struct array data;
    const struct pickle_value *list = pickle_find(root, labels);
    if (!read_array(&data, pickle_find(root, "data")) || data.columns != CIFAR_PIXELS)
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
    NEXT(result, read_pickle(cifar, pickle_root(owner->pickle), path, labels, error));
    return finish(cifar, owner, result);
}

static status read_records(struct cifar *cifar, const struct bytes *file, const char *path, size_t label_bytes,
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
    NEXT(result, read_records(cifar, &owner->file, path, (size_t)label_bytes, error));
    return finish(cifar, owner, result);
}

static status read_names(struct strings *names, const struct pickle_value *list, const char *path, const char *key,
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
    NEXT(result, read_names(names, pickle_find(pickle_root(owner->pickle), key), path, key, error));
    cifar_release(owner);
    return result;
}

/* --- datasets ----------------------------------------------------------------------------------------------------- */

enum { CIFAR_FILES = 6 };

struct cifar_layout {
    const char *python_names, *python_key; /* file and key of the class names */
    const char *binary_names;              /* file of the class names, one a line */
    const char *label_key;                 /* of the python version's labels */
    int label_bytes;                       /* of a binary record */
    const char *python_files[SPLITS][CIFAR_FILES], *binary_files[SPLITS][CIFAR_FILES]; /* end with NULL */
};

static const struct cifar_layout cifar10 = {
    .python_names = "batches.meta",
    .python_key = "label_names",
    .binary_names = "batches.meta.txt",
    .label_key = "labels",
    .label_bytes = 1,
    .python_files = {{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"}, {"test_batch"}},
    .binary_files = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                      "data_batch_5.bin"},
                     {"test_batch.bin"}},
};

static const struct cifar_layout cifar100 = {
    .python_names = "meta",
    .python_key = "fine_label_names",
    .binary_names = "fine_label_names.txt",
    .label_key = "fine_labels",
    .label_bytes = 2,
    .python_files = {{"train"}, {"test"}},
    .binary_files = {{"train.bin"}, {"test.bin"}},
};

static const struct option own_options[] = {
    OPTION_ONE_OF("version", "any|python|binary", "any", "archive to read; any: python where both exist"), {0}};

static status open_file(struct dataset *dataset, const struct cifar_layout *layout, bool python, enum split split,
                        const char *name, struct error *error)
{
    char path[DATASET_PATH];
    struct cifar cifar;
    TRY(dataset_path(dataset, name, path, error));
    TRY(python ? cifar_read_pickle(&cifar, path, layout->label_key, error)
               : cifar_read_binary(&cifar, path, layout->label_bytes, error));
    struct raw_images images = {.name = (char *)name,
                                .count = (uint32_t)cifar.count,
                                .samples = cifar.pixels,
                                .stride = cifar.stride,
                                .width = CIFAR_SIDE,
                                .height = CIFAR_SIDE,
                                .channels = 3,
                                .owner = cifar.owner,
                                .release = cifar_release};
    dataset_add_raw(dataset, split, images, cifar.labels);
    free(cifar.labels);
    return OK;
}

static status open_names(struct dataset *dataset, const struct cifar_layout *layout, bool python, struct error *error)
{
    SCOPED(strings_free) struct strings names = {0};
    char path[DATASET_PATH];
    TRY(dataset_path(dataset, python ? layout->python_names : layout->binary_names, path, error));
    TRY(python ? cifar_read_names(&names, path, layout->python_key, error) : strings_read_lines(&names, path, error));
    for (size_t i = 0; i < names.count; i++)
        dataset_add_class(dataset, names.items[i]);
    return OK;
}

static status open_cifar(struct dataset *dataset, const struct options *options, struct error *error)
{
    const struct cifar_layout *layout = dataset->reader == &dataset_cifar10 ? &cifar10 : &cifar100;
    const char *version = options_text(options, "version");
    if (strcmp(version, "any") != 0)
        dataset->folder = dataset->reader->folders[strcmp(version, "binary") == 0]; /* the first is Python's */
    bool python = dataset->folder == dataset->reader->folders[0];
    TRY(open_names(dataset, layout, python, error));
    for (int split = 0; split < SPLITS; split++) {
        const char *const *files = python ? layout->python_files[split] : layout->binary_files[split];
        for (; *files != NULL; files++)
            TRY(open_file(dataset, layout, python, (enum split)split, *files, error));
    }
    return OK;
}

const struct dataset_reader dataset_cifar10 = {
    .name = "cifar10",
    .source = "CIFAR-10, python or binary version: its own training and test sets",
    .folders = {"cifar-10-batches-py", "cifar-10-batches-bin"},
    .options = own_options,
    .open = open_cifar,
};

const struct dataset_reader dataset_cifar100 = {
    .name = "cifar100",
    .source = "CIFAR-100, python or binary version: its own training and test sets, fine labels",
    .folders = {"cifar-100-python", "cifar-100-binary"},
    .options = own_options,
    .open = open_cifar,
};
