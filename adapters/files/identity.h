/* What the adapters' weights are, in short: one number per expert and per router, which changes when they change. A
 * feature that went through the same router and the same experts is the same feature.
 *
 *     struct adapter_identity identity;
 *     TRY(adapter_identity_create(&identity, adapters, error));
 *     TRY(adapter_identity_read(&identity, error));                      // after each task
 *     uint64_t now = adapter_identity_of(&identity, TOWER_IMAGE, router, chosen);
 *     adapter_identity_free(&identity);
 */
#ifndef MTIL_ADAPTERS_FILES_IDENTITY_H
#define MTIL_ADAPTERS_FILES_IDENTITY_H

#include "adapters/adapter.h"

struct adapter_identity {
    const struct adapters *adapters;
    uint64_t *experts[TOWERS]; /* [blocks, E] digests */
    uint64_t *routers[TOWERS]; /* [blocks, T] */
    void *staging;             /* the largest tensor, on the host */
};

status adapter_identity_create(struct adapter_identity *identity, const struct adapters *adapters, struct error *error);
void adapter_identity_free(struct adapter_identity *identity); /* all zero is allowed */

/* Reads every expert and router from the device; 64-bit digests, so two different ones agree once in 10¹⁹. */
status adapter_identity_read(struct adapter_identity *identity, struct error *error);

/* Of the way of one sample through a tower: its router, and chosen [blocks, K], its experts in every block. */
uint64_t adapter_identity_of(const struct adapter_identity *identity, enum tower tower, size_t router,
                             const int32_t *chosen);

#endif
