/* The progress of a sweep's runs, in amounts of work that never decrease, whatever runs report.
 *
 *     struct tally tally;
 *     tally_open(&tally, sweep->run_count);
 *     tally_expect(&tally, run, seconds, false);      // a run to be done; true: it has begun before
 *     tally_hear(&tally, run, 0.4);                   // it reports the share of its work that is done
 *     tally_end(&tally, run);                         // the run has ended
 *     progress … tally.work …
 *     tally_close(&tally);
 *
 * Work of a resumed run that was done before its first report counts neither as done nor as left.
 */
#pragma once

#include "harness/terminal/time_left.h"

struct tally {
    struct tally_run *runs;
    struct progress_work work; /* of one kind */
};

void tally_open(struct tally *tally, size_t runs);
void tally_close(struct tally *tally);

void tally_expect(struct tally *tally, size_t run, double amount, bool begun);
void tally_hear(struct tally *tally, size_t run, double done);
void tally_end(struct tally *tally, size_t run); /* also more than once */
