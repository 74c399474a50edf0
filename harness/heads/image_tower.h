/* The image tower that a classifier is trained on: drawn (model.weights: scratch), taken from a CLIP, or read from the file of a
 * vision transformer, which may hold experts in place of MLPs and a head.
 *
 *     TRY(image_tower_load(e, POOL_CLASS_TOKEN, mode, error));             // e->model.clip
 *     TRY(image_tower_load_experts(e, error));                             // e->model.adapters, once they were started
 *     TRY(image_tower_has_head(e, classes, &there, error));
 */
#ifndef MTIL_HARNESS_HEADS_IMAGE_TOWER_H
#define MTIL_HARNESS_HEADS_IMAGE_TOWER_H

#include "harness/run/experiment.h"
#include "models/vit.h"

status image_tower_load(struct experiment *experiment, enum pool pool, enum parameters_mode mode, struct error *error);

/* As the file has it, pooling and experts included, of settings without a suite. */
status image_tower_open(struct experiment *experiment, struct error *error);

/* Experts and routers of the file. Routers that it lacks stay as they were started, and so do all where it has no experts.
 * ERROR_ARGUMENT where the blocks, the number or the kind of experts are not those of the suite. */
status image_tower_load_experts(struct experiment *experiment, struct error *error);

/* Whether the file has a head for so many classes. */
status image_tower_has_head(const struct experiment *experiment, size_t classes, bool *there, struct error *error);

/* What a file of weights is, for the identity of a run. */
status image_tower_look(struct vit_file *found, bool *is_vit, const struct settings *settings, struct error *error);

#endif
