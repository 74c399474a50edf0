/* Gates of low-rank deltas: what happens between their halves (models/delta.h). One file in this folder and one line here each. */
#pragma once

#include "models/delta.h"

#define DELTA_GATES(X)                                                                                                 \
    X(none)                                                                                                            \
    X(magnitude)                                                                                                       \
    X(rank_one)

#define DECLARE(name) extern const struct delta_gate gate_##name;
DELTA_GATES(DECLARE)
#undef DECLARE

const struct delta_gate *delta_gate_at(size_t index); /* NULL past the last one */
status delta_gate_find(const struct delta_gate **gate, const char *name, struct error *error);
