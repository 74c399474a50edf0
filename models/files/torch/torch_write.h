/* A state dict as torch.save writes it: {"state_dict": OrderedDict of tensors, "mtil_metadata": texts by name}.
 *
 *     TRY(torch_write("checkpoint.pth", tensors, count, metadata, metadata_count, error));
 *
 * torch.load(path, weights_only=True) reads it, and so does torch_file_open, metadata and all. The same tensors give the same bytes.
 */
#pragma once

#include "models/files/safetensors.h"

/* Writes the whole file or none. ERROR_ARGUMENT for the types U16, U32 and U64, for which PyTorch has no storage. */
status torch_write(const char *path, const struct safetensor *tensors, size_t count,
                   const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error);
