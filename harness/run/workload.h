/* The work of a run in floating-point operations, for estimates before it starts and for the time that is left.
 *
 *     struct progress_work work;
 *     workload_count(run, run->data.task_count, 0, &work);      // work.total: all; work.done: all but zero-shot
 *     workload_count(run, 3, 40, &work);                      // work.done: work before iteration 40 of task 3
 *
 * Counts matrix products. Images count as encoded anew unless their features certainly have not changed, so evaluations
 * may turn out cheaper.
 */
#ifndef MTIL_HARNESS_RUN_WORKLOAD_H
#define MTIL_HARNESS_RUN_WORKLOAD_H

#include "harness/run/run.h"
#include "harness/terminal/progress.h"

enum { WORK_ZERO_SHOT, WORK_TRAINING, WORK_SELECTOR, WORK_EVALUATION };

/* work.done does not include zero-shot evaluation. */
void workload_count(const struct run *run, size_t task, size_t iteration, struct progress_work *work);

double workload_zero_shot(const struct run *run, size_t j);
double workload_iteration(const struct run *run, const struct task *task);
double workload_training(const struct run *run,
                         const struct task *task); /* its iterations, and the rest of the method's work */
double workload_selector(const struct run *run, const struct task *task);
double workload_evaluation(const struct run *run, size_t checkpoint, size_t j);

/* The tasks that are tested after task `checkpoint`; a label space of seen classes has no answer for later tasks. */
void workload_tested(const struct run *run, size_t checkpoint, size_t *first, size_t *end);

#endif
