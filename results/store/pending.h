/* Rows that wait in memory for their transaction, in order.
 *
 *     struct pending pending = {0};
 *     TRY(pending_add(&pending, INSERT_STEP, values, count, error));       // values are copied
 *     for (size_t i = 0; i < pending.count; i++)
 *         … pending.rows[i]->kind, pending.rows[i]->values, pending.rows[i]->count …
 *     pending_clear(&pending);
 *
 * Hours may lie between two commits of a run, and a transaction open for so long would keep other processes from
 * writing the file.
 */
#ifndef MTIL_RESULTS_STORE_PENDING_H
#define MTIL_RESULTS_STORE_PENDING_H

#include <stddef.h>

#include "results/store/database.h"

struct pending_row {
    int kind; /* the owner's */
    size_t count;
    struct value values[]; /* [count]; texts and blobs lie behind them */
};

/* Zero-initialised is empty. */
struct pending {
    struct pending_row **rows;
    size_t count;
};

status pending_add(struct pending *pending, int kind, const struct value *values, size_t count, struct error *error);
void pending_clear(struct pending *pending); /* and frees */

#endif
