/* All tasks of a run in one: the training images and the classes of all of them, for a method that is `joint`.
 *
 *     TRY(joint_open(experiment, error));                   // after the tasks
 *     TRY(joint_gather(experiment, error));                 // images have been left out
 *     const struct task *task = joint_or(&experiment->data, k);
 *
 * Classes are those of the tasks one after the other, also of the same name, each with the prompt of its own task. Iterations are
 * those of all tasks together; batch, learning rate, warm-up and the rest are those of the section `training`, whatever
 * `tasks` says. It has the number of the last task.
 */
#ifndef MTIL_HARNESS_SCENARIO_JOINT_H
#define MTIL_HARNESS_SCENARIO_JOINT_H

#include "harness/run/experiment.h"

status joint_open(struct experiment *experiment, struct error *error);
status joint_gather(struct experiment *experiment,
                    struct error *error); /* does nothing where tasks are trained one by one */

/* The first task to be trained, once those before k are done. */
size_t joint_first(const struct data *data, size_t k);

/* What is trained as task k: the joint task if it is the last one and there is one, else the task itself. */
const struct task *joint_or(const struct data *data, size_t k);

#endif
