/* Whether the run that a store writes is still its own and whole: others can change or delete its rows, or the lock file, at
 * any time.
 *
 *     TRY(holding_check(store, error));                    // within the transaction that adds rows
 *     TRY(holding_read(store, &store->rows, error));       // after rows were added or deleted
 *
 * Rows are compared by number and digest per table, of those tables that a run fills by store_commit alone.
 * Inside results/: store.c asks.
 */
#ifndef MTIL_RESULTS_STORE_HOLDING_H
#define MTIL_RESULTS_STORE_HOLDING_H

#include "results/store/store_internal.h"

/* ERROR_IO when the lock file is another one now, ERROR_FORMAT when the run's row is gone, or rows that belong to it are
 * gone or others. Harmless when no run is held. */
status holding_check(struct store *store, struct error *error);

/* Of the run that is held; unknown where none is. */
status holding_read(struct store *store, struct held_rows *rows, struct error *error);

/* Adds the rows that an SQL statement answers to their number and digest. The first column, the run, does not count: a copy
 * of the run in another database may have another number. */
status holding_add(struct database *database, const char *sql, const struct value *values, size_t count,
                   struct held_table *rows, struct error *error);

/* Opens the file anew by its path and finds the run there, finished and with all its rows. */
status holding_confirm(struct store *store, struct error *error);

#endif
