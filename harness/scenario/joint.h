/* One task with the training images and the classes of all tasks of a run, for a method that is `joint`.
 *
 *     TRY(joint_open(&data, training, error));              // after the tasks; training: the options of that section
 *     TRY(joint_gather(&data, error));                      // after images have been left out
 *     const struct task *task = joint_or(&data, k);
 *
 * Its classes are the classes of the tasks one after the other, even where names repeat, each with the prompt of its
 * own task; with shared classes, those of all tasks with the prompts of the first. Its iterations are the sum over all tasks; batch, learning rate, warm-up and the rest come from the section
 * `training`, whatever `tasks` says. Its index is the last task's.
 */
#pragma once

#include "harness/scenario/data.h"

status joint_open(struct data *data, const struct options *training, struct error *error);
status joint_gather(struct data *data, struct error *error); /* does nothing where tasks are trained one by one */

/* The first task to train once the tasks before k are done. */
size_t joint_first(const struct data *data, size_t k);

/* The task trained as task k: the joint task if there is one and k is the last, else the task itself. */
const struct task *joint_or(const struct data *data, size_t k);
