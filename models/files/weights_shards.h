/* Weights in several files, with an index of the tensors in each, as Hugging Face's transformers write them.
 *
 *     struct weights_shards shards;
 *     status result = weights_shards_read(&shards, "model.safetensors.index.json", error);
 *     ... shards.paths[0] ...                                               // "model-00001-of-00002.safetensors"
 *     weights_shards_free(&shards);                                         // also after a failure
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "models/files/safetensors.h"

struct weights_shards {
    json_t *root;
    json_t *map;  /* tensor's name → file's name; inside root */
    char **paths; /* the files, each once, sorted; owned */
    size_t count;
};

bool weights_shards_is_index(const char *path); /* by its name: NAME.index.json */

status weights_shards_read(struct weights_shards *shards, const char *path, struct error *error);
void weights_shards_free(struct weights_shards *shards);

/* Joins all files, each opened by `open`; the index must name exactly the tensors that they have. */
status weights_shards_open(struct safetensors **file, const char *path,
                           status (*open)(struct safetensors **file, const char *path, struct error *error),
                           struct error *error);
