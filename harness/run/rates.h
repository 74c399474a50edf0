/* How fast this machine works, and what the counted work of a run (workload.h) comes to.
 *
 *     struct rates rates = {0};
 *     TRY(rates_measure(&rates, run, error));           // a second
 *     struct estimate estimate = workload_estimate(run);
 *     double seconds = rates_seconds(&rates, &estimate);
 *     rates_print(&rates, &estimate, seeds, stdout);
 *
 * The pace of a run that is under way is seen by harness/terminal/time_left.h.
 */
#pragma once

#include <stdio.h>

#include "harness/run/workload.h"

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
