/* Safetensors files, and CLIP weights in them. What opens must be readable to its last byte. */
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "models/clip_file.h"
#include "models/safetensors.h"

static unsigned sum_bytes(const struct safetensor *tensor)
{
    size_t bytes = safetensor_elements(tensor) * safetensor_type_size(tensor->type);
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)tensor->data)[i];
    return sum;
}

static void read_floats(const struct safetensor *tensor)
{
    struct error error;
    float *values = malloc((safetensor_elements(tensor) + 1) * sizeof *values);
    if (values != NULL)
        safetensor_to_floats(tensor, values, &error);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors *file;
    struct clip_file *clip;
    struct error error;
    int lost = 0;
    if (safetensors_open_memory(&file, "input", data, size, &error) == OK) {
        volatile unsigned sum = 0;
        for (size_t i = 0; i < safetensors_count(file); i++) {
            const struct safetensor *tensor = safetensors_at(file, i);
            sum += sum_bytes(tensor);
            read_floats(tensor);
            lost |= safetensors_find(file, tensor->name) != tensor;
        }
        safetensors_close(file);
    }
    if (clip_file_open_memory(&clip, "input", data, size, &error) == OK)
        clip_file_close(clip);
    return lost;
}
