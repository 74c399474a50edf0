#include "harness/heads/heads.h"

#include "core/text.h"

#define ENTRY(name) &head_##name,
static const struct head *const heads[] = {HEADS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(head, struct head, heads, "suite", "head")
