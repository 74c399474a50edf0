/* Runs of a sweep that write one database each, which are then joined into the sweep's.
 *
 *     TRY(sweep_parts_look(sweep, PARTS_GO_ON, error));              // after sweep_look
 *     TRY(sweep_parts_collect(sweep, log, error));                   // finished runs, into sweep->database
 */
#pragma once

#include "core/log.h"
#include "harness/sweep/sweep.h"

enum sweep_parts {
    PARTS_GO_ON, /* unfinished runs are resumed in their own databases, which hold their state */
    PARTS_END    /* runs start or resume in the sweep's database; their own count only if finished or running */
};

/* Sets the state of runs that are not finished in the sweep's database. A finished run without a row there is to be
 * collected. With PARTS_GO_ON, `failure` is the last line of the log of a run that is neither finished nor running. */
status sweep_parts_look(struct sweep *sweep, enum sweep_parts parts, struct error *error);

/* Joins the runs to be collected; sweep_look then finds them. */
status sweep_parts_collect(const struct sweep *sweep, const struct log *log, struct error *error);
