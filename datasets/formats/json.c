#include "datasets/formats/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"

static status add_values(struct json_lists *lists, const char *key, json_t *array, struct error *error)
{
    size_t index;
    json_t *value;
    if (!json_is_array(array))
        return error_set(error, ERROR_FORMAT, "\"%s\": expected an array of strings", key);
    strings_add(&lists->keys, key, strlen(key));
    json_array_foreach(array, index, value)
    {
        if (!json_is_string(value))
            return error_set(error, ERROR_FORMAT, "\"%s\"[%zu]: expected a string", key, index);
        strings_add(&lists->values, json_string_value(value), json_string_length(value));
        lists->of[lists->values.count - 1] = (uint32_t)(lists->keys.count - 1);
    }
    return OK;
}

static status add_lists(struct json_lists *lists, json_t *root, struct error *error)
{
    const char *key;
    json_t *array;
    size_t values = 0;
    if (!json_is_object(root))
        return error_set(error, ERROR_FORMAT, "expected an object with a list for each class");
    json_object_foreach(root, key, array) values += json_array_size(array);
    lists->of = xmalloc((values + 1) * sizeof *lists->of);
    json_object_foreach(root, key, array) TRY(add_values(lists, key, array, error));
    return OK;
}

status json_parse(json_t **root, const void *data, size_t size, const char *name, struct error *error)
{
    json_error_t wrong;
    const char *text = data;
    text_skip_mark(&text, &size);
    errno = 0;
    *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
    if (*root != NULL)
        return OK;
    error_set(error, ERROR_FORMAT, "%s:%d:%d: invalid JSON: %s", name, wrong.line, wrong.column, wrong.text);
    return memory_blame(ERROR_FORMAT, name, error);
}

status json_lists_read(struct json_lists *lists, const char *path, struct error *error)
{
    struct bytes bytes;
    json_t *root;
    *lists = (struct json_lists){0};
    TRY(file_read(path, (size_t)1 << 28, &bytes, error));
    status result = json_parse(&root, bytes.data, bytes.size, path, error);
    bytes_free(&bytes);
    TRY(result);
    result = add_lists(lists, root, error);
    json_decref(root);
    if (result != OK) {
        json_lists_free(lists);
        return error_context(error, "%s", path);
    }
    return OK;
}

void json_lists_free(struct json_lists *lists)
{
    strings_free(&lists->keys);
    strings_free(&lists->values);
    free(lists->of);
    *lists = (struct json_lists){0};
}
