/* Counts the work of a run: floating-point operations, a multiply and an add being two, and bytes. Counts matrix products.
 * Images count as encoded anew unless their features certainly have not changed, so evaluations may turn out cheaper.
 *
 *     struct progress_work work;
 *     workload_count(run, 3, 40, &work);               // work.total: all; work.done: before iteration 40 of task 3
 */
#pragma once

#include <stdio.h>

#include "harness/run/run.h"
#include "harness/terminal/progress.h"

enum {
    WORK_EVALUATION,
    WORK_TRAINING,
    WORK_SELECTOR
}; /* zero-shot evaluation included, from which the others' pace is known early */

/* work.done does not include zero-shot evaluation. */
void workload_count(const struct run *run, size_t task, size_t iteration, struct progress_work *work);

double workload_zero_shot(const struct run *run, size_t j);
double workload_iteration(const struct run *run, const struct task *task);
/* The operations of an iteration, and of a test image through the image tower with its experts; 0: there is none, or
 * the method does work in it that is not counted. */
double workload_step(const struct run *run, const struct task *task);
double workload_image(const struct run *run);
/* The task's iterations, and the rest of the method's work. */
double workload_training(const struct run *run, const struct task *task);
double workload_selector(const struct run *run, const struct task *task);
double workload_evaluation(const struct run *run, size_t checkpoint, size_t j);

/* The tasks that are tested after task `checkpoint`; a label space of seen classes has no answer for later tasks. */
void workload_tested(const struct run *run, size_t checkpoint, size_t *first, size_t *end);

/* The estimate of one seed, before it starts. */
struct estimate {
    double training, evaluation;                 /* operations; selectors count as evaluation */
    double training_traffic, evaluation_traffic; /* bytes of f32 activations that the forward passes produce */
    double memory, disk;                         /* bytes; of a GPU's memory; of the weights that stay */
    double resume;                               /* additional bytes on the disk until the run ends */
    double cached_memory, cached_disk;           /* additional bytes for decoded images; all runs share cached_disk */
};

struct estimate workload_estimate(const struct run *run);

/* --- The time on this machine --- */

/* How fast this machine works, and the time of a run's counted work.
 *
 *     struct rates rates = {0};
 *     TRY(rates_measure(&rates, run, error));           // a second
 *     struct estimate estimate = workload_estimate(run);
 *     double seconds = rates_seconds(&rates, &estimate);
 *     rates_print(&rates, &estimate, seeds, stdout);
 *
 * The pace of a run that is under way is seen by harness/terminal/progress.h.
 */

struct rates {
    double products;          /* operations per second of a large product; 0: not measured */
    double memory;            /* bytes per second of an element-wise product that no cache holds */
    size_t cores;             /* used in the measurement */
    bool asynchronous;        /* of a GPU */
    enum precision precision; /* of the product */
};

/* Measures on the run's backend. Known rates are not measured again, unless for another number of cores, kind of
 * device or precision. */
status rates_measure(struct rates *rates, struct run *run, struct error *error);

/* The seconds of one seed. */
double rates_seconds(const struct rates *rates, const struct estimate *estimate);

/* Operations, time, memory and disk, as comments of a suite. */
void rates_print(const struct rates *rates, const struct estimate *estimate, size_t seeds, FILE *out);
