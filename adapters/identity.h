/* Whether the adapters have changed since a feature was computed: one number per expert and per router, which changes with
 * every update and write. A feature is unchanged while the numbers of its router and experts are.
 *
 *     struct adapter_identity identity;
 *     adapter_identity_create(&identity, adapters);
 *     TRY(adapter_identity_read(&identity, error));                      // after each task
 *     uint64_t now = adapter_identity_of(&identity, TOWER_IMAGE, router, chosen);
 *     adapter_identity_free(&identity);
 */
#pragma once

#include "adapters/adapter.h"

struct adapter_identity {
    const struct adapters *adapters;
    uint64_t *changes[TOWERS]; /* of the tower's segments, as parameters_changes */
};

void adapter_identity_create(struct adapter_identity *identity, const struct adapters *adapters);
void adapter_identity_free(struct adapter_identity *identity); /* all zero is allowed */

/* Reads from the device how often every expert and router has changed. Numbers of different processes cannot be compared,
 * because they do not depend on the weights' values. */
status adapter_identity_read(struct adapter_identity *identity, struct error *error);

/* The number of one sample's path through a tower: its router, and chosen [decisions, K], its experts at each decision.
 * Where tokens decide, any expert may be on the path, and chosen is not read. */
uint64_t adapter_identity_of(const struct adapter_identity *identity, enum tower tower, size_t router,
                             const int32_t *chosen);
