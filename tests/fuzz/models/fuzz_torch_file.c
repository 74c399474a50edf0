/* PyTorch's archives: the zip, the pickle in it, the tensors it describes. What opens must be readable to its last byte. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include "models/files/torch/tensors.h"
#include "models/files/torch/torch_file.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct safetensors *file;
    struct torch_tensors tensors;
    struct error error;
    int lost = 0;
    if (torch_file_open(&file, input_file(data, size), &error) == OK) {
        for (size_t i = 0; i < safetensors_count(file); i++) {
            const struct safetensor *tensor = safetensors_at(file, i);
            fuzz_touch(tensor->data, safetensor_elements(tensor) * safetensor_type_size(tensor->type));
            lost |= safetensors_find(file, tensor->name) != tensor;
        }
        safetensors_close(file);
    }
    (void)torch_tensors_find(&tensors, "input", data, size, &error); /* the pickle by itself */
    torch_tensors_free(&tensors);
    return lost;
}
