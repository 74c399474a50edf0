/* The training of one task: batches, loss, optimizer, merges (README.md).
 *
 *     struct training training = {.run = run, .task = task, .first = 0, .after = record, .context = recorder};
 *     TRY(train_task(&training, error));
 */
#pragma once

#include "harness/train/method.h"

/* The report after each iteration (counted from 1). loss is NAN unless wants_loss asked for it, because reading it
 * waits for the device. */
struct step_report {
    size_t iteration, iterations, images; /* images: of this call of train_task so far */
    bool looked;                          /* loss was read; with on_nan: skip it may be NAN all the same */
    double loss, balance, rate;           /* balance: losses of all blocks without their weight; NAN: there are none */
    double
        accuracy; /* share of the batch's images, augmented as they are; NAN: the loss has no cross-entropy of classes */
};

struct training {
    struct method_run *run;
    const struct task *task;
    size_t first; /* iterations already done; above 0 when a task is resumed */
    const struct stop *stop;
    bool (*wants_loss)(void *context, size_t iteration, size_t iterations);
    status (*after)(void *context, const struct step_report *report, struct error *error);
    void *context;
};

/* Prepares model and method for the iterations of a task, or (resumed) for the tests after some or all of them. */
status train_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error);

/* Iterations first … iterations − 1 and then, unless stopped, the method's end_task. It stops (ERROR_STOPPED)
 * between two iterations, after `after`. With OK, loss, gradients, weights and moments are finite (guard.h). */
status train_task(const struct training *training, struct error *error);

/* The cross-entropy of a batch over the classes of the task, with its gradients: the loss of methods without one of
 * their own. Weighted by this rank's share of the batch; does nothing without images. */
status classification_loss(struct method_run *run, const struct task *task, const struct batch *batch,
                           struct error *error);
