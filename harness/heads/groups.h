/* The groups of parameters that a method can train. trained.h walks over those of a model. */
#pragma once

#include "core/option.h"

/* Bits of a set. Adapters: experts and routers of both towers. Towers: their weights; logit_scale belongs to neither
 * and is never trained. Head: its own weights, if any (heads/head.h). Deltas: low-rank updates of the towers' matrices
 * (adapters/deltas.h). Prefixes: keys and values beside frozen towers (adapters/prefixes.h).
 * Adapters, deltas and prefixes are trained alone; experts that replace MLPs may be trained with the rest of the tower. */
enum parameter_group {
    GROUP_ADAPTERS = 1,
    GROUP_IMAGE_TOWER = 2,
    GROUP_TEXT_TOWER = 4,
    GROUP_HEAD = 8,
    GROUP_DELTAS = 16,
    GROUP_PREFIXES = 32
};
/* GROUPS_WEIGHTS: those with which the towers compute otherwise for every image, whatever its router. */
enum {
    GROUPS_NONE = 0,
    GROUPS_TOWERS = GROUP_IMAGE_TOWER | GROUP_TEXT_TOWER,
    GROUPS_WEIGHTS = GROUPS_TOWERS | GROUP_DELTAS
};

/* Whether what is trained stands beside frozen towers, and so in files by itself. */
bool groups_beside_towers(unsigned groups);

/* For methods whose groups the suite chooses: their keys, and the groups of method.train. */
extern const struct option groups_options[];
unsigned groups_chosen(const struct options *options);
