/* The tasks of a run, each with its dataset and prompts.
 *
 *     TRY(tasks_open(experiment, error));             // after the model and the tokenizer
 *     tasks_close(experiment);                        // also after a failure
 *
 * Or tasks without images, named in an adapters file: TRY(tasks_open_named(experiment, card, error)).
 */
#ifndef MTIL_HARNESS_RUN_TASKS_H
#define MTIL_HARNESS_RUN_TASKS_H

#include "adapters/files/adapter_card.h"
#include "harness/run/experiment.h"

status tasks_open(struct experiment *experiment, struct error *error);
void tasks_close(struct experiment *experiment);

/* Checks that there are training and test images of every class, unless classes without images are allowed. */
status tasks_check(const struct experiment *experiment, const struct task *task, struct error *error);
/* The tasks of the card in its order, with consecutively numbered classes; its strings are borrowed until the
 * experiment is closed. */
status tasks_open_named(struct experiment *experiment, const struct adapter_card *card, struct error *error);

/* A task's dataset with all training images, ignoring data.shots. The caller closes it, also after a failure
 * (*dataset is NULL before). */
status tasks_open_dataset(struct dataset **dataset, const struct suite *suite, const struct task_settings *settings,
                          const struct log *log, struct error *error);

#endif
