/* Removes a run from a database.
 *
 *     struct run_remains remains;
 *     TRY(erase_describe(store, run, &remains, error));
 *     TRY(erase_lock(store, run, error));                 // ERROR_BUSY: somebody is writing it
 *     … its files, remains.folder …
 *     TRY(erase_rows(store, run, error));                 // in one transaction, and releases the lock
 *     run_remains_free(&remains);
 *
 * Rows go last, so that a run whose files are partly removed can still be named.
 */
#ifndef MTIL_RESULTS_STORE_ERASE_H
#define MTIL_RESULTS_STORE_ERASE_H

#include "results/store.h"

struct run_remains {
    int64_t run, seed;
    char *suite, *suite_text, *suite_hash, *status;
    char *folder; /* of its files; NULL: unknown */
};

/* The caller frees, after a failure too. ERROR_ARGUMENT when there is no such run. */
status erase_describe(struct store *store, int64_t run, struct run_remains *remains, struct error *error);
void run_remains_free(struct run_remains *remains);

status erase_lock(struct store *store, int64_t run, struct error *error);
status erase_rows(struct store *store, int64_t run, struct error *error);

#endif
