/* Adapters in safetensors files, under the public names, so that PyTorch code of the field loads them:
 * visual.transformer.resblocks.N.adaptmlp_list.K.down_proj.weight, ….router_list.T, ….w_noise_list.T; text without
 * "visual.". This program's further metadata and tensors are in adapter_metadata.h and adapters/files/selector_file.h.
 *
 *     TRY(adapter_file_settings(file, "", &settings, error));            // experts, bottleneck, tasks from the shapes
 *     TRY(adapters_create(&adapters, backend, &arena, &dimensions, &settings, PARAMETERS_FROZEN, error));
 *     TRY(adapters_load(adapters, file, "", GROUP_ROUTERS_OPTIONAL, error));
 *     TRY(adapters_save(adapters, NULL, "task10.safetensors", error));
 *
 *     TRY(clip_replace_mlps(vit, TOWER_IMAGE, adapters_hooks(adapters, TOWER_IMAGE), error));
 *     TRY(classifier_save(vit, head, adapters, &metadata, "weights.safetensors", error));
 */
#pragma once

#include "adapters/adapter.h"
#include "adapters/files/adapter_metadata.h"
#include "adapters/files/group_file.h"
#include "core/text.h"
#include "models/vit.h"

/* An expert's, a router's or a noise matrix's tensor, block after block. */
size_t adapters_tensor_count(const struct adapters *adapters);
void adapters_tensor_at(const struct adapters *adapters, size_t index, struct group_tensor *tensor);

/* Reads every tensor as prefix + public name (the reference writes others, too: adaptmlp.*, ln_3, mean, std). */
status adapters_load(struct adapters *adapters, const struct safetensors *file, const char *prefix,
                     enum group_missing missing, struct error *error);

/* Metadata of extra with keys that the adapters write themselves is left out. A value that is not finite is an error, and nothing is
 * written. adapters_load fails on such a value, too, and names the tensor. extra may be NULL. */
status adapters_save(const struct adapters *adapters, const struct group_extra *extra, const char *path,
                     struct error *error);

/* The adapters of a file, for inference: PARAMETERS_FROZEN in the arena, settings from the file. The `count` routers listed
 * (negative: none) must be there in every block of both towers; the error lists the routers that the file has. */
status adapters_open(struct adapters **adapters, struct backend *backend, struct arena *arena,
                     const struct clip_dimensions *dimensions, const struct safetensors *file, const int *routers,
                     size_t count, struct error *error);

/* Fills list with the numbers of a file's routers, "0, 1, 2", for messages. */
status adapter_file_routers(const struct safetensors *file, struct text *list, struct error *error);

/* Number of experts, bottleneck and tasks (the highest router + 1) from names and shapes; what shapes do not show from the
 * metadata, or as it is by default in a suite (top_k 2, less with fewer experts, and scale 0.1). Whether the widths fit the
 * model shows when the tensors are loaded. */
status adapter_file_settings(const struct safetensors *file, const char *prefix, struct adapter_settings *settings,
                             struct error *error);

/* A classifier with experts in place of MLPs as one file: the tower without the MLPs that are replaced and the head under timm's
 * names, experts and routers under those of adapters (adapters/README.md), the metadata of both.
 * head, adapters (a model without mixtures) and metadata (whose first task has the head's classes) may be NULL. Adapters whose
 * router averages, in a tower that shares no MLP, are written as a dense model: the mean of a block's experts
 * (adapters_mean) becomes its MLP, under timm's names, and the model read from the file gives the same bits as evaluation.
 * A value that is not finite is an error, and nothing is written. */
status classifier_save(const struct clip *vit, const struct linear_head *head, const struct adapters *adapters,
                       const struct adapter_metadata *metadata, const char *path, struct error *error);
