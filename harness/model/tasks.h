/* The tasks of a run, each with its dataset and the classes in the form that the model's head needs.
 *
 *     TRY(tasks_open(&data, &model, suite, joint, error));    // after the model and the tokenizer
 *     tasks_close(&data, &model);                             // also after a failure
 *
 * Or tasks without images, named in an adapters file: TRY(tasks_open_named(&data, &model, metadata, error)).
 */
#pragma once

#include "adapters/files/adapter_metadata.h"
#include "harness/model/model.h"

/* Whether the folders of the suite's datasets are there, which takes no time: before a model is drawn or read. */
status tasks_look(const struct suite *suite, struct error *error);
/* joint: also all tasks as one (harness/scenario/data.h). */
status tasks_open(struct data *data, struct model *model, const struct suite *suite, bool joint, struct error *error);
void tasks_close(struct data *data, const struct model *model);

/* Checks that there are training and test images of every class, unless classes without images are allowed. */
status tasks_check(const struct model *model, const struct suite *suite, const struct task *task, struct error *error);
/* The tasks of the metadata in its order, with consecutively numbered classes; its strings are borrowed until the
 * tasks are closed. */
status tasks_open_named(struct data *data, const struct model *model, const struct adapter_metadata *metadata,
                        struct error *error);

/* A task's dataset with all training images, ignoring data.shots. The caller closes it, also after a failure
 * (*dataset is NULL before). */
status tasks_open_dataset(struct dataset **dataset, const struct suite *suite, const struct task_settings *settings,
                          const struct log *log, struct error *error);
