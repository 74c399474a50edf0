/* Safetensors files, and CLIP weights in them. What opens must be readable to its last byte. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "models/files/clip_file.h"
#include "models/files/safetensors.h"

static void read_floats(const struct safetensor *tensor)
{
    struct error error;
    float *values = malloc((safetensor_elements(tensor) + 1) * sizeof *values);
    if (values != NULL)
        safetensor_to_floats(tensor, values, &error);
    free(values);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct safetensors *file;
    struct clip_file *clip;
    struct error error;
    int lost = 0;
    if (safetensors_open_memory(&file, "input", data, size, &error) == OK) {
        for (size_t i = 0; i < safetensors_count(file); i++) {
            const struct safetensor *tensor = safetensors_at(file, i);
            fuzz_touch(tensor->data, safetensor_elements(tensor) * safetensor_type_size(tensor->type));
            read_floats(tensor);
            lost |= safetensors_find(file, tensor->name) != tensor;
        }
        safetensors_close(file);
    }
    if (clip_file_open(&clip, input_file(data, size), &error) == OK)
        clip_file_close(clip);
    return lost;
}
