/* The table of gates. "none" is that of a delta of the weight: its hooks are NULL, and the halves follow one another. */
#include "adapters/gates/gate.h"

#include "core/text.h"

const struct delta_gate gate_none = {.name = "none"};

#define ENTRY(name) &gate_##name,
static const struct delta_gate *const gates[] = {DELTA_GATES(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(delta_gate, struct delta_gate, gates, "deltas", "gate")
