#include "adapters/identity.h"

#include <stdlib.h>

#include "adapters/routers/router.h"
#include "core/alloc.h"
#include "core/digest.h"

void adapter_identity_create(struct adapter_identity *identity, const struct adapters *adapters)
{
    *identity = (struct adapter_identity){.adapters = adapters};
    for (int t = 0; t < TOWERS; t++)
        identity->changes[t] = xcalloc(adapters->towers[t].parameters->segments, sizeof *identity->changes[t]);
}

void adapter_identity_free(struct adapter_identity *identity)
{
    for (int t = 0; t < TOWERS; t++)
        free(identity->changes[t]);
    *identity = (struct adapter_identity){0};
}

status adapter_identity_read(struct adapter_identity *identity, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        TRY(parameters_changes(identity->adapters->towers[t].parameters, identity->changes[t], error));
    return OK;
}

uint64_t adapter_identity_of(const struct adapter_identity *identity, enum tower which, size_t router,
                             const int32_t *chosen)
{
    enum { PARTS = 4 };
    const struct adapter_tower *tower = &identity->adapters->towers[which];
    const struct parameter *list = tower->parameters->list;
    const uint64_t *changes = identity->changes[which];
    const struct adapter_settings *s = &identity->adapters->settings;
    bool all = adapters_choices(identity->adapters, which) == 0;
    size_t used = all ? s->experts : s->top_k;
    uint64_t digest = 0;
    for (size_t decision = 0; decision < tower->decisions; decision++) {
        const struct expert_bank *bank = &tower->banks[decision * tower->blocks / tower->decisions];
        const size_t parts[PARTS] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
        if (router_kind_of(s)->weights)
            digest = digest_quick(&changes[list[bank->routers].first_segment + router], sizeof *changes, digest);
        const size_t shared[PARTS] = {bank->shared.down_weight, bank->shared.down_bias, bank->shared.up_weight,
                                      bank->shared.up_bias};
        for (size_t i = 0; s->shared_expert && i < PARTS; i++)
            digest = digest_quick(&changes[list[shared[i]].first_segment], sizeof *changes, digest);
        for (size_t k = 0; k < used; k++) {
            uint64_t expert[1 + PARTS] = {all ? k : (uint64_t)chosen[decision * used + k]};
            for (size_t i = 0; i < PARTS; i++)
                expert[1 + i] = changes[list[parts[i]].first_segment + expert[0]];
            digest = digest_quick(expert, sizeof expert, digest);
        }
    }
    return digest;
}
