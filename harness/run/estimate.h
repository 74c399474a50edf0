/* Estimates the time, memory and disk of a run before it starts.
 *
 *     struct estimate estimate;
 *     TRY(estimate_run(experiment, &estimate, error));           // measures this machine's product rate for a moment
 *     estimate_print(&estimate, seeds, stdout);
 */
#ifndef MTIL_HARNESS_RUN_ESTIMATE_H
#define MTIL_HARNESS_RUN_ESTIMATE_H

#include <stdio.h>

#include "harness/run/experiment.h"

struct estimate {
    double training, evaluation;       /* floating-point operations of one seed */
    double rate;                       /* operations per second, measured on large products */
    double memory, disk;               /* bytes */
    double cached_memory, cached_disk; /* additional bytes for decoded images, the latter shared by all runs */
};

/* The rate of f32 products of [1024, 768] by [768, 3072] on the backend. Takes a quarter of a second. */
status product_rate(struct backend *backend, struct arena *arena, double *rate, struct error *error);

status estimate_run(struct experiment *experiment, struct estimate *estimate, struct error *error);
double estimate_seconds(const struct estimate *estimate); /* of one seed */
void estimate_print(const struct estimate *estimate, size_t seeds, FILE *out);

#endif
