/* A sweep as tables: its plan and its results.
 *
 *     struct table table = {0};
 *     TRY(sweep_tables_plan(sweep, &placement, &table, error));       // a row per configuration: axes, runs by standing
 *     TRY(sweep_tables_results(sweep, store, &results, error));       // axes, metrics as means over the finished seeds
 *     table_free(&table); ...
 *
 * The caller frees the tables, after a failure too.
 */
#pragma once

#include "harness/sweep/placement.h"
#include "harness/sweep/sweep.h"
#include "results/table.h"

/* Core seconds are converted to the time of a run with the threads of the placement. */
void sweep_tables_plan(const struct sweep *sweep, const struct placement *placement, struct table *table);

/* "±" is the half-width of the 95% interval of the mean (Student), over at least two seeds. Configurations without a finished run have empty cells. Of rows of
 * classifiers, on one dataset or several, it is the paper's table of all runs of their suite (results/query.h). */
status sweep_tables_results(const struct sweep *sweep, struct store *store, struct table *table, struct error *error);
