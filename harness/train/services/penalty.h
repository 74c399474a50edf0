/* A pull towards the weights at some moment: loss += strength · Σ (θ − anchor)², gradients += 2 · strength · (θ − anchor),
 * over all values of a group (L2-SP, Li et al. 2018, arXiv 1802.01483; in ZSCL, arXiv 2303.06628).
 *
 *     TRY(penalty_open(&penalty, group, &run_arena, error));          // 4 bytes a value
 *     TRY(penalty_anchor(&penalty, group, error));                    // the weights as they are: when a task begins
 *     TRY(penalty_add(&penalty, group, strength, loss, error));       // in every step
 */
#ifndef MTIL_HARNESS_TRAIN_SERVICES_PENALTY_H
#define MTIL_HARNESS_TRAIN_SERVICES_PENALTY_H

#include "models/parameters.h"

struct penalty_term {
    float *anchor; /* device, as long as the group's values */
};

/* Anchored where the group is now. */
status penalty_open(struct penalty_term *penalty, const struct parameters *group, struct arena *arena,
                    struct error *error);
status penalty_anchor(const struct penalty_term *penalty, const struct parameters *group, struct error *error);

/* loss: one value on the device. */
status penalty_add(const struct penalty_term *penalty, const struct parameters *group, float strength, float *loss,
                   struct error *error);

#endif
