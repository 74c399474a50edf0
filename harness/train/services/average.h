/* Mixtures of the weights of several moments: a running mean (ZSCL's weight ensemble, Zheng et al. 2023, arXiv 2303.06628)
 * and an interpolation (WiSE-FT, Wortsman et al. 2022, arXiv 2109.01903).
 *
 *     mean ← (n · mean + θ) / (n + 1), n ← n + 1                       average_add
 *     θ ← α · θ + (1 − α) · other                                      average_mix
 *
 * Both are computed as a + w · (b − a) in double precision, so that what is the same in both stays the same to the bit.
 */
#ifndef MTIL_HARNESS_TRAIN_SERVICES_AVERAGE_H
#define MTIL_HARNESS_TRAIN_SERVICES_AVERAGE_H

#include "models/parameters.h"

/* The values of a group at some moment, or their mean over several; 4 bytes a value. */
struct average {
    float *values; /* device, as long as the group's */
    uint32_t count;
};

status average_open(struct average *average, const struct parameters *group, struct arena *arena, struct error *error);

/* The group's values as they are: a mean of one. */
status average_start(struct average *average, const struct parameters *group, struct error *error);
status average_add(struct average *average, const struct parameters *group, struct error *error);

/* The group's values become the mean, */
status average_apply(const struct average *average, struct parameters *group, struct error *error);
/* or alpha · themselves + (1 − alpha) · the mean. */
status average_mix(const struct average *average, struct parameters *group, float alpha, struct error *error);

#endif
