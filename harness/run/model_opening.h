/* The model of an experiment: backend, memory, CLIP, adapters, tokenizer, and the device buffers of a step. The
 * experiment's settings, seed and groups determine which.
 */
#ifndef MTIL_HARNESS_RUN_MODEL_OPENING_H
#define MTIL_HARNESS_RUN_MODEL_OPENING_H

#include "harness/run/experiment.h"

status model_open(struct experiment *experiment, struct error *error);
status model_open_tokenizer(struct experiment *experiment, struct error *error); /* where classes are texts */
status model_open_head(struct experiment *experiment, struct error *error);      /* after the tasks */
void model_close_method(struct experiment *experiment);
void model_close(struct experiment *experiment); /* with its method, also after a failed opening; the tokenizer stays */

/* A replica of the model, with its method, on the GPU `number` places after its own; datasets and cache are shared.
 * For replicas.h. */
status model_open_replica(struct experiment **replica, const struct experiment *leader, size_t number,
                          struct error *error);
void model_close_replica(struct experiment *replica); /* NULL is allowed */

/* Restores the initial weights of the run, of the whole model or of the adapters (none frozen). For methods that train
 * every task alone. */
status model_restart(struct experiment *experiment, struct error *error);

#endif
