/* Part of experiment.c: a run's tasks, each with its dataset and prompts.
 *
 *     TRY(tasks_open(experiment, error));             // needs the model and the tokenizer
 *     tasks_close(experiment);                        // also after a failure
 */
#ifndef MTIL_HARNESS_TASKS_H
#define MTIL_HARNESS_TASKS_H

#include "harness/experiment.h"

status tasks_open(struct experiment *experiment, struct error *error);
void tasks_close(struct experiment *experiment);

#endif
