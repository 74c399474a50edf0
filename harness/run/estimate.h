/* Estimates the time, memory and disk of a run before it starts.
 *
 *     struct estimate estimate;
 *     struct machine_rates rates = {0};
 *     TRY(estimate_run(experiment, &estimate, error));
 *     TRY(machine_rates_measure(experiment, PRECISION_BF16, &rates, error));   // half a second
 *     double seconds = estimate_seconds(&estimate, &rates, PRECISION_BF16);
 *     estimate_print(&estimate, &rates, seeds, stdout);                        // of both precisions
 */
#ifndef MTIL_HARNESS_RUN_ESTIMATE_H
#define MTIL_HARNESS_RUN_ESTIMATE_H

#include <stdio.h>

#include "harness/run/experiment.h"

enum { PRECISIONS = PRECISION_BF16 + 1 };

struct estimate {
    double training, evaluation; /* floating-point operations of one seed; selectors count as evaluation */
    double training_traffic, evaluation_traffic; /* bytes of f32 activations that forward passes of all of it produce */
    double memory, memory_of[PRECISIONS];        /* bytes; memory: in the experiment's precision */
    double disk;
    double cached_memory, cached_disk; /* additional bytes for decoded images, the latter shared by all runs */
};

struct machine_rates {
    double products[PRECISIONS]; /* operations per second of a large product; 0: not measured */
    double memory;               /* bytes per second of an element-wise product that no cache holds */
    size_t cores;                /* that it was measured with */
    bool asynchronous;           /* of a GPU */
    struct error lacking;        /* why bf16 cannot be measured, if its rate is 0 */
};

status estimate_run(struct experiment *experiment, struct estimate *estimate, struct error *error);

/* On the experiment's backend, here and now; a rate that is known is not measured again, unless it is of other cores or of
 * another kind of device. A precision that the machine lacks is no error unless it is the experiment's. */
status machine_rates_measure(struct experiment *experiment, enum precision precision, struct machine_rates *rates,
                             struct error *error);

/* Of one seed. */
double estimate_seconds(const struct estimate *estimate, const struct machine_rates *rates, enum precision precision);

void estimate_print(const struct estimate *estimate, const struct machine_rates *rates, size_t seeds, FILE *out);

#endif
