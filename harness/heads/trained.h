/* The groups of parameters that are trained: one table, over which optimizer, guard, resume files, replicas and memory
 * estimates iterate. A new group is a bit in groups.h, a row in trained.c and the file of its parameters.
 *
 *     struct trained_group group;
 *     for (size_t i = 0; trained_group_at(model, i, &group); i++)
 *         TRY(parameters_reset(group.parameters, error));
 */
#pragma once

#include "harness/heads/model.h"

struct trained_group {
    const char *name; /* of its arrays in a resume file */
    struct parameters *parameters;
};

/* The groups that are trained, in a fixed order. False past the last one. */
bool trained_group_at(const struct model *model, size_t index, struct trained_group *group);

/* The encoding of a training step with a tower: with adapters and the samples' routers if adapters are trained, with
 * gradients if anything of the tower is trained. Each tower has an arena of its own. */
void trained_encoding(struct model *model, enum tower tower, const int32_t *routers, struct encoding *encoding);

/* Values that an update can change. */
size_t trained_values(const struct model *model);

/* A fresh optimizer for all of them. */
status trained_groups_reset(const struct model *model, struct error *error);
