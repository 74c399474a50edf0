/* Opens and closes an experiment.
 *
 *     struct experiment *experiment;
 *     TRY(experiment_open(&experiment, suite, seed, log, error));
 *     ... trainer.h, evaluator.h, sequence.h ...
 *     experiment_close(experiment);
 */
#ifndef MTIL_HARNESS_RUN_OPENING_H
#define MTIL_HARNESS_RUN_OPENING_H

#include "harness/run/experiment.h"

/* Opens datasets, model and adapters, and draws the adapters' initial values. The suite and the log outlive the
 * experiment. */
status experiment_open(struct experiment **experiment, const struct suite *suite, uint64_t seed, const struct log *log,
                       struct error *error);

/* The same for evaluation only: nothing is trained, and there are no adapters until the caller opens some into
 * `adapters`, which the experiment then owns. */
status experiment_open_frozen(struct experiment **experiment, const struct suite *suite, uint64_t seed,
                              const struct log *log, struct error *error);

/* A model and its tokenizer without a suite: no tasks until tasks_open_named adds some. Reads only the settings
 * weights, vocabulary, activation, threads, backend and evaluation_batch. */
status experiment_open_model(struct experiment **experiment, const struct settings *settings, const struct log *log,
                             struct error *error);

/* A model that is trained on recorded batches and texts (harness/train/recorded.h). Reads only the settings weights,
 * backend, gpus, method and its options. tasks, from malloc, with their datasets and prompts, become the experiment's,
 * also after a failure. */
status experiment_open_recorded(struct experiment **experiment, const struct settings *settings,
                                const struct recorded *recorded, struct task *tasks, size_t task_count,
                                struct error *error);

/* Opens the model anew from the experiment's current settings, with `groups` trained; tasks, tokenizer and cache stay.
 * MODEL_ALONE: without the method and its replicas. */
enum experiment_parts { WITH_METHOD, MODEL_ALONE };
status experiment_reopen(struct experiment *experiment, unsigned groups, enum experiment_parts parts,
                         struct error *error);
void experiment_close(struct experiment *experiment); /* NULL is allowed */

#endif
