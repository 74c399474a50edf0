/* Weights of whatever kind: the one place where the files of others are opened.
 *
 *     struct safetensors *file;
 *     TRY(weights_file_open(&file, "ViT-B-32.pt", error));
 *     ... safetensors_find(file, "visual.proj") ...
 *     safetensors_close(file);
 *
 * Safetensors files; PyTorch's archives (torch/torch_file.h); and either of them in shards, by the name of their index:
 * model.safetensors.index.json, pytorch_model.bin.index.json. What it is shows in the bytes, not in the name, but for an index.
 */
#ifndef MTIL_MODELS_FILES_WEIGHTS_FILE_H
#define MTIL_MODELS_FILES_WEIGHTS_FILE_H

#include "models/files/safetensors.h"

status weights_file_open(struct safetensors **file, const char *path, struct error *error);

/* Names, types, shapes and metadata alone: data is NULL. */
status weights_file_open_header(struct safetensors **file, const char *path, struct error *error);

#endif
