/* Weights: safetensors files, CLIPs in them, and PyTorch's archives: the zip, the pickle in it, the tensors it describes. What
 * opens must be readable to its last byte. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "models/files/clip_file.h"
#include "models/files/torch/tensors.h"
#include "models/files/torch/torch_file.h"

static void read_all(struct safetensors *file)
{
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensor *tensor = safetensors_at(file, i);
        float *values = xmalloc((safetensor_elements(tensor) + 1) * sizeof *values);
        fuzz_touch(tensor->data, safetensor_elements(tensor) * safetensor_type_size(tensor->type));
        safetensor_to_floats(tensor, values, &fuzz_error);
        assert(safetensors_find(file, tensor->name) == tensor);
        free(values);
    }
    safetensors_close(file);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct safetensors *file;
    struct torch_tensors tensors;
    struct clip_file *clip;
    const char *path = input_file(data, size);
    if (safetensors_open(&file, path, WEIGHTS_WHOLE, &fuzz_error) == OK)
        read_all(file);
    if (torch_file_open(&file, path, WEIGHTS_WHOLE, &fuzz_error) == OK)
        read_all(file);
    (void)torch_tensors_find(&tensors, "input", data, size, &fuzz_error); /* the pickle by itself */
    torch_tensors_free(&tensors);
    if (clip_file_open(&clip, path, WEIGHTS_WHOLE, &fuzz_error) == OK)
        clip_file_close(clip);
    return 0;
}
