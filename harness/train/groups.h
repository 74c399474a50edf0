/* What a method can train, as groups of parameters. Optimizer, guard, resume files, replicas and sizes walk over the groups
 * of an experiment and know no method.
 *
 *     struct trained_group group;
 *     for (size_t i = 0; trained_group_at(e, i, &group); i++)
 *         TRY(parameters_reset(group.parameters, error));
 */
#ifndef MTIL_HARNESS_TRAIN_GROUPS_H
#define MTIL_HARNESS_TRAIN_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct experiment;
struct options;
struct parameters;

/* Bits of a set. Adapters: experts and routers of both towers. Towers: their weights; logit_scale belongs to neither and
 * is never trained. Adapters are trained beside frozen towers, so they do not go together with one. */
enum parameter_group { GROUP_ADAPTERS = 1, GROUP_IMAGE_TOWER = 2, GROUP_TEXT_TOWER = 4 };
enum { GROUPS_NONE = 0, GROUPS_TOWERS = GROUP_IMAGE_TOWER | GROUP_TEXT_TOWER };

/* For methods that always train the same. */
unsigned groups_none(const struct options *options);
unsigned groups_adapters(const struct options *options);
unsigned groups_towers(const struct options *options);

struct trained_group {
    const char *name; /* of its arrays in a resume file */
    struct parameters *parameters;
};

/* The groups that the experiment trains, in a fixed order. False past the last one. */
bool trained_group_at(const struct experiment *experiment, size_t index, struct trained_group *group);

/* Values that an update can change. */
size_t trained_values(const struct experiment *experiment);

/* A fresh optimizer for all of them. */
status trained_groups_reset(const struct experiment *experiment, struct error *error);

#endif
