/* The method of a run on one rank, opened and closed. */
#ifndef MTIL_HARNESS_TRAIN_METHOD_RUN_H
#define MTIL_HARNESS_TRAIN_METHOD_RUN_H

#include "harness/train/method.h"

/* Opens the method of the model's settings, whose hooks are called by trainer, checkpoint and replicas, and the memory of
 * guard.h. After a failure, method_close; before the model. */
status method_open(struct method_run *run, struct model *model, struct data *data, struct error *error);
void method_close(struct method_run *run); /* opened or not */

/* Whether the file (in the state that was digested) or the folder that an option names is unchanged since the method
 * read it. */
bool method_input_same(const struct method_run *run, const struct option *option, const struct file_stamp *file,
                       const char *path);

#endif
