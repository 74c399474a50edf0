/* Estimates the time, memory and disk of a run before it starts.
 *
 *     struct estimate estimate;
 *     struct machine_rates rates = {0};
 *     TRY(estimate_run(run, &estimate, error));
 *     TRY(machine_rates_measure(run, &rates, error));      // a second
 *     double seconds = estimate_seconds(&estimate, &rates);
 *     estimate_print(&estimate, &rates, seeds, stdout);
 */
#ifndef MTIL_HARNESS_RUN_ESTIMATE_H
#define MTIL_HARNESS_RUN_ESTIMATE_H

#include <stdio.h>

#include "harness/run/run.h"

struct estimate {
    double training, evaluation; /* floating-point operations of one seed; selectors count as evaluation */
    double training_traffic, evaluation_traffic; /* bytes of f32 activations that the forward passes produce */
    double memory, disk;                         /* bytes */
    double cached_memory, cached_disk;           /* additional bytes for decoded images; all runs share cached_disk */
};

struct machine_rates {
    double products;          /* operations per second of a large product; 0: not measured */
    double memory;            /* bytes per second of an element-wise product that no cache holds */
    size_t cores;             /* used in the measurement */
    bool asynchronous;        /* of a GPU */
    enum precision precision; /* of the product */
};

status estimate_run(struct run *run, struct estimate *estimate, struct error *error);

/* Measures on the run's backend. Known rates are not measured again, unless for another number of cores, kind of
 * device or precision. */
status machine_rates_measure(struct run *run, struct machine_rates *rates, struct error *error);

/* The seconds of one seed. */
double estimate_seconds(const struct estimate *estimate, const struct machine_rates *rates);

void estimate_print(const struct estimate *estimate, const struct machine_rates *rates, size_t seeds, FILE *out);

#endif
