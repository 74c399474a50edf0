/* How long the rest of some work takes, by what was done of it so far and when. Reads no clock and sees no work: whoever
 * reports gives both.
 *
 *     struct time_left left = {0};
 *     time_left_note(&left, now, &work);                 // at every report, in their order
 *     double seconds = time_left_seconds(&left, &work);  // TIME_UNKNOWN: too early to say
 *
 * Work is of several kinds, whose amounts are in one unit: what each would take if all went at the same pace. The pace of a kind is
 * measured, with a memory of half a minute or a quarter of its time so far, whichever is longer; a kind of which nothing
 * was done yet is assumed to go at the mean pace of the others. What stands out counts in part: the first report of a kind
 * pays for warming up, so it is forgotten at the second, and no interval counts for more than 8 times or less than an
 * eighth of its expected time (a resume file is written, the machine sleeps, features were found in a cache).
 *
 * No time is known before 5 reports and 3 seconds of work have been seen, nor while kinds with fewer than 3 reports are
 * more than half of the rest.
 */
#ifndef MTIL_HARNESS_TERMINAL_TIME_LEFT_H
#define MTIL_HARNESS_TERMINAL_TIME_LEFT_H

#include <stdbool.h>
#include <stddef.h>

enum { WORK_KINDS = 4 };

struct progress_work {
    double done[WORK_KINDS], total[WORK_KINDS];
};

/* How fast a kind of work is done. */
struct pace {
    double seconds, amount; /* remembered: older ones fade */
    double watched;         /* seconds of this kind in all */
    size_t reports;         /* of which it was done some more */
};

struct time_left {
    struct pace paces[WORK_KINDS];
    struct progress_work last;
    double when; /* of it */
    bool begun;
};

static const double TIME_UNKNOWN = -1;

/* Other totals than before are other work, which starts anew. */
void time_left_note(struct time_left *left, double now, const struct progress_work *work);

double time_left_seconds(const struct time_left *left, const struct progress_work *work);

double work_share(const struct progress_work *work); /* that is done, in [0, 1] */

#endif
