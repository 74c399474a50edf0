#include "datasets/formats/json.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

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

status json_lists_read(struct json_lists *lists, const char *path, struct error *error)
{
    SCOPED(json_decref_at) json_t *root = NULL;
    *lists = (struct json_lists){0};
    TRY(json_read(&root, path, (size_t)1 << 28, error));
    if (add_lists(lists, root, error) == OK)
        return OK;
    json_lists_free(lists);
    return error_context(error, "%s", path);
}

void json_lists_free(struct json_lists *lists)
{
    strings_free(&lists->keys);
    strings_free(&lists->values);
    free(lists->of);
    *lists = (struct json_lists){0};
}
