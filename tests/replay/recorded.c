#include "tests/replay/recorded.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/replay/report.h"

json_t *recorded_json(const char *folder, const char *name)
{
    json_error_t where;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_t *json = json_load_file(path, 0, &where);
    if (json == NULL)
        must(error_set(&error, ERROR_FORMAT, "%s:%d: %s", path, where.line, where.text));
    return json;
}

double recorded_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        must(error_set(&error, ERROR_FORMAT, "config.json: no number \"%s\"", key));
    return json_number_value(value);
}

struct safetensors *recorded_open(const char *folder, const char *name, ...)
{
    struct safetensors *file;
    char full[192], path[1024];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(full, sizeof full, name, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "%s/%s", folder, full);
    must(safetensors_open(&file, path, &error));
    return file;
}

const struct safetensor *recorded(const struct safetensors *file, const char *name, ...)
{
    char full[192];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(full, sizeof full, name, arguments);
    va_end(arguments);
    const struct safetensor *tensor = safetensors_find(file, full);
    if (tensor == NULL)
        must(error_set(&error, ERROR_FORMAT, "%s: tensor %s is missing", safetensors_path(file), full));
    return tensor;
}

const struct safetensor *recorded_type(const struct safetensors *file, const char *name, enum safetensor_type type)
{
    const struct safetensor *tensor = recorded(file, "%s", name);
    if (tensor->type != type)
        must(error_set(&error, ERROR_FORMAT, "%s: expected a tensor %s of type %s", safetensors_path(file), name,
                       safetensor_type_name(type)));
    return tensor;
}

const float *recorded_floats(const struct safetensors *file, const char *name, size_t n)
{
    const struct safetensor *tensor = recorded_type(file, name, SAFETENSOR_F32);
    if (safetensor_elements(tensor) != n)
        must(error_set(&error, ERROR_FORMAT, "%s: expected %s with %zu floats", safetensors_path(file), name, n));
    return tensor->data;
}
