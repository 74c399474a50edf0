/* The blocks of adapter.blocks: by_score_N, which are chosen before anything is trained (adapters/scores.h): the two steps of
 * Wu et al. 2022, Appendix A.
 *
 *     TRY(layer_choice_settle(e, path, progress, &settled, error));     // e has adapters in the chosen blocks now
 *
 * Every task starts from the model as it is, with experts in all blocks, and takes the first adapter.score_steps steps of its
 * training, in which nothing but adapters and a trained head change. Then nothing changes, and the gradient of the mean loss
 * of as many more batches gives the scores. A task of fewer steps is halved. Blocks share no experts then. Where experts
 * replace the MLPs, they start with adapter.score_noise, their output is aligned and no capacity bounds it, so that the model
 * that is scored starts as the dense one.
 */
#ifndef MTIL_HARNESS_RUN_LAYER_CHOICE_H
#define MTIL_HARNESS_RUN_LAYER_CHOICE_H

#include "adapters/scores.h"
#include "harness/run/experiment.h"

/* The scores of an experiment that trains adapters, freed by the caller also after a failure. What the experiment trains is
 * opened for scoring alone afterwards: experiment_reopen, or experiment_close. ERROR_STOPPED as experiment->stop says. */
status layer_choice_score(struct experiment *experiment, struct progress *progress, struct layer_scores *scores,
                          struct error *error);

/* With scores from the file at path, if it is of this run, or computed and written to it. *settled: adapter.blocks asks for
 * scores, and there is such a file now. */
status layer_choice_settle(struct experiment *experiment, const char *path, struct progress *progress, bool *settled,
                           struct error *error);

#endif
