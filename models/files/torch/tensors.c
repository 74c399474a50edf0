#include "models/files/torch/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

enum { DEPTH_MOST = 64, STEPS_MOST = 1 << 20, NAME_MOST = 512 };

/* Globals that tensors need, and TorchScript's modules, whose attributes alone are read. */
static const struct pickle_global globals[] = {
    {"collections", "OrderedDict", PICKLE_DICT},
    {"torch._utils", "_rebuild_tensor_v2", PICKLE_CALL},
    {"torch._utils", "_rebuild_parameter", PICKLE_CALL},
    {"torch", "FloatStorage", PICKLE_NONE},
    {"torch", "DoubleStorage", PICKLE_NONE},
    {"torch", "HalfStorage", PICKLE_NONE},
    {"torch", "BFloat16Storage", PICKLE_NONE},
    {"torch", "LongStorage", PICKLE_NONE},
    {"torch", "IntStorage", PICKLE_NONE},
    {"torch", "ShortStorage", PICKLE_NONE},
    {"torch", "CharStorage", PICKLE_NONE},
    {"torch", "ByteStorage", PICKLE_NONE},
    {"torch", "BoolStorage", PICKLE_NONE},
    {"__torch__", NULL, PICKLE_CALL},
    {"torch.jit._pickle", NULL, PICKLE_CALL}, /* lists of attributes */
};

static const struct pickle_rules rules = {
    .globals = globals,
    .count = sizeof globals / sizeof *globals,
    .persistent = true,
    .needs =
        "weights need tensors and dictionaries alone, and nothing in a file is run; save the state dict by itself: "
        "torch.save(model.state_dict(), path)"};

static const struct {
    const char *name;
    enum safetensor_type type;
} storage_types[] = {
    {"FloatStorage", SAFETENSOR_F32}, {"DoubleStorage", SAFETENSOR_F64},    {"HalfStorage", SAFETENSOR_F16},
    {"LongStorage", SAFETENSOR_I64},  {"BFloat16Storage", SAFETENSOR_BF16}, {"IntStorage", SAFETENSOR_I32},
    {"ShortStorage", SAFETENSOR_I16}, {"CharStorage", SAFETENSOR_I8},       {"ByteStorage", SAFETENSOR_U8},
    {"BoolStorage", SAFETENSOR_BOOL},
};
enum { STORAGE_TYPES = sizeof storage_types / sizeof *storage_types };

/* A tensor and its storage as the pickle states it. */
struct found {
    struct torch_tensor t;
    struct torch_storage storage; /* key inside the pickle */
    size_t key_size;
};

struct search {
    const char *path;
    struct found *list; /* grows */
    size_t count, steps;
    struct error *error;
};

const char *torch_storage_name(enum safetensor_type type)
{
    for (size_t i = 0; i < STORAGE_TYPES; i++)
        if (storage_types[i].type == type)
            return storage_types[i].name;
    return NULL;
}

/* ---- one tensor ---- */

static const struct pickle_value *item(const struct pickle_value *list, size_t index, enum pickle_kind kind)
{
    bool has = list != NULL && list->kind == PICKLE_LIST && index < list->list.count;
    return has && list->list.items[index]->kind == kind ? list->list.items[index] : NULL;
}

static bool read_size(const struct pickle_value *value, size_t *size)
{
    if (value == NULL || value->integer < 0)
        return false;
    *size = (size_t)value->integer;
    return true;
}

/* ("storage", type, key, device, elements) */
static bool read_storage(struct found *found, const struct pickle_value *persistent)
{
    const struct pickle_value *id = persistent != NULL ? persistent->id : NULL, *type = item(id, 1, PICKLE_GLOBAL),
                              *key = item(id, 2, PICKLE_STRING);
    if (!pickle_is_text(item(id, 0, PICKLE_STRING), "storage") || type == NULL || type->global->name == NULL ||
        key == NULL || key->string.size == 0 || memchr(key->string.bytes, 0, key->string.size) != NULL ||
        !read_size(item(id, 4, PICKLE_INTEGER), &found->storage.elements))
        return false;
    found->storage.key = (char *)key->string.bytes;
    found->key_size = key->string.size;
    for (size_t i = 0; i < STORAGE_TYPES; i++)
        if (strcmp(type->global->name, storage_types[i].name) == 0) {
            found->storage.type = storage_types[i].type;
            return true;
        }
    return false;
}

