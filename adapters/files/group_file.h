/* Parts of groups of parameters as tensors of a safetensors file: experts and routers of a stack, what a task has of its own.
 *
 *     size_t count;
 *     struct group_tensor *list = group_tensors_of_tasks(deltas->parameters, tasks, &count);
 *     TRY(group_tensors_save(list, count, own, own_count, extra, "adapters.safetensors", error));
 *     TRY(group_tensors_load(list, count, file, "", GROUP_COMPLETE, error));
 */
#pragma once

#include "models/files/safetensors.h"
#include "models/parameters.h"

struct group_tensor {
    char name[128];
    struct parameters *group;
    size_t offset, size; /* in the group's values */
    int rank;
    size_t shape[TENSOR_RANK];
    bool routing; /* a router or noise matrix */
};

/* Fills in all but name and routing: slice number `slice` along the first axis of a tensor of the group; of a vector, [1]. */
void group_tensor_slice(struct group_tensor *tensor, struct parameters *group, size_t number, size_t slice);

/* The slices of all tensors, of task 0, task 1 and so on, with the task's number behind the tensor's name; one that has a single slice
 * for all tasks is there once. The caller frees. */
struct group_tensor *group_tensors_of_tasks(struct parameters *group, size_t tasks, size_t *count);

status group_tensor_download(const struct group_tensor *tensor, float *values, struct error *error);
status group_tensor_upload(const struct group_tensor *tensor, const float *values, struct error *error);

enum group_missing {
    GROUP_COMPLETE,         /* every tensor must be there */
    GROUP_ROUTERS_OPTIONAL, /* routers and noise matrices that are absent stay as they are */
    GROUP_ZERO_LEFT_OUT     /* any tensor may be absent and becomes zero */
};

/* Reads every tensor as prefix + name. A value that is not finite is an error. Other tensors of the file are left alone. */
status group_tensors_load(const struct group_tensor *list, size_t count, const struct safetensors *file,
                          const char *prefix, enum group_missing missing, struct error *error);

/* A tensor of this shape must be in the file. */
status group_tensor_check(const struct safetensors *file, const char *name, int rank, const size_t *shape,
                          struct error *error);

enum { GROUP_METADATA = 32 };

/* Further tensors and metadata to write, borrowed. */
struct group_extra {
    const struct safetensor *tensors;
    size_t tensor_count;
    const struct safetensors_metadata *metadata;
    size_t metadata_count;
};

/* Writes at most GROUP_METADATA keys in all, and the first of equal ones. A value that is not finite is an error, and
 * nothing is written. extra may be NULL. */
status group_tensors_save(const struct group_tensor *list, size_t count, const struct safetensors_metadata *metadata,
                          size_t metadata_count, const struct group_extra *extra, const char *path,
                          struct error *error);
