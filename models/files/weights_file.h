/* Opens files of weights in any supported format.
 *
 *     struct safetensors *file;
 *     TRY(weights_file_open(&file, "ViT-B-32.pt", WEIGHTS_WHOLE, error));
 *     ... safetensors_find(file, "visual.proj") ...
 *     safetensors_close(file);
 *
 * The formats are safetensors, PyTorch's archives (torch/torch_file.h), and either of them in shards, by an index of the tensors in
 * each, as Hugging Face's transformers write them: model.safetensors.index.json, pytorch_model.bin.index.json. An index is
 * recognised by its name, other files by their bytes. Names lack what wrappers of a model added (safetensors_unwrap).
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "models/files/safetensors.h"

/* The index must name exactly the tensors that its files have. */
status weights_file_open(struct safetensors **file, const char *path, enum weights_part part, struct error *error);

/* false: `other` is this file, or one of the shards of this index. */
bool weights_file_is_other(const char *path, const char *other);

struct weights_shards {
    json_t *root;
    json_t *map;  /* tensor's name → file's name; inside root */
    char **paths; /* the files, each once, sorted; owned */
    size_t count;
};

bool weights_shards_is_index(const char *path); /* by its name: NAME.index.json */

status weights_shards_read(struct weights_shards *shards, const char *path, struct error *error);
void weights_shards_free(struct weights_shards *shards); /* also after a failure */
