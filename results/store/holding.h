/* Whether the run that a store writes is still its own and whole: others can delete its rows, or the lock file, at any time.
 *
 *     TRY(holding_check(store, error));        // within the transaction that adds rows
 *     TRY(holding_count(store, error));        // after rows were added or deleted in another way than by store_commit
 *
 * Inside results/: store.c asks.
 */
#ifndef MTIL_RESULTS_STORE_HOLDING_H
#define MTIL_RESULTS_STORE_HOLDING_H

#include "results/store/store_internal.h"

enum { HOLDING_UNKNOWN = -1 };

/* Whether rows of this kind are counted: those that are written once and never again. */
bool holding_counts(enum insert kind);

/* ERROR_IO when the lock file is another one now, ERROR_FORMAT when the run's row, or rows that belong to it, are gone.
 * Harmless when no run is held. */
status holding_check(struct store *store, struct error *error);

/* Counts the rows of the run that is held. */
status holding_count(struct store *store, struct error *error);

/* Opens the file anew by its path and finds the run there, finished and with all its rows. */
status holding_confirm(struct store *store, struct error *error);

#endif
