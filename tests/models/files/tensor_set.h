/* The file of a test program, and its tensors, to be edited and written again.
 *
 *     static struct tensor_set set;
 *     tensor_set_rename(&set, file, dimensions, CLIP_HUGGINGFACE);
 *     tensor_set_find(&set, "logit_scale")->shape[0] = 2;      // values and names are borrowed from file and set
 *     tensor_set_write(&set, test_path());
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

/* In the folder where the program runs; it is removed at its end. */
const char *test_path(void);
struct safetensors *open_file(const char *path);

/* What a file of another program has or lacks: all that is not NULL is done, in this order. */
struct file_edit {
    const char *without; /* tensors whose names contain it are left out */
    const char *drop;    /* the tensor of this name, too */
    const char *strip;   /* names that begin with it lose it */
    const char *prefix;  /* stands before all names */
    const struct safetensor *more;
};

/* Writes a file again with this metadata alone. */
void edit_file(const char *path, const struct file_edit *edit, const struct safetensors_metadata *metadata,
               size_t metadata_count);
