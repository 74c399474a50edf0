#include "harness/terminal/time_left.h"

#include <math.h>
#include <string.h>

enum { ENOUGH_REPORTS = 5, WARM_REPORTS = 2 };
static const double enough_seconds = 3, shortest_memory = 30, remembered_share = 0.25, outlier = 8;

double work_share(const struct progress_work *work)
{
    double done = 0, total = 0;
    for (size_t k = 0; k < WORK_KINDS; k++) {
        done += fmin(work->done[k], work->total[k]);
        total += work->total[k];
    }
    return total > 0 ? fmax(done / total, 0) : 0;
}

static bool is_known(const struct pace *pace)
{
    return pace->amount > 0;
}

/* Seconds per unit; for an unknown kind, the mean of the others weighted by their share of the work. */
static double pace_of(const struct time_left *left, const struct progress_work *work, size_t kind)
{
    double seconds = 0, amount = 0;
    if (is_known(&left->paces[kind]))
        return left->paces[kind].seconds / left->paces[kind].amount;
    for (size_t k = 0; k < WORK_KINDS; k++)
        if (is_known(&left->paces[k])) {
            seconds += work->total[k] * (left->paces[k].seconds / left->paces[k].amount);
            amount += work->total[k];
        }
    return amount > 0 ? seconds / amount : 0;
}

/* The second report of a kind replaces the first one. */
static void learn(struct pace *pace, double seconds, double amount)
{
    double expected = is_known(pace) ? amount * (pace->seconds / pace->amount) : 0;
    if (pace->reports++ < WARM_REPORTS) {
        *pace = (struct pace){.reports = pace->reports};
    } else if (expected > 0) {
        amount = fmin(amount, amount * outlier * seconds / expected);
        seconds = fmin(seconds, outlier * expected);
    }
    pace->watched += seconds;
    double faded = exp(-seconds / fmax(shortest_memory, remembered_share * pace->watched));
    pace->seconds = faded * pace->seconds + seconds;
    pace->amount = faded * pace->amount + amount;
}

void time_left_note(struct time_left *left, double now, const struct progress_work *work)
{
    double gained[WORK_KINDS], expected[WORK_KINDS], sum = 0, gain = 0;
    if (!left->begun || memcmp(left->last.total, work->total, sizeof work->total) != 0) {
        *left = (struct time_left){.last = *work, .when = now, .begun = true};
        return;
    }
    for (size_t k = 0; k < WORK_KINDS; k++) {
        gained[k] = fmax(work->done[k] - left->last.done[k], 0);
        expected[k] = gained[k] * pace_of(left, work, k);
        gain += gained[k];
        sum += expected[k];
    }
    if (gain == 0)
        return; /* the time belongs to what is done next */
    for (size_t k = 0; k < WORK_KINDS; k++)
        if (gained[k] > 0)
            learn(&left->paces[k], (now - left->when) * (sum > 0 ? expected[k] / sum : gained[k] / gain), gained[k]);
    left->last = *work;
    left->when = now;
}

double time_left_seconds(const struct time_left *left, const struct progress_work *work)
{
    double seconds = 0, rest = 0, known = 0, watched = 0;
    size_t reports = 0;
    for (size_t k = 0; k < WORK_KINDS; k++) {
        double of_kind = fmax(work->total[k] - work->done[k], 0);
        rest += of_kind;
        known += left->paces[k].reports > WARM_REPORTS ? of_kind : 0;
        seconds += of_kind * pace_of(left, work, k);
        reports += left->paces[k].reports;
        watched += left->paces[k].watched;
    }
    bool enough = reports >= ENOUGH_REPORTS && watched >= enough_seconds && known >= rest / 2;
    return rest > 0 && enough ? seconds : TIME_UNKNOWN;
}
