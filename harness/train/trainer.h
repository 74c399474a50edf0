/* The training of one task (spec 3): batches, loss, optimizer, merges.
 *
 *     struct training training = {.experiment = e, .task = task, .first = 0, .after = record, .context = recorder};
 *     TRY(train_task(&training, error));
 */
#ifndef MTIL_HARNESS_TRAIN_TRAINER_H
#define MTIL_HARNESS_TRAIN_TRAINER_H

#include "harness/train/training.h"

/* Iterations first … iterations − 1 and then, unless it was stopped, the method's end_task. Stopping (ERROR_STOPPED)
 * is between two iterations, after `after`. Loss, gradients, weights and moments are finite
 * when it is OK (guard.h). */
status train_task(const struct training *training, struct error *error);

/* The cross-entropy of a batch against the task's prompts, with its gradients: what methods without a loss of their own do.
 * Weighted by this rank's share of the batch; without images, nothing. */
status classification_loss(struct method_run *run, const struct task *task, const struct batch *batch,
                           struct error *error);

#endif
