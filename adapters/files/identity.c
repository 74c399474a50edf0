#include "adapters/files/identity.h"

#include <stdlib.h>
#include <string.h>

#include "core/digest.h"

static const size_t *shape_of(const struct adapter_tower *tower, size_t parameter)
{
    return tower->parameters->list[parameter].shape;
}

/* Elements of one expert's, or one router's, part of a stacked parameter. */
static size_t part_of(const struct adapter_tower *tower, size_t parameter)
{
    const size_t *shape = shape_of(tower, parameter);
    return shape[1] * (tower->parameters->list[parameter].rank == 3 ? shape[2] : 1);
}

static status take_tower(struct adapter_identity *identity, int t, size_t *largest, struct error *error)
{
    const struct adapters *adapters = identity->adapters;
    const struct adapter_tower *tower = &adapters->towers[t];
    identity->experts[t] = calloc(array_size(tower->blocks, adapters->settings.experts), sizeof(uint64_t));
    identity->routers[t] = calloc(array_size(tower->blocks, adapters->settings.tasks), sizeof(uint64_t));
    if (identity->experts[t] == NULL || identity->routers[t] == NULL)
        return error_set(error, ERROR_MEMORY, "adapters: no memory for the digests of %zu blocks", tower->blocks);
    const struct expert_bank *bank = &tower->banks[0];
    const size_t stacks[] = {bank->down_weight, bank->routers};
    for (size_t i = 0; i < 2; i++) {
        size_t bytes = shape_of(tower, stacks[i])[0] * part_of(tower, stacks[i]) * sizeof(float);
        *largest = bytes > *largest ? bytes : *largest;
    }
    return OK;
}

status adapter_identity_create(struct adapter_identity *identity, const struct adapters *adapters, struct error *error)
{
    size_t largest = 0;
    *identity = (struct adapter_identity){.adapters = adapters};
    status result = OK;
    for (int t = 0; result == OK && t < TOWERS; t++)
        result = take_tower(identity, t, &largest, error);
    if (result == OK) {
        identity->staging = malloc(largest);
        if (identity->staging == NULL)
            result = error_set(error, ERROR_MEMORY, "adapters: no memory to look at %zu bytes of them", largest);
    }
    if (result != OK)
        adapter_identity_free(identity);
    return result;
}

void adapter_identity_free(struct adapter_identity *identity)
{
    for (int t = 0; t < TOWERS; t++) {
        free(identity->experts[t]);
        free(identity->routers[t]);
    }
    free(identity->staging);
    *identity = (struct adapter_identity){0};
}

/* digests[i] takes in part i of a stacked parameter. */
static status add_stack(struct adapter_identity *identity, const struct adapter_tower *tower, size_t parameter,
                        uint64_t *digests, struct error *error)
{
    struct backend *backend = identity->adapters->backend;
    size_t parts = shape_of(tower, parameter)[0], bytes = part_of(tower, parameter) * sizeof(float);
    TRY(backend->ops->download(backend, identity->staging, parameters_weight(tower->parameters, parameter).value,
                               parts * bytes, error));
    for (size_t i = 0; i < parts; i++)
        digests[i] = digest_quick((const uint8_t *)identity->staging + i * bytes, bytes, digests[i]);
    return OK;
}

status adapter_identity_read(struct adapter_identity *identity, struct error *error)
{
    const struct adapters *adapters = identity->adapters;
    size_t experts = adapters->settings.experts, tasks = adapters->settings.tasks;
    for (int t = 0; t < TOWERS; t++) {
        const struct adapter_tower *tower = &adapters->towers[t];
        memset(identity->experts[t], 0, tower->blocks * experts * sizeof(uint64_t));
        memset(identity->routers[t], 0, tower->blocks * tasks * sizeof(uint64_t));
        for (size_t b = 0; b < tower->blocks; b++) {
            const struct expert_bank *bank = &tower->banks[b];
            const size_t stacks[] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
            for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
                TRY(add_stack(identity, tower, stacks[i], identity->experts[t] + b * experts, error));
            TRY(add_stack(identity, tower, bank->routers, identity->routers[t] + b * tasks, error));
        }
    }
    return OK;
}

uint64_t adapter_identity_of(const struct adapter_identity *identity, enum tower tower, size_t router,
                             const int32_t *chosen)
{
    const struct adapter_settings *s = &identity->adapters->settings;
    uint64_t digest = 0;
    for (size_t b = 0; b < identity->adapters->towers[tower].blocks; b++) {
        uint64_t next = identity->routers[tower][b * s->tasks + router];
        digest = digest_quick(&next, sizeof next, digest);
        for (size_t k = 0; k < s->top_k; k++) {
            next = identity->experts[tower][b * s->experts + (size_t)chosen[b * s->top_k + k]];
            digest = digest_quick(&next, sizeof next, digest);
        }
    }
    return digest;
}
