/* Runs of a sweep that write databases of their own, one each, until these are joined into the sweep's.
 *
 *     char *path = sweep_part_database(sweep, run);                  // FOLDER/databases/RUN.db; the caller frees
 *     TRY(sweep_parts_look(sweep, PARTS_GO_ON, error));              // after sweep_look
 *     TRY(sweep_parts_collect(sweep, log, error));                   // what is finished, into sweep->database
 */
#ifndef MTIL_HARNESS_SWEEP_PARTS_H
#define MTIL_HARNESS_SWEEP_PARTS_H

#include "core/log.h"
#include "harness/sweep/sweep.h"

enum sweep_parts {
    PARTS_GO_ON, /* what is not finished goes on in its own database, and stands as that says */
    PARTS_END /* it goes on, or begins, in the sweep's: only what is finished, or still runs, is taken from its own */
};

char *sweep_part_database(const struct sweep *sweep, size_t run); /* NULL: no memory */

/* Where the runs stand that the sweep's database does not have finished. What is finished without a row there is to be
 * collected. With PARTS_GO_ON, `failure` is the last line of a run's log that neither is finished nor goes on. */
status sweep_parts_look(struct sweep *sweep, enum sweep_parts parts, struct error *error);

/* Joins what is to be collected; sweep_look then finds it. */
status sweep_parts_collect(const struct sweep *sweep, const struct log *log, struct error *error);

#endif
