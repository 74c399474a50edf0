#include "models/files/weights_file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "models/files/torch/torch_file.h"

enum { INDEX_LIMIT = 64 << 20, SHARDS_MOST = 10000 };

bool weights_shards_is_index(const char *path)
{
    return text_ends_with(path, ".index.json");
}

/* ---- the index ---- */

/* A file beside the index, and nowhere else. */
static bool is_plain(const char *name)
{
    return name != NULL && name[0] != 0 && name[0] != '.' && strchr(name, '/') == NULL;
}

static bool is_listed(const struct weights_shards *shards, const char *path)
{
    for (size_t i = 0; i < shards->count; i++)
        if (strcmp(shards->paths[i], path) == 0)
            return true;
    return false;
}

static status add_path(struct weights_shards *shards, const char *index, const char *name, struct error *error)
{
    char *path = path_beside(index, name);
    if (is_listed(shards, path)) {
        free(path);
        return OK;
    }
    GROW(shards->paths, shards->count);
    shards->paths[shards->count++] = path;
    return shards->count <= SHARDS_MOST
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: names more than %d files", index, SHARDS_MOST);
}

static status read_map(struct weights_shards *shards, const char *path, struct error *error)
{
    const char *tensor;
    json_t *value;
    shards->map = json_object_get(shards->root, "weight_map");
    if (json_object_size(shards->map) == 0)
        return error_set(error, ERROR_FORMAT, "%s: expected weight_map, an object of files by the tensors in them",
                         path);
    json_object_foreach(shards->map, tensor, value)
    {
        if (!is_plain(json_string_value(value)))
            return error_set(error, ERROR_FORMAT,
                             "%s: weight_map['%s']: expected the name of a file beside the index, found '%s'", path,
                             tensor, json_is_string(value) ? json_string_value(value) : "none");
        TRY(add_path(shards, path, json_string_value(value), error));
    }
    qsort(shards->paths, shards->count, sizeof *shards->paths, array_by_text);
    return OK;
}

status weights_shards_read(struct weights_shards *shards, const char *path, struct error *error)
{
    *shards = (struct weights_shards){0};
    TRY(json_read(&shards->root, path, INDEX_LIMIT, error));
    return read_map(shards, path, error);
}

void weights_shards_free(struct weights_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++)
        free(shards->paths[i]);
    free(shards->paths);
    json_decref(shards->root);
    *shards = (struct weights_shards){0};
}

bool weights_file_is_other(const char *path, const char *other)
{
    SCOPED(weights_shards_free) struct weights_shards shards = {0};
    struct error ignored; /* opening reports it */
    bool is_other = file_is_other(path, other);
    if (weights_shards_is_index(path))
        (void)weights_shards_read(&shards, path, &ignored);
    for (size_t i = 0; i < shards.count; i++)
        is_other = is_other && file_is_other(shards.paths[i], other);
    return is_other;
}

/* ---- one file ---- */

enum kind { KIND_SAFETENSORS, KIND_TORCH };

/* A file of no other kind is opened as safetensors, whose reader reports what is wrong with it. */
static status find_kind(const char *path, enum kind *kind, struct error *error)
{
    uint8_t beginning[8] = {0};
    int descriptor;
    uint64_t size;
    TRY(file_open(path, &descriptor, &size, error));
    size_t count = size < sizeof beginning ? (size_t)size : sizeof beginning;
    bool text = true; /* no length of a header of safetensors */
    status result = count < sizeof beginning
                        ? error_set(error, ERROR_FORMAT,
                                    "%s: expected weights (safetensors, PyTorch's .pt, .pth or .bin, or the index of "
                                    "their shards), found %zu bytes",
                                    path, count)
                        : file_read_at(descriptor, path, beginning, count, 0, error);
    close(descriptor);
    NEXT(result, file_check_meant(path, false, error));
    NEXT(result, torch_file_refuse_old(path, beginning, count, error));
    for (size_t i = 0; i < count; i++)
        text = text && (isprint(beginning[i]) || isspace(beginning[i]));
    if (result == OK && text)
        result = error_set(error, ERROR_FORMAT, "%s: expected weights, found a text that begins with \"%.8s\"", path,
                           (const char *)beginning);
    *kind = torch_file_is_one(beginning, count) ? KIND_TORCH : KIND_SAFETENSORS;
    return result;
}

static status open_one(struct safetensors **file, const char *path, enum weights_part part, struct error *error)
{
    enum kind kind;
    *file = NULL;
    TRY(find_kind(path, &kind, error));
    return (kind == KIND_TORCH ? torch_file_open : safetensors_open)(file, path, part, error);
}

/* ---- the files of an index ---- */

struct opened {
    struct safetensors **files;
    size_t count;
};

static void release(void *owner)
{
    struct opened *opened = owner;
    for (size_t i = 0; i < opened->count; i++)
        safetensors_close(opened->files[i]);
    free(opened->files);
    free(opened);
}
SCOPED_POINTER(struct opened, release)

/* Whether the index has the tensor in this file. */
static status check_place(const struct weights_shards *shards, const struct safetensors *file, const char *tensor,
                          const char *index, struct error *error)
{
    const char *path = safetensors_path(file), *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *stated = json_string_value(json_object_get(shards->map, tensor));
    if (stated != NULL && strcmp(stated, name) == 0)
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: has tensor '%s', which %s has in %s: files of different weights are mixed", path, tensor,
                     index, stated != NULL ? stated : "no file");
}

static status list_tensors(const struct weights_shards *shards, const struct opened *opened, const char *index,
                           struct safetensor *list, struct error *error)
{
    size_t count = 0, named = json_object_size(shards->map);
    for (size_t f = 0; f < opened->count; f++)
        for (size_t i = 0; i < safetensors_count(opened->files[f]); i++) {
            const struct safetensor *tensor = safetensors_at(opened->files[f], i);
            TRY(check_place(shards, opened->files[f], tensor->name, index, error));
            list[count++] = *tensor;
        }
    return count == named ? OK
                          : error_set(error, ERROR_FORMAT, "%s: names %zu tensors, but its files have %zu of them",
                                      index, named, count);
}

static status open_all(struct opened *opened, const struct weights_shards *shards, enum weights_part part,
                       struct error *error)
{
    opened->files = xcalloc(shards->count, sizeof *opened->files);
    for (; opened->count < shards->count; opened->count++)
        TRY(open_one(&opened->files[opened->count], shards->paths[opened->count], part, error));
    return OK;
}

static status open_any(struct safetensors **file, const char *path, enum weights_part part, struct error *error)
{
    if (!weights_shards_is_index(path))
        return open_one(file, path, part, error);
    SCOPED(weights_shards_free) struct weights_shards shards = {0};
    SCOPED(release_at) struct opened *opened = xcalloc(1, sizeof *opened);
    TRY(weights_shards_read(&shards, path, error));
    TRY(open_all(opened, &shards, part, error));
    size_t named = json_object_size(shards.map);
    OWNED struct safetensor *list = xcalloc(named, sizeof *list);
    TRY(list_tensors(&shards, opened, path, list, error));
    safetensors_adopt(file, path, list, named, NULL, 0, TAKE(opened), release);
    return OK;
}

status weights_file_open(struct safetensors **file, const char *path, enum weights_part part, struct error *error)
{
    SCOPED(safetensors_close_at) struct safetensors *opened = NULL;
    *file = NULL;
    TRY(open_any(&opened, path, part, error));
    TRY(safetensors_unwrap(opened, error));
    *file = TAKE(opened);
    return OK;
}
