#include "models/optimizers/optimizer.h"

#include "core/registry.h"

#define ENTRY(name) &optimizer_##name,
static const struct optimizer *const optimizers[] = {OPTIMIZERS(ENTRY)};
#undef ENTRY

REGISTRY_AT(optimizer, struct optimizer, optimizers)