static bool read_sizes(const struct pickle_value *list, int rank, size_t *sizes)
{
    for (int i = 0; i < rank; i++)
        if (!read_size(item(list, (size_t)i, PICKLE_INTEGER), &sizes[i]))
            return false;
    return true;
}

static bool read_layout(struct torch_tensor *t, const struct pickle_value *arguments)
{
    const struct pickle_value *shape = item(arguments, 2, PICKLE_LIST), *stride = item(arguments, 3, PICKLE_LIST);
    if (shape == NULL || stride == NULL || shape->list.count != stride->list.count ||
        shape->list.count > SAFETENSORS_RANK || !read_size(item(arguments, 1, PICKLE_INTEGER), &t->offset))
        return false;
    t->tensor.rank = (int)shape->list.count;
    return read_sizes(shape, t->tensor.rank, t->tensor.shape) && read_sizes(stride, t->tensor.rank, t->stride);
}

/* Whether a tensor is a view that changes its elements: neg (their negatives) or conj. */
static bool is_view(const struct pickle_value *arguments)
{
    const struct pickle_value *flags = item(arguments, 6, PICKLE_DICT);
    return flags != NULL && flags->list.count > 0;
}

/* Whether every element lies within `elements`; a tensor with more elements than that is refused, too. */
static bool is_inside(const struct torch_tensor *t, size_t elements)
{
    const struct safetensor *tensor = &t->tensor;
    size_t count = 1, last = t->offset;
    bool overflow = false;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0)
            return t->offset <= elements;
    for (int i = 0; i < tensor->rank; i++) {
        size_t reach;
        overflow |= __builtin_mul_overflow(tensor->shape[i] - 1, t->stride[i], &reach);
        overflow |= __builtin_add_overflow(last, reach, &last);
        overflow |= __builtin_mul_overflow(count, tensor->shape[i], &count);
    }
    return !overflow && last < elements && count <= elements;
}

static bool is_contiguous(const struct torch_tensor *t)
{
    size_t expected = 1;
    for (int i = t->tensor.rank - 1; i >= 0; i--) {
        if (t->tensor.shape[i] != 1 && t->stride[i] != expected)
            return safetensor_elements(&t->tensor) == 0;
        expected *= t->tensor.shape[i];
    }
    return true;
}

/* _rebuild_parameter(tensor, …) is its tensor. */
static const struct pickle_value *as_tensor(const struct pickle_value *value)
{
    if (pickle_calls(value, "_rebuild_parameter"))
        value = item(value->call.arguments, 0, PICKLE_CALL);
    return pickle_calls(value, "_rebuild_tensor_v2") ? value : NULL;
}

static status add_tensor(struct search *search, const char *name, const struct pickle_value *value)
{
    struct found found = {.key_size = 0};
    struct safetensor *tensor = &found.t.tensor;
    const struct pickle_value *arguments = value->call.arguments;
    if (!read_storage(&found, item(arguments, 0, PICKLE_PERSISTENT)) || !read_layout(&found.t, arguments))
        return error_set(search->error, ERROR_FORMAT,
                         "%s: tensor '%s': expected a storage, an offset, and a shape of at most %d sizes with as many "
                         "strides, found something else",
                         search->path, name, SAFETENSORS_RANK);
    if (text_find_invalid(name) != NULL)
        return error_set(search->error, ERROR_FORMAT,
                         "%s: tensor '%s': its name is not valid UTF-8; the file is damaged, fetch it again",
                         search->path, name);
    if (is_view(arguments))
        return error_set(search->error, ERROR_FORMAT,
                         "%s: tensor '%s': expected its elements, found a view that negates or conjugates them; save "
                         "tensor.resolve_neg().resolve_conj()",
                         search->path, name);
    if (!is_inside(&found.t, found.storage.elements))
        return error_set(
            search->error, ERROR_FORMAT,
            "%s: tensor '%s': shape %s with strides %s from element %zu on lies outside its storage of %zu "
            "elements, or repeats them",
            search->path, name, shape_text(tensor->rank, tensor->shape).text,
            shape_text(tensor->rank, found.t.stride).text, found.t.offset, found.storage.elements);
    found.t.contiguous = is_contiguous(&found.t);
    GROW(search->list, search->count);
    tensor->name = xstrdup(name);
    tensor->type = found.storage.type;
    search->list[search->count++] = found;
    return OK;
}

