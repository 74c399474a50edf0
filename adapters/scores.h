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
#pragma once

#include "adapters/adapter.h"

struct layer_scores {
    size_t tasks, blocks[TOWERS]; /* blocks 0: a tower without adapters */
    double *values[TOWERS];       /* [tasks, blocks] */
};

/* All zero. The caller frees. */
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
