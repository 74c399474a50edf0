/* Statistics beyond selection counts that merge policies may ask for, collected on the device during a step.
 *
 *     TRY(adapters_collect(adapters, merge_needs(&plan), &model_arena, error));     // once, before training
 *     ... forward passes in training and adapters_before_update collect ...
 *     adapters->towers[t].statistics.pairs …
 *
 * Pair counts and next counts begin anew with every task, as selection counts do; earlier counts are the selection counts
 * of all tasks before the present one; squared gradients are summed over all tasks; probes are those of the last step.
 */
#pragma once

#include "adapters/merge.h"

enum { PROBES = 64 };

/* Takes the memory that the needs (enum merge_needs) call for, zero at first. */
status adapters_collect(struct adapters *adapters, unsigned needs, struct arena *arena, struct error *error);

/* The arrays of one tower, so that they can be saved, copied and summed up over GPUs as weights are.
 * False past the last one. */
struct statistic {
    const char *name; /* "pairs" */
    void *data;       /* device */
    size_t n;         /* values of four bytes */
    bool integers;    /* int32_t; else floats */
    bool of_task;     /* integers that begin anew with every task and add up over GPUs */
    bool of_leader;   /* every GPU has its own, and those of the first are used */
};
bool adapters_statistic(const struct adapters *adapters, enum tower tower, size_t index, struct statistic *statistic);

/* Adds the selection counts of the task that ends to the earlier ones; to be called before they begin anew. */
status statistics_begin_task(const struct adapter_tower *tower, struct error *error);

struct expert_pass;

/* Collects from a forward pass in training through a block, after its routing; input [rows, d] is the input of its experts.
 * Where blocks share experts, every decision is counted once, probes are taken in the first block, and the next block is the
 * first of the next run. */
status statistics_see(const struct expert_pass *pass, const struct block_context *context, const struct tensor *input,
                      struct error *error);

/* Adds the squares of the gradients, unless the step is skipped; to be called before the update. */
status statistics_square(const struct adapter_tower *tower, const struct step_guard *guard, struct error *error);

/* The distance of a merged expert from its sources s, by their outputs f [PROBES, d] on the block's probes: the mean over s
 * of ‖f − f_s‖ / (‖f‖ + ‖f_s‖) (Frobenius norms), from 0, the same function, to 1. A source does not count where both outputs
 * are zero; NAN where none counts or a value is not finite. The arena is released again. */
status statistics_distance(const struct adapter_tower *tower, const struct merge *merge, struct arena *arena,
                           double *distance, struct error *error);

/* similarity [blocks, E, E] on the host, computed from the probes and the current experts. */
status statistics_similarity(const struct adapter_tower *tower, float *similarity, struct error *error);
