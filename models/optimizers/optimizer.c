#include "models/optimizers/optimizer.h"

#include "core/text.h"

#define ENTRY(name) &optimizer_##name,
static const struct optimizer *const optimizers[] = {OPTIMIZERS(ENTRY)};
#undef ENTRY

REGISTRY_AT(optimizer, struct optimizer, optimizers)
