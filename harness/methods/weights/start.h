/* Shared by methods that return to, or pull towards, the weights at the start of a task. The state of a method that
 * uses the hooks begins with a struct average; wise_ft.c is an example.
 *
 * A snapshot of the weights, or the running mean of several, for methods that return to, mix with, or average over
 * earlier weights (ZSCL's weight ensemble, Zheng et al. 2023, arXiv 2303.06628; WiSE-FT, Wortsman et al. 2022, arXiv
 * 2109.01903).
 *
 *     TRY(average_open(&mean, group, &run_arena, error));       // 4 bytes a value
 *     TRY(average_start(&mean, group, error));                  // mean = θ, n = 1
 *     TRY(average_add(&mean, group, error));                    // mean ← (n · mean + θ) / (n + 1), n ← n + 1
 *     TRY(average_apply(&mean, group, 0.8f, error));            // θ ← 0.8 · θ + 0.2 · mean
 *
 * Both are computed as a + w · (b − a) in double precision, so that equal values stay the same to the bit.
 *
 * A pull towards an anchor: loss += strength · Σ importance · (θ − anchor)², gradients += 2 · strength · importance ·
 * (θ − anchor), over all values of a group (L2-SP, Li et al. 2018, arXiv 1802.01483; in ZSCL, arXiv 2303.06628; with
 * importances, EWC, Kirkpatrick et al. 2017, arXiv 1612.00796).
 */
#pragma once

#include "harness/methods/methods.h"
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

/* Keeps the average in a resume file; for a method's keep. */
status average_keep(struct average *average, const struct parameters *group, const char *name,
                    const struct serializer *serializer, struct error *error);

/* anchor, importance (NULL: 1): device, as long as the group's values; loss: device, one value. */
status penalty_add(const struct parameters *group, const float *anchor, const float *importance, float strength,
                   float *loss, struct error *error);

struct parameters *weights_of(const struct method_run *run); /* of both towers */

/* Hooks: memory for the weights, and at the start of each task a copy of them and a fresh optimizer. */
status start_open(struct method_run *run, struct error *error);
status start_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error);
