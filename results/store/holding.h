/* Checks that the run that a store writes is still its own and complete: other programs can change or delete its rows
 * at any time.
 *
 *     TRY(holding_check(store, error));                    // within the transaction that adds rows
 *     TRY(holding_read(store, &store->rows, error));       // after rows were added or deleted
 *
 * Rows are compared by number and digest, in the tables that only store_commit fills. Internal to results/.
 */
#ifndef MTIL_RESULTS_STORE_HOLDING_H
#define MTIL_RESULTS_STORE_HOLDING_H

#include "results/store/store_internal.h"

/* ERROR_FORMAT when the run or rows of it were deleted or changed. Does nothing when no run is held. */
status holding_check(struct store *store, struct error *error);

/* Reads the rows of the held run; rows->known is false when none is held. */
status holding_read(struct store *store, struct held_rows *rows, struct error *error);

/* Adds the rows of an SQL statement to the number and digest. The first column, the run, is ignored, because a copy of
 * the run in another database may have another number. */
status holding_add(struct database *database, const char *sql, const struct value *values, size_t count,
                   struct held_rows *rows, struct error *error);

/* Opens the file anew by its path and finds its pages whole and the run finished, with all its rows. */
status holding_confirm(struct store *store, struct error *error);

#endif
