/* The kinds of experts by name. */
#include "adapters/experts/kind.h"

#include "core/text.h"

#define ENTRY(name) &expert_##name,
static const struct expert_kind *const kinds[] = {EXPERT_KINDS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(expert_kind, struct expert_kind, kinds, "suite", "kind of expert")

const struct expert_kind *expert_kind_of(const struct adapter_settings *settings)
{
    return settings->kind != NULL ? settings->kind : &expert_lora;
}