/* ---- all of them ---- */

static status join(struct search *search, char *name, const char *prefix, const struct pickle_value *key)
{
    size_t used = strlen(prefix), dot = used > 0 ? 1 : 0, size = key->string.size;
    if (used + dot + size >= NAME_MOST || memchr(key->string.bytes, 0, size) != NULL)
        return error_set(
            search->error, ERROR_FORMAT,
            "%s: expected names of at most %d characters, found a longer one below '%s', or one with a NUL",
            search->path, NAME_MOST - 1, prefix);
    snprintf(name, NAME_MOST, "%s%s%.*s", prefix, dot ? "." : "", (int)size, (const char *)key->string.bytes);
    return OK;
}

/* A module of TorchScript: the dictionary of its attributes; NULL: something else. */
static const struct pickle_value *attributes_of(const struct pickle_value *value)
{
    bool module = value->kind == PICKLE_CALL && value->call.callable->name == NULL && value->call.state != NULL &&
                  value->call.state->kind == PICKLE_DICT;
    return module ? value->call.state : NULL;
}

/* Values that are neither tensors nor modules, such as an epoch, are skipped. */
static status collect(struct search *search, const struct pickle_value *dict, const char *prefix, int depth)
{
    for (size_t i = 0; i + 1 < dict->list.count; i += 2) {
        const struct pickle_value *key = dict->list.items[i], *value = dict->list.items[i + 1];
        const struct pickle_value *tensor = as_tensor(value), *inside = attributes_of(value);
        char name[NAME_MOST];
        if (++search->steps > STEPS_MOST || depth > DEPTH_MOST)
            return error_set(search->error, ERROR_FORMAT, "%s: holds more than any model does, or holds itself",
                             search->path);
        if (key->kind != PICKLE_STRING || (tensor == NULL && inside == NULL))
            continue;
        TRY(join(search, name, prefix, key));
        if (tensor != NULL)
            TRY(add_tensor(search, name, tensor));
        else
            TRY(collect(search, inside, name, depth + 1));
    }
    return OK;
}

static bool holds_tensor(const struct pickle_value *dict)
{
    for (size_t i = 1; dict != NULL && dict->kind == PICKLE_DICT && i < dict->list.count; i += 2)
        if (as_tensor(dict->list.items[i]) != NULL)
            return true;
    return false;
}

static status find_dict(const struct pickle_value *root, const char *path, const struct pickle_value **dict,
                        struct error *error)
{
    static const char *const keys[] = {"state_dict", "model", "model_state_dict", "module"};
    *dict = attributes_of(root);
    if (*dict == NULL && holds_tensor(root))
        *dict = root;
    for (size_t i = 0; *dict == NULL && i < sizeof keys / sizeof *keys; i++)
        if (holds_tensor(pickle_find(root, keys[i])))
            *dict = pickle_find(root, keys[i]);
    if (*dict != NULL)
        return OK;
    const struct pickle_value *first = root->kind == PICKLE_DICT && root->list.count > 0 ? root->list.items[0] : NULL;
    bool named = first != NULL && first->kind == PICKLE_STRING;
    return error_set(
        error, ERROR_FORMAT,
        "%s: expected a dictionary of tensors, or one under state_dict, model, model_state_dict or module, "
        "found %s%.*s%s; save the state dict by itself: torch.save(model.state_dict(), path)",
        path,
        root->kind != PICKLE_DICT ? "no dictionary"
        : named                   ? "one whose first key is '"
                                  : "none",
        named ? (int)(first->string.size < 80 ? first->string.size : 80) : 0,
        named ? (const char *)first->string.bytes : "", named ? "'" : "");
}

/* ---- tensors that share a storage ---- */

static int compare_keys(const struct found *a, const struct found *b)
{
    size_t least = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = memcmp(a->storage.key, b->storage.key, least);
    return order != 0 ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

static int compare_storages(const void *a, const void *b)
{
    return compare_keys(a, b);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct torch_tensor *)a)->tensor.name, ((const struct torch_tensor *)b)->tensor.name);
}

