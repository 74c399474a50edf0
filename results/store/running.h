/* The runs that are being written, and how far they are: what `mtil watch` shows.
 *
 *     struct table progress = {0}, accuracy = {0};
 *     TRY(running_progress(store, &progress, error));         // a row per run
 *     TRY(running_accuracy(store, &accuracy, error));         // what each has reached so far
 *     table_free(&progress); ...
 *
 * Read from the database, as far as it is committed, and from the note that each run leaves beside it (live.h). The caller
 * frees the tables, after a failure too.
 */
#ifndef MTIL_RESULTS_STORE_RUNNING_H
#define MTIL_RESULTS_STORE_RUNNING_H

#include "core/text.h"
#include "results/store.h"
#include "results/table.h"

#define RUNNING_GONE "process is gone"

/* Whether the process of a run that has not ended is on this machine and no longer there. */
bool running_is_gone(struct store *store, int64_t run, const char *host);

/* Which run, what it does, how far it is, its loss, speed and time left. A run whose process is gone says so. */
status running_progress(struct store *store, struct table *table, struct error *error);

/* The last row of each run's accuracy matrix, in percent: a column per task of any of them. */
status running_accuracy(struct store *store, struct table *table, struct error *error);

/* Appends "2 running, 14 finished, 1 failed", or "no runs". */
status running_counts(struct store *store, struct text *line, struct error *error);

#endif
