/* How far the runs of a sweep are: a count and amounts that never become less, whatever runs report.
 *
 *     struct tally tally;
 *     TRY(tally_open(&tally, sweep->run_count, error));
 *     tally_expect(&tally, run, seconds, false);      // each run that is to be done; has it begun before?
 *     tally_hear(&tally, run, 0.4);                   // it reports the share of all of it that is done
 *     tally_end(&tally, run);                         // nothing is left of it
 *     progress … tally.work …
 *     tally_close(&tally);
 *
 * Of a run that goes on from an earlier stop, what was done when it first reports counts neither as done nor as left.
 */
#ifndef MTIL_HARNESS_SWEEP_TALLY_H
#define MTIL_HARNESS_SWEEP_TALLY_H

#include "core/status.h"
#include "harness/terminal/time_left.h"

struct tally {
    struct tally_run *runs;
    struct progress_work work; /* of one kind */
};

status tally_open(struct tally *tally, size_t runs, struct error *error);
void tally_close(struct tally *tally);

void tally_expect(struct tally *tally, size_t run, double amount, bool begun);
void tally_hear(struct tally *tally, size_t run, double done);
void tally_end(struct tally *tally, size_t run); /* also more than once */

#endif
