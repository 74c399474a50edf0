/* The running runs and their progress, for `mtil watch`.
 *
 *     struct table progress = {0}, accuracy = {0};
 *     TRY(running_progress(store, &progress, error));         // a row per run
 *     TRY(running_accuracy(store, &accuracy, error));         // what each has reached so far
 *     table_free(&progress); ...
 *
 * Read from the committed rows and from the progress that each run writes beside the database (live.h). The caller
 * frees the tables, after a failure too.
 */
#ifndef MTIL_RESULTS_STORE_RUNNING_H
#define MTIL_RESULTS_STORE_RUNNING_H

#include "core/text.h"
#include "results/store.h"
#include "results/table.h"

#define RUNNING_GONE "process is gone"

/* Whether a run that has not ended belongs to a process of this machine that no longer exists. */
bool running_is_gone(struct store *store, int64_t run, const char *host);

/* A row per run: its activity, progress, loss, speed and time left, or that its process is gone. */
status running_progress(struct store *store, struct table *table, struct error *error);

/* The last row of each run's accuracy matrix, in percent: a column per task of any of them. */
status running_accuracy(struct store *store, struct table *table, struct error *error);

/* Appends "2 running, 14 finished, 1 failed", or "no runs". */
status running_counts(struct store *store, struct text *line, struct error *error);

#endif
