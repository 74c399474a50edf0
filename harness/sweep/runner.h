/* Runs the missing runs of a sweep as child processes (child.h), as many at a time as the placement allows.
 *
 *     struct sweep_runner runner = {.sweep = sweep, .placement = placement, .log = log, .progress = progress, .stop = stop};
 *     TRY(sweep_runner_run(&runner, error));
 *     sweep->runs[i].standing, sweep->runs[i].failure …
 */
#pragma once

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

/* The database must exist. The reason of a failed run is in `failure`; the others continue and the result is OK. Waits
 * for runs of other processes, and for another process with the same sweep, and resumes what they leave unfinished. A
 * stop request is passed on to the children, which are waited for (ERROR_STOPPED). */
status sweep_runner_run(const struct sweep_runner *runner, struct error *error);
