/* What a run has to do, in floating-point operations: for estimates before it starts, and for the time that is left.
 *
 *     struct progress_work work;
 *     workload_count(e, e->data.task_count, 0, &work);      // work.total: all of it; work.done: the same
 *     workload_count(e, 3, 40, &work);                      // work.done: what comes before iteration 40 of task 3
 *
 * Counts matrix products. Images whose features cannot have changed count as encoded anew wherever that is not certain,
 * so evaluations may turn out cheaper.
 */
#ifndef MTIL_HARNESS_RUN_WORKLOAD_H
#define MTIL_HARNESS_RUN_WORKLOAD_H

#include "harness/run/experiment.h"

enum { WORK_ZERO_SHOT, WORK_TRAINING, WORK_SELECTOR, WORK_EVALUATION };

/* Zero-shot evaluation counts as not done. */
void workload_count(const struct experiment *e, size_t task, size_t iteration, struct progress_work *work);

double workload_zero_shot(const struct experiment *e, size_t j);
double workload_iteration(const struct experiment *e, const struct task *task);
double workload_training(const struct experiment *e,
                         const struct task *task); /* all its iterations, and what ends them */
double workload_selector(const struct experiment *e, const struct task *task);
double workload_evaluation(const struct experiment *e, size_t checkpoint, size_t j);

/* The tasks that are tested after task `checkpoint`: a label space of seen classes has no answer for later ones. */
void workload_tested(const struct experiment *e, size_t checkpoint, size_t *first, size_t *end);

#endif
