/* Adapters in safetensors files, under the public names, so that PyTorch code of the field loads them:
 * visual.transformer.resblocks.N.adaptmlp_list.K.down_proj.weight, ….router_list.T, ….w_noise_list.T; text without
 * "visual.". This program's further metadata and tensors are in adapter_metadata.h and selector_file.h.
 *
 *     TRY(adapter_file_settings(file, "", &settings, error));            // experts, bottleneck, tasks from the shapes
 *     TRY(adapters_create(&adapters, backend, &arena, &dimensions, &settings, PARAMETERS_FROZEN, error));
 *     TRY(adapters_load(adapters, file, "", ADAPTER_ROUTERS_OPTIONAL, error));
 *     TRY(adapters_save(adapters, NULL, "task10.safetensors", error));
 */
#ifndef MTIL_ADAPTERS_FILES_ADAPTER_FILE_H
#define MTIL_ADAPTERS_FILES_ADAPTER_FILE_H

#include "adapters/adapter.h"
#include "core/text.h"
#include "models/files/safetensors.h"

/* One expert's or router's tensor inside the stacks. */
struct adapter_tensor {
    char name[128];
    enum tower tower;
    int rank;
    size_t shape[2], offset, size; /* offset in the tower's group */
    bool routing;                  /* a router or noise matrix */
};

size_t adapters_tensor_count(const struct adapters *adapters);
void adapters_tensor_at(const struct adapters *adapters, size_t index, struct adapter_tensor *tensor);

status adapters_tensor_download(const struct adapters *adapters, const struct adapter_tensor *tensor, float *values,
                                struct error *error);
status adapters_tensor_upload(struct adapters *adapters, const struct adapter_tensor *tensor, const float *values,
                              struct error *error);

enum adapter_missing {
    ADAPTER_COMPLETE,         /* every tensor must be there */
    ADAPTER_ROUTERS_OPTIONAL, /* routers and noise matrices that are absent stay as they are */
    ADAPTER_ZERO_LEFT_OUT     /* any tensor may be absent and becomes zero */
};

/* Reads every tensor as prefix + public name. Unknown extra tensors are left alone (the reference writes some:
 * adaptmlp.*, ln_3, mean, std). */
status adapters_load(struct adapters *adapters, const struct safetensors *file, const char *prefix,
                     enum adapter_missing missing, struct error *error);

enum { ADAPTER_EXTRA_KEYS = 10 };

/* Further tensors and metadata to write, borrowed. At most ADAPTER_EXTRA_KEYS of metadata; keys that the adapters write
 * themselves are left out. */
struct adapter_extra {
    const struct safetensor *tensors;
    size_t tensor_count;
    const struct safetensors_metadata *metadata;
    size_t metadata_count;
};

/* A value that is not finite is an error, and nothing is written. adapters_load fails on such a value, too, and names the
 * tensor. extra may be NULL. */
status adapters_save(const struct adapters *adapters, const struct adapter_extra *extra, const char *path,
                     struct error *error);

/* The adapters of a file, for inference: PARAMETERS_FROZEN in the arena, settings from the file (top_k 2 and scale 0.1
 * where it does not say). The `count` routers listed (negative: none) must be there in every block of both towers; the
 * error lists the routers that the file has. */
status adapters_open(struct adapters **adapters, struct backend *backend, struct arena *arena,
                     const struct clip_dimensions *dimensions, const struct safetensors *file, const int *routers,
                     size_t count, struct error *error);

/* Fills list with the numbers of a file's routers, "0, 1, 2", for messages. */
status adapter_file_routers(const struct safetensors *file, struct text *list, struct error *error);

/* Number of experts, bottleneck and tasks (the highest router + 1) from names and shapes; top_k, scale and input from
 * the metadata where adapters_save wrote them, else as they are in *settings. Whether the widths fit the model shows
 * when the tensors are loaded. */
status adapter_file_settings(const struct safetensors *file, const char *prefix, struct adapter_settings *settings,
                             struct error *error);

#endif
