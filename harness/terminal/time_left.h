/* Estimates how long the rest of some work takes from the amounts done so far and their times. The caller reports both;
 * no clock is read here.
 *
 *     struct time_left left = {0};
 *     time_left_note(&left, now, &work);                 // at every report, in their order
 *     double seconds = time_left_seconds(&left, &work);  // TIME_UNKNOWN: too early to say
 *
 * Work is of several kinds, with amounts in one unit. The pace of each kind is measured with exponential weights over
 * half a minute or a quarter of its time so far, whichever is longer; a kind that has not begun is assumed to go at the
 * mean pace of the others. Outliers are limited: the first report of a kind includes warming up and is forgotten at the
 * second, and no interval counts for more than 8 times or less than an eighth of its expected time (a resume file is
 * written, the machine sleeps, features were found in a cache).
 *
 * No time is known before 5 reports and 3 seconds of work have been seen, nor while kinds with fewer than 3 reports are
 * more than half of the rest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { WORK_KINDS = 4 };

struct progress_work {
    double done[WORK_KINDS], total[WORK_KINDS];
};

/* How fast a kind of work is done. */
struct pace {
    double seconds, amount; /* with exponentially fading weights */
    double watched;         /* seconds of this kind in all */
    size_t reports;         /* with new work of this kind */
};

struct time_left {
    struct pace paces[WORK_KINDS];
    struct progress_work last;
    double when; /* time of `last` */
    bool begun;
};

static const double TIME_UNKNOWN = -1;

/* Different totals mean different work: the estimate starts anew. */
void time_left_note(struct time_left *left, double now, const struct progress_work *work);

double time_left_seconds(const struct time_left *left, const struct progress_work *work);

double work_share(const struct progress_work *work); /* the share that is done, in [0, 1] */
