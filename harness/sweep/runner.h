/* Runs what a sweep misses, each run a child process (child.h), so many at a time as the placement says.
 *
 *     struct sweep_runner runner = {.sweep = sweep, .placement = placement, .log = log, .progress = progress, .stop = stop};
 *     TRY(sweep_runner_run(&runner, error));
 *     sweep->runs[i].standing, sweep->runs[i].failure …
 */
#ifndef MTIL_HARNESS_SWEEP_RUNNER_H
#define MTIL_HARNESS_SWEEP_RUNNER_H

#include "harness/sweep/placement.h"
#include "harness/sweep/sweep.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"

struct sweep_runner {
    struct sweep *sweep;
    struct placement placement;
    const struct log *log;
    struct progress *progress;
    struct stop *stop;
};

/* The database is there. A run that fails keeps its reason in `failure` and the others go on: that is OK here. Runs that
 * other processes are at are waited for, and computed where those leave them unfinished; so is another process that runs
 * the same sweep. A request to stop is passed on to the children and waited for (ERROR_STOPPED). */
status sweep_runner_run(const struct sweep_runner *runner, struct error *error);

size_t sweep_runner_failures(const struct sweep *sweep);

#endif
