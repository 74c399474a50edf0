/* The progress of a run, for processes that watch it: overwritten every second and not kept in the database.
 *
 *     live_write(store, run, &(struct live){.activity = "train", .subject = "dtd", .task = 4, .tasks = 11});
 *     struct live live;
 *     if (live_read(other, run, &live))                        // another process, at most a second later
 *         use(live.step, live.steps);
 *
 * A record of fixed size per run in the file of the locks (lock.h). Writing never fails; where it is impossible, there
 * is nothing to watch. store_run_end erases the record.
 */
#ifndef MTIL_RESULTS_STORE_LIVE_H
#define MTIL_RESULTS_STORE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "results/store.h"

/* Unknown numbers are 0; seconds_left unknown: negative. */
struct live {
    char activity[32], subject[64]; /* "train", "dtd" */
    int64_t task, tasks;            /* task of tasks, from 1 */
    int64_t step, steps;
    double loss, images_per_second;
    double seconds_left, done; /* of the whole run; done in [0, 1] */
    int64_t updated;           /* seconds since 1970, set by live_write */
};

void live_write(struct store *store, int64_t run, const struct live *live);
void live_erase(struct store *store, int64_t run);

/* False when nothing was reported. */
bool live_read(struct store *store, int64_t run, struct live *live);

/* Whether a process on any machine that shares the file system has locked the run. */
bool live_has_process(struct store *store, int64_t run);

#endif
