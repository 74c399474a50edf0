/* Tensors of a file, to be edited and written again.
 *
 *     static struct tensor_set set;
 *     tensor_set_rename(&set, file, dimensions, CLIP_HUGGINGFACE);
 *     tensor_set_find(&set, "logit_scale")->shape[0] = 2;      // values and names are borrowed from file and set
 *     tensor_set_write(&set, path);
 *     tensor_set_free(&set);
 */
#pragma once

#include "models/files/clip_file.h"
#include "models/files/safetensors.h"

enum { TENSOR_SET_MOST = 256 };

struct tensor_set {
    size_t count;
    struct safetensor tensors[TENSOR_SET_MOST];
    char names[TENSOR_SET_MOST][160];
    float *turned[TENSOR_SET_MOST];
};

/* An empty set becomes the tensors of a file. */
void tensor_set_copy(struct tensor_set *set, const struct safetensors *file);

/* An empty set becomes a model with the leading ones and under the names of others: the reverse of what clip_file does. file: under
 * OpenAI's names. */
void tensor_set_rename(struct tensor_set *set, const struct safetensors *file, const struct clip_dimensions *dimensions,
                       enum clip_naming naming);

/* The test fails where there is none. */
struct safetensor *tensor_set_find(struct tensor_set *set, const char *name);
void tensor_set_drop(struct tensor_set *set, const char *name);

void tensor_set_write(const struct tensor_set *set, const char *path);
void tensor_set_free(struct tensor_set *set);
