/* Whether the adapters' weights are those that a feature was computed with: one number per expert and per router, which
 * changes whenever they are updated or written. A feature that went through the same router and experts is the same.
 *
 *     struct adapter_identity identity;
 *     TRY(adapter_identity_create(&identity, adapters, error));
 *     TRY(adapter_identity_read(&identity, error));                      // after each task
 *     uint64_t now = adapter_identity_of(&identity, TOWER_IMAGE, router, chosen);
 *     adapter_identity_free(&identity);
 */
#ifndef MTIL_ADAPTERS_IDENTITY_H
#define MTIL_ADAPTERS_IDENTITY_H

#include "adapters/adapter.h"

struct adapter_identity {
    const struct adapters *adapters;
    uint64_t *changes[TOWERS]; /* of the tower's segments, as parameters_changes */
};

status adapter_identity_create(struct adapter_identity *identity, const struct adapters *adapters, struct error *error);
void adapter_identity_free(struct adapter_identity *identity); /* all zero is allowed */

/* Reads from the device how often every expert and router has changed. What is compared must come from one process: the
 * numbers say nothing of contents. */
status adapter_identity_read(struct adapter_identity *identity, struct error *error);

/* Of the way of one sample through a tower: its router, and chosen [decisions, K], its experts wherever they are
 * decided on. Where its tokens decide, any expert may be on it, and chosen is not read. */
uint64_t adapter_identity_of(const struct adapter_identity *identity, enum tower tower, size_t router,
                             const int32_t *chosen);

#endif
