#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "tests/replay/pyjson.h"
#include "tests/replay/replay.h"

void *replay_take(struct replay *r, size_t count, size_t size)
{
    GROW(r->taken, r->taken_count);
    return r->taken[r->taken_count++] = xcalloc(count > 0 ? count : 1, size);
}

double *replay_widened(struct replay *r, const float *values, size_t n)
{
    double *wide = replay_take(r, n, sizeof *wide);
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    return wide;
}

const char *replay_text(struct replay *r, const char *format, ...)
{
    enum { LONGEST = 128 };
    char *text = replay_take(r, LONGEST, 1);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, LONGEST, format, arguments);
    va_end(arguments);
    return text;
}

void replay_give_back(struct replay *r)
{
    while (r->taken_count > 0)
        free(r->taken[--r->taken_count]);
    free(r->taken);
}

json_t *recorded_json(const struct replay *r, const char *name)
{
    json_t *json;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    must(pyjson_read(&json, path, &error));
    return json;
}

double recorded_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        must(error_set(&error, ERROR_FORMAT, "config.json: no number \"%s\"", key));
    return json_number_value(value);
}

size_t recorded_size(const json_t *object, const char *key)
{
    double number = recorded_number(object, key);
    if (!(number >= 0 && number < 1e9))
        must(error_set(&error, ERROR_FORMAT, "config.json: %s: expected a size, found %g", key, number));
    return (size_t)number;
}

size_t recorded_at(const json_t *list, size_t index)
{
    const json_t *value = json_array_get(list, index);
    return json_is_integer(value) ? (size_t)json_integer_value(value) : SIZE_MAX;
}

double recorded_tolerance(const struct replay *r, const char *key)
{
    return recorded_number(json_object_get(r->config, "tolerances"), key);
}

#define FULL_NAME(full, name)                                                                                          \
    char full[192];                                                                                                    \
    va_list arguments;                                                                                                 \
    va_start(arguments, name);                                                                                         \
    vsnprintf(full, sizeof full, name, arguments);                                                                     \
    va_end(arguments)

struct safetensors *recorded_open(const struct replay *r, const char *name, ...)
{
    struct safetensors *file;
    char path[1024];
    FULL_NAME(full, name);
    snprintf(path, sizeof path, "%s/%s", r->folder, full);
    must(safetensors_open(&file, path, WEIGHTS_WHOLE, &error));
    return file;
}

const struct safetensor *recorded_if_there(const struct safetensors *file, const char *name, ...)
{
    FULL_NAME(full, name);
    return safetensors_find(file, full);
}

const struct safetensor *recorded(const struct safetensors *file, const char *name, ...)
{
    FULL_NAME(full, name);
    const struct safetensor *tensor = safetensors_find(file, full);
    if (tensor == NULL)
        must(error_set(&error, ERROR_FORMAT, "%s: tensor %s is missing", safetensors_path(file), full));
    if (tensor->type == SAFETENSOR_F32)
        must(safetensors_expect_finite(file, full, tensor->data, safetensor_elements(tensor), &error));
    return tensor;
}

const float *recorded_floats(const struct safetensors *file, size_t n, const char *name, ...)
{
    FULL_NAME(full, name);
    const struct safetensor *tensor = recorded(file, "%s", full);
    if (tensor->type != SAFETENSOR_F32 || safetensor_elements(tensor) != n)
        must(error_set(&error, ERROR_FORMAT, "%s: expected %s with %zu floats", safetensors_path(file), full, n));
    return tensor->data;
}

const int32_t *recorded_integers(const struct safetensors *file, const char *name, ...)
{
    FULL_NAME(full, name);
    const struct safetensor *tensor = recorded(file, "%s", full);
    if (tensor->type != SAFETENSOR_I32)
        must(error_set(&error, ERROR_FORMAT, "%s: expected %s of integers", safetensors_path(file), full));
    return tensor->data;
}

double recorded_value(const struct safetensor *tensor, size_t i)
{
    return tensor->type == SAFETENSOR_F64 ? ((const double *)tensor->data)[i]
                                          : (double)((const float *)tensor->data)[i];
}

double recorded_largest(const struct safetensor *tensor)
{
    double largest = 0;
    for (size_t i = 0; i < safetensor_elements(tensor); i++)
        largest = fmax(largest, fabs(recorded_value(tensor, i)));
    return largest;
}

void recorded_option(struct options *options, const struct option *table, const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    if (options_find(table, name) != NULL)
        must(options_set(options, name, text, "config.json", &error));
}

void replay_floats(struct replay *r, const char *quantity, const float *got, const struct safetensor *expected,
                   double tolerance)
{
    for (size_t i = 0; i < safetensor_elements(expected); i++)
        report_value(&r->report, quantity, (double)got[i], recorded_value(expected, i), tolerance);
}

void replay_doubles(struct replay *r, const char *quantity, const double *got, const struct safetensor *expected,
                    double tolerance)
{
    for (size_t i = 0; i < safetensor_elements(expected); i++)
        report_value(&r->report, quantity, got[i], recorded_value(expected, i), tolerance);
}

void replay_compare(struct replay *r, const char *quantity, const float *got, const struct safetensor *expected,
                    double tolerance)
{
    replay_floats(r, quantity, replay_download(r, got, safetensor_elements(expected) * sizeof(float)), expected,
                  tolerance);
}
