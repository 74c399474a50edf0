/* Writes the rows of a run: one function per kind of row.
 *
 *     struct recorder recorder = {.store = store, .id = start.run, .run = run};
 *     TRY(record_evaluation(&recorder, after_task, &set, error));
 */
#pragma once

#include "harness/evaluate/evaluator.h"
#include "harness/run/resume/continuation.h"

struct recorder {
    struct store *store;
    int64_t id; /* of the run in the store */
    struct run *run;
};

/* Finds or creates the run of these inputs and this seed, or the one to be resumed with them, and locks it. */
status record_start(struct recorder *recorder, const struct inputs *inputs, const struct continuation *continuation,
                    struct run_start *start, struct error *error);
status record_session(const struct recorder *recorder, struct error *error);

/* Records the changed data of a resumed run as its inputs. */
status record_changed_inputs(const struct recorder *recorder, const struct inputs *inputs, struct error *error);
status record_tasks(const struct recorder *recorder, struct error *error);

/* after_task −1: zero-shot. routed: also records the chosen routers. Experts that images of each class and
 * patches of single images chose are recorded where they were counted. */
status record_evaluation(const struct recorder *recorder, int64_t after_task, const struct test_set *set, bool routed,
                         struct error *error);

/* Records and clears the run's merges, skips and freezes since the last call. */
status record_changes(const struct recorder *recorder, size_t task, size_t iteration, struct error *error);
/* Sketches of all experts, where there are any. */
status record_sketches(const struct recorder *recorder, size_t task, size_t iteration, struct error *error);
status record_counts(const struct recorder *recorder, size_t task, struct error *error);
status record_threshold(const struct recorder *recorder, const struct selector *selector, size_t task,
                        struct error *error);
status record_file(const struct recorder *recorder, int64_t task, const char *kind, const char *path,
                   struct error *error);
