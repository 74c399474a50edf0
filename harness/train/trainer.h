/* The training of one task (spec 3): batches, loss, optimizer, merges.
 *
 *     struct training training = {.experiment = e, .task = task, .first = 0, .after = record, .context = recorder};
 *     TRY(train_task(&training, error));
 */
#ifndef MTIL_HARNESS_TRAIN_TRAINER_H
#define MTIL_HARNESS_TRAIN_TRAINER_H

#include "harness/run/experiment.h"

/* After each iteration (counted from 1). loss is of iterations for which wants_loss said so, since reading it waits for the
 * device, else NAN. */
struct step_report {
    size_t iteration, iterations, images; /* images: of this call of train_task so far */
    bool looked;                          /* loss was read; with on_nan: skip it may be NAN all the same */
    double loss, rate;
};

struct training {
    struct experiment *experiment;
    const struct task *task;
    size_t first; /* iterations already done: not 0 when a task goes on after a stop */
    const struct stop *stop;
    bool (*wants_loss)(void *context, size_t iteration, size_t iterations);
    status (*after)(void *context, const struct step_report *report, struct error *error);
    void *context;
};

/* Iterations first … iterations − 1 and then, unless it was stopped, the method's end_task. Stopping (ERROR_STOPPED)
 * is between two iterations, after `after`. Loss, gradients, weights and moments are finite
 * when it is OK (guard.h). */
status train_task(const struct training *training, struct error *error);

/* The cross-entropy of a batch against the task's prompts, with its gradients: what methods without a loss of their own do.
 * Weighted by this member's share of the batch; without images, nothing. */
status classification_loss(struct method_run *run, const struct task *task, const struct batch *batch,
                           struct error *error);

#endif
