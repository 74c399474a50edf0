/* The image tower of a classifier: drawn (model.weights: scratch), taken from a CLIP, or read from the file of a vision
 * transformer, which may have experts in place of MLPs and a head.
 *
 *     TRY(image_tower_load(model, POOL_CLASS_TOKEN, mode, error));             // model->clip
 *     TRY(image_tower_load_experts(model, error));                             // model->adapters, once they were started
 *     TRY(image_tower_has_head(model, classes, &there, error));
 */
#pragma once

#include "harness/model/model.h"
#include "models/vit.h"

status image_tower_load(struct model *model, enum pool pool, enum parameters_mode mode, struct error *error);

/* Opens the tower as the file has it, with its pooling and experts, for settings without a suite. */
status image_tower_open(struct model *model, struct error *error);

/* Reads experts and routers from the file. Routers that it lacks keep their start values; without experts in the
 * file, all weights do. ERROR_ARGUMENT where blocks, number or kind of the experts differ from the suite's. */
status image_tower_load_experts(struct model *model, struct error *error);

/* Whether the file has a head for this number of classes. */
status image_tower_has_head(const struct model *model, size_t classes, bool *there, struct error *error);

/* Describes the file of weights, for the identity of a run. */
status image_tower_look(struct vit_file *found, bool *is_vit, const struct settings *settings, struct error *error);
