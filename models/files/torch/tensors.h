/* The tensors that a pickle of PyTorch describes: names, types, shapes, and the place of their values in a storage.
 *
 *     struct torch_tensors tensors;
 *     status result = torch_tensors_find(&tensors, path, bytes, size, error);
 *     ... tensors.list[i].tensor.name, tensors.list[i].storage ...
 *     torch_tensors_free(&tensors);                                       // also after a failure
 *
 * Pure: bytes in, descriptions out. Every tensor lies inside its storage as the pickle states that storage.
 */
#pragma once

#include <stdbool.h>

#include "core/pickle.h"
#include "models/files/safetensors.h"

struct torch_storage {
    char *key; /* the entry data/KEY has its values; owned */
    enum safetensor_type type;
    size_t elements;
};

struct torch_tensor {
    struct safetensor tensor; /* its name is owned; data: NULL until the values are read */
    size_t storage;
    size_t stride[SAFETENSORS_RANK], offset; /* in elements */
    bool contiguous;
};

struct torch_tensors {
    struct torch_tensor *list;
    size_t count;
    struct torch_storage *storages; /* each once, however many tensors share it */
    size_t storage_count;
    struct safetensors_metadata *metadata; /* written by this program beside the tensors; owned */
    size_t metadata_count;
};

/* Finds the tensors of a state dict, which is the pickle itself or its "state_dict", "model", "model_state_dict" or "module";
 * of a TorchScript archive the tensors of the module and of all modules inside it, with names joined by dots. */
status torch_tensors_find(struct torch_tensors *tensors, const char *path, const void *bytes, size_t size,
                          struct error *error);
void torch_tensors_free(struct torch_tensors *tensors);

/* "FloatStorage"; NULL: PyTorch has no storage of this type. */
const char *torch_storage_name(enum safetensor_type type);

/* Beside the tensors, under this key: texts by name. */
#define TORCH_METADATA "mtil_metadata"
