/* The method of an experiment, opened and closed. */
#ifndef MTIL_HARNESS_TRAIN_METHOD_RUN_H
#define MTIL_HARNESS_TRAIN_METHOD_RUN_H

#include "harness/run/experiment.h"

/* Opens the experiment's method_run, whose hooks are called by trainer, checkpoint and replicas. */
status method_open(struct experiment *experiment, struct error *error);
void method_close(struct experiment *experiment); /* opened or not */

/* Whether the file (in the state that was digested) or the folder that an option names is unchanged since the method
 * read it. */
bool method_input_same(const struct method_run *run, const struct option *option, const struct file_stamp *file,
                       const char *path);

#endif
