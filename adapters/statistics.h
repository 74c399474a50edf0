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

/* Scores of how much each block gains from experts (Wu et al. 2022, "Residual Mixture of Experts", arXiv 2204.09636). With
 * experts in every block, θ = θ_dense + θ_residual, a block's score is |s_l| of Equation 8, the Euclidean norm of the loss's
 * gradient by the residual weights of all its experts (equal to the gradient by θ), summed over the tasks.
 *
 *     struct layer_scores scores;
 *     layer_scores_create(&scores, tasks, blocks);          // adapters in all blocks of their towers
 *     ... backward passes of `batches` ...
 *     TRY(layer_scores_add(&scores, adapters, task, 1.0 / batches, error));
 *     layer_scores_choose(&scores, 3, &settings.place.blocks);          // the three best of each tower
 *     layer_scores_free(&scores);
 */
struct layer_scores {
    size_t tasks, blocks[TOWERS]; /* blocks 0: a tower without adapters */
    double *values[TOWERS];       /* [tasks, blocks] */
};

/* All scores are zero at first. The caller frees them. */
void layer_scores_create(struct layer_scores *scores, size_t tasks, const size_t blocks[TOWERS]);
void layer_scores_free(struct layer_scores *scores);

/* Adds share times the norms of the current gradients. Waits for the device. ERROR_FORMAT where a norm is not finite. */
status layer_scores_add(struct layer_scores *scores, const struct adapters *adapters, size_t task, double share,
                        struct error *error);

double layer_scores_sum(const struct layer_scores *scores, enum tower tower, size_t block);
/* The block's rank in its tower, 1 for the highest sum; ties: the lower block first. */
size_t layer_scores_rank(const struct layer_scores *scores, enum tower tower, size_t block);

/* Chooses the n best blocks of each tower, or all blocks of a tower that has fewer. */
void layer_scores_choose(const struct layer_scores *scores, size_t n, struct block_choice *choice);
