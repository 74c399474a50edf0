/* Chooses the blocks of adapter.blocks: by_score_N before anything is trained (adapters/statistics.h), in the two steps of
 * Wu et al. 2022, Appendix A.
 *
 *     TRY(layer_choice_make(run, path, progress, &made, error));     // e has adapters in the chosen blocks now
 *
 * Every task starts from the initial model, with experts in all blocks, and takes the first adapter.score_steps steps
 * of its training, in which only adapters and a trained head change. Then nothing changes, and the gradient of the mean
 * loss of as many more batches gives the scores; a task of fewer steps is halved. Blocks share no experts then. Where
 * experts replace the MLPs, they start with adapter.score_noise, their outputs are aligned and there is no capacity
 * limit, so that the scored model starts out equal to the dense one.
 */
#pragma once

#include "adapters/statistics.h"
#include "harness/run/run.h"
#include "harness/terminal/progress.h"

/* Computes the scores of a run that trains adapters; the caller frees them, also after a failure. The
 * run is opened for scoring alone afterwards, so run_reopen or run_close must follow.
 * ERROR_STOPPED after a request to run->model.stop. */
status layer_choice_score(struct run *run, struct progress *progress, struct layer_scores *scores, struct error *error);

/* Chooses by the scores in the file at path, if it belongs to this run, or else computes them and writes the file.
 * *made: adapter.blocks asks for scores, and the file is there now. */
status layer_choice_make(struct run *run, const char *path, struct progress *progress, bool *made, struct error *error);