static status share(struct torch_tensors *tensors, struct search *search)
{
    qsort(search->list, search->count, sizeof *search->list, compare_storages);
    for (size_t i = 0; i < search->count; i++) {
        struct found *found = &search->list[i];
        struct torch_storage *last = &tensors->storages[tensors->storage_count];
        if (i == 0 || compare_keys(found - 1, found) != 0) {
            last[0] = found->storage;
            last[0].key = xstrndup(found->storage.key, found->key_size);
            tensors->storage_count++;
        } else if (last[-1].type != found->storage.type || last[-1].elements != found->storage.elements) {
            return error_set(search->error, ERROR_FORMAT,
                             "%s: tensor '%s': expected its storage data/%s to be of one type and size, found another",
                             search->path, found->t.tensor.name, last[-1].key);
        }
        found->t.storage = tensors->storage_count - 1;
    }
    return OK;
}

static status take_found(struct torch_tensors *tensors, struct search *search)
{
    tensors->list = xcalloc(search->count + 1, sizeof *tensors->list);
    tensors->storages = xcalloc(search->count + 1, sizeof *tensors->storages);
    TRY(share(tensors, search));
    for (size_t i = 0; i < search->count; i++) {
        tensors->list[i] = search->list[i].t;
        search->list[i].t.tensor.name = NULL;
    }
    tensors->count = search->count;
    qsort(tensors->list, tensors->count, sizeof *tensors->list, compare_names);
    for (size_t i = 1; i < tensors->count; i++)
        if (compare_names(&tensors->list[i - 1], &tensors->list[i]) == 0)
            return error_set(search->error, ERROR_FORMAT, "%s: expected one tensor of each name, found '%s' twice",
                             search->path, tensors->list[i].tensor.name);
    return OK;
}

/* ---- metadata ---- */

static char *text_of(const struct pickle_value *value)
{
    return value->kind == PICKLE_STRING ? xstrndup((const char *)value->string.bytes, value->string.size) : NULL;
}

static status read_metadata(struct torch_tensors *tensors, const struct pickle_value *root, const char *path,
                            struct error *error)
{
    const struct pickle_value *dict = pickle_find(root, TORCH_METADATA);
    if (dict == NULL || dict->kind != PICKLE_DICT)
        return OK;
    tensors->metadata = xcalloc(dict->list.count / 2 + 1, sizeof *tensors->metadata);
    for (size_t i = 0; i + 1 < dict->list.count; i += 2) {
        struct safetensors_metadata *entry = &tensors->metadata[tensors->metadata_count++];
        entry->key = text_of(dict->list.items[i]);
        entry->value = text_of(dict->list.items[i + 1]);
        if (entry->key == NULL || entry->value == NULL || text_find_invalid(entry->key) != NULL ||
            text_find_invalid(entry->value) != NULL)
            return error_set(error, ERROR_FORMAT, "%s: " TORCH_METADATA ": expected texts by name, in UTF-8", path);
    }
    return OK;
}

/* ---- all parts ---- */

static status find_all(struct torch_tensors *tensors, struct search *search, const struct pickle_value *root)
{
    const struct pickle_value *dict;
    TRY(find_dict(root, search->path, &dict, search->error));
    TRY(collect(search, dict, "", 0));
    if (search->count == 0)
        return error_set(search->error, ERROR_FORMAT, "%s: expected tensors, found none", search->path);
    TRY(take_found(tensors, search));
    return read_metadata(tensors, root, search->path, search->error);
}

status torch_tensors_find(struct torch_tensors *tensors, const char *path, const void *bytes, size_t size,
                          struct error *error)
{
    struct search search = {.path = path, .error = error};
    struct pickle *pickle;
    *tensors = (struct torch_tensors){0};
    TRY(pickle_parse(&pickle, path, bytes, size, &rules, error));
    status result = find_all(tensors, &search, pickle_root(pickle));
    for (size_t i = 0; i < search.count; i++)
        free((char *)search.list[i].t.tensor.name);
    free(search.list);
    pickle_close(pickle);
    return result;
}

void torch_tensors_free(struct torch_tensors *tensors)
{
    for (size_t i = 0; i < tensors->count; i++)
        free((char *)tensors->list[i].tensor.name);
    for (size_t i = 0; i < tensors->storage_count; i++)
        free(tensors->storages[i].key);
    for (size_t i = 0; i < tensors->metadata_count; i++) {
        free((char *)tensors->metadata[i].key);
        free((char *)tensors->metadata[i].value);
    }
    free(tensors->list);
    free(tensors->storages);
    free(tensors->metadata);
    *tensors = (struct torch_tensors){0};
}
