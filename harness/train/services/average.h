/* A snapshot of the weights, or the running mean of several, for methods that return to, mix with, or average over
 * earlier weights (ZSCL's weight ensemble, Zheng et al. 2023, arXiv 2303.06628; WiSE-FT, Wortsman et al. 2022, arXiv
 * 2109.01903).
 *
 *     TRY(average_open(&mean, group, &run_arena, error));       // 4 bytes a value
 *     TRY(average_start(&mean, group, error));                  // mean = θ, n = 1
 *     TRY(average_add(&mean, group, error));                    // mean ← (n · mean + θ) / (n + 1), n ← n + 1
 *     TRY(average_apply(&mean, group, 0.8f, error));            // θ ← 0.8 · θ + 0.2 · mean
 *
 * Both are computed as a + w · (b − a) in double precision, so that equal values stay the same to the bit.
 */
#pragma once

#include "harness/train/serializer.h"
#include "models/parameters.h"

struct average {
    float *values; /* device, as long as the group's */
    int32_t count; /* snapshots averaged; 0: empty */
};

status average_open(struct average *average, const struct parameters *group, struct arena *arena, struct error *error);
status average_start(struct average *average, const struct parameters *group, struct error *error);
status average_add(struct average *average, const struct parameters *group, struct error *error);

/* θ ← alpha · θ + (1 − alpha) · mean; the average is empty afterwards. */
status average_apply(struct average *average, struct parameters *group, float alpha, struct error *error);

/* For a method's keep. */
status average_keep(struct average *average, const struct parameters *group, const char *name,
                    const struct serializer *serializer, struct error *error);
