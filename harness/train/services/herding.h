/* Chooses the exemplars of a task that ended by herding with the current model (harness/train/exemplars.h).
 *
 *     TRY(herding_add(&exemplars, run, task, error));                   // in end_task
 */
#ifndef MTIL_HARNESS_TRAIN_SERVICES_HERDING_H
#define MTIL_HARNESS_TRAIN_SERVICES_HERDING_H

#include "harness/train/exemplars.h"
#include "harness/train/method.h"

/* Encodes all training images of the task in the evaluation transform. */
status herding_add(struct exemplars *exemplars, const struct method_run *run, const struct task *task,
                   struct error *error);

#endif
