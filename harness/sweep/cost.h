/* The cost of a sweep: measured in finished runs if there are some, otherwise estimated from the operations.
 *
 *     TRY(sweep_cost_estimate(sweep, store, log, progress, error));      // fills the configurations' cost, runs' spent
 *     struct placement placement = placement_choose(&machine, &request);    // request.memory: sweep_cost_memory(sweep)
 *     double seconds = sweep_cost_left(sweep, &placement);
 */
#pragma once

#include "harness/sweep/placement.h"
#include "harness/sweep/sweep.h"
#include "harness/terminal/progress.h"

/* Configurations that differ only in merge.* are assumed to cost the same. One that cannot be opened (missing data
 * or weights) has no cost, and a warning says why. store may be NULL. */
status sweep_cost_estimate(struct sweep *sweep, struct store *store, const struct log *log, struct progress *progress,
                           struct error *error);

/* Seconds until all runs are finished; NAN when a configuration with work left has no cost. */
double sweep_cost_left(const struct sweep *sweep, const struct placement *placement);

/* The largest memory of a run with work left, and the disk space of all of them; bytes, 0: unknown. */
double sweep_cost_memory(const struct sweep *sweep);
double sweep_cost_disk(const struct sweep *sweep);
