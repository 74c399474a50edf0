/* Part of experiment.c: a run's tasks, each with its dataset and prompts.
 *
 *     TRY(tasks_open(experiment, error));             // needs the model and the tokenizer
 *     tasks_close(experiment);                        // also after a failure
 *
 * Or tasks without images, of which a file of adapters has the names: TRY(tasks_open_named(experiment, card, error)).
 */
#ifndef MTIL_HARNESS_RUN_TASKS_H
#define MTIL_HARNESS_RUN_TASKS_H

#include "adapters/files/adapter_card.h"
#include "harness/run/experiment.h"

status tasks_open(struct experiment *experiment, struct error *error);
void tasks_close(struct experiment *experiment);

/* That there are images to train on and to test on, and of every class some, or it is allowed that there are none. */
status tasks_check(const struct experiment *experiment, const struct task *task, struct error *error);
/* The card's tasks, in its order, their classes numbered through; its strings are borrowed until the experiment is closed. */
status tasks_open_named(struct experiment *experiment, const struct adapter_card *card, struct error *error);

/* A task's dataset with all its training images, whatever data.shots says. The caller closes it, after a failure too
 * (*dataset is NULL before). */
status tasks_open_dataset(struct dataset **dataset, const struct suite *suite, const struct task_settings *settings,
                          const struct log *log, struct error *error);

#endif
