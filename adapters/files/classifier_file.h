/* A classifier with experts in place of MLPs as one safetensors file: the tower without the MLPs that are replaced and the head
 * under timm's names, experts and routers under those of adapters (adapters/README.md), the metadata of both.
 *
 *     TRY(clip_replace_mlps(vit, TOWER_IMAGE, adapters_hooks(adapters, TOWER_IMAGE), error));
 *     TRY(classifier_save(vit, head, adapters, &metadata, "weights.safetensors", error));
 */
#pragma once

#include "adapters/adapter.h"
#include "adapters/files/adapter_metadata.h"
#include "models/vit.h"

/* head, adapters (a model without mixtures) and metadata (whose first task has the head's classes) may be NULL. Adapters whose
 * router averages, in a tower that shares no MLP, are written as a dense model: the mean of a block's experts
 * (adapters_mean) becomes its MLP, under timm's names, and the model read from the file gives the same bits as evaluation.
 * A value that is not finite is an error, and nothing is written. */
status classifier_save(const struct clip *vit, const struct linear_head *head, const struct adapters *adapters,
                       const struct adapter_metadata *metadata, const char *path, struct error *error);
