/* The progress of a run, for processes that watch it: overwritten every second and not kept in the database.
 *
 *     live_write(store, run, &(struct live){.activity = "train", .subject = "dtd", .task = 4, .tasks = 11});
 *     struct live live;
 *     if (live_read(other, run, &live))                        // another process, at most a second later
 *         use(live.task, live.tasks);
 *
 * A JSON object per run, at a fixed place in the file of the locks; in questions it is live(run, host). Writing
 * never fails; where it is impossible, there is nothing to watch. store_run_end erases the object.
 */
#pragma once

#include "results/store.h"

/* Unknown numbers are 0; seconds_left unknown: negative. */
struct live {
    const char *activity, *subject; /* "train", "dtd" */
    int64_t task, tasks;            /* task of tasks, from 1 */
    int64_t step, steps;
    double loss, images_per_second;
    double seconds_left, done; /* of the whole run; done in [0, 1] */
};

void live_write(struct store *store, int64_t run, const struct live *live);
void live_erase(struct store *store, int64_t run);

enum { LIVE_SIZE = 1024 };
/* The object as text; "" when nothing was reported. */
void live_text(struct store *store, int64_t run, char text[LIVE_SIZE]);

/* Reads task, tasks, seconds_left and done of the object; false when nothing was reported. */
bool live_read(struct store *store, int64_t run, struct live *live);

/* Whether a process on any machine that shares the file system has locked the run. */
bool live_has_process(struct store *store, int64_t run);

/* Whether a run that has not ended belongs to a process of this machine that no longer exists. */
bool live_is_gone(struct store *store, int64_t run, const char *host);
