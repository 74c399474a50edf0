/* PyTorch's files: state dicts of torch.save (.pth, .pt, .bin) and TorchScript archives (OpenAI's .pt).
 *
 *     struct safetensors *file;
 *     TRY(torch_file_open(&file, "ViT-B-32.pt", WEIGHTS_WHOLE, error));
 *     ... safetensors_find(file, "visual.proj") ...
 *     safetensors_close(file);
 *
 * Nothing in such a file is run. Values are contiguous, whatever strides the file has.
 */
#pragma once

#include <stdbool.h>

#include "models/files/safetensors.h"

/* Whether a file that begins with these bytes is such an archive. */
bool torch_file_is_one(const void *beginning, size_t size);

/* ERROR_FORMAT for the pickles that PyTorch wrote before version 1.6, with advice; OK for everything else. */
status torch_file_refuse_old(const char *path, const void *beginning, size_t size, struct error *error);

status torch_file_open(struct safetensors **file, const char *path, enum weights_part part, struct error *error);

/* Writes a state dict as torch.save does: {"state_dict": OrderedDict of tensors, "mtil_metadata": texts by name}. torch.load(path,
 * weights_only=True) reads it, and so does torch_file_open, metadata and all. The same tensors give the same bytes. It is the whole file
 * or none. ERROR_ARGUMENT for the types U16, U32 and U64, for which PyTorch has no storage. */
status torch_file_write(const char *path, const struct safetensor *tensors, size_t count,
                        const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error);
