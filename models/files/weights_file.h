/* Opens files of weights in any supported format.
 *
 *     struct safetensors *file;
 *     TRY(weights_file_open(&file, "ViT-B-32.pt", error));
 *     ... safetensors_find(file, "visual.proj") ...
 *     safetensors_close(file);
 *
 * The formats are safetensors, PyTorch's archives (torch/torch_file.h), and either of them in shards, by their index:
 * model.safetensors.index.json, pytorch_model.bin.index.json. An index is recognised by its name, other files by their bytes.
 */
#pragma once

#include "models/files/safetensors.h"

status weights_file_open(struct safetensors **file, const char *path, struct error *error);

/* Names, types, shapes and metadata alone: data is NULL. */
status weights_file_open_header(struct safetensors **file, const char *path, struct error *error);
