/* What a folder of fixtures holds. What is missing there, or has another form, ends the program with its name.
 *
 *     struct safetensors *file = recorded_open(folder, "task%zu.data.safetensors", task);
 *     const struct safetensor *images = recorded(file, "images");
 */
#pragma once

#include <jansson.h>

#include "models/files/safetensors.h"

json_t *recorded_json(const char *folder, const char *name); /* the caller drops the reference */
double recorded_number(const json_t *object, const char *key);

struct safetensors *recorded_open(const char *folder, const char *name, ...) PRINTF_LIKE(2, 3);
const struct safetensor *recorded(const struct safetensors *file, const char *name, ...) PRINTF_LIKE(2, 3);
const struct safetensor *recorded_type(const struct safetensors *file, const char *name, enum safetensor_type type);
/* n of them */
const float *recorded_floats(const struct safetensors *file, const char *name, size_t n);
