/* Tries a selector on the adapters that a run saved: trains it on frozen features, task after task, and evaluates after
 * each task whose adapters were saved. The run is not changed; rows go to the table `trials`.
 *
 *     TRY(trial_source_read(store, run, &source, error));        // and locks the run until the store is closed
 *     struct trials trials = {.model = model, .data = data, .store = store, .run = run, .source = &source, .progress = p,
 *                             .stop = stop};
 *     TRY(trials_run(&trials, &settings, error));                // a selector's settings; once for each
 *     trial_source_free(&source);
 *
 * The model is frozen, of the run's suite and seed.
 */
#pragma once

#include "harness/model/model.h"
#include "results/store.h"

/* Adapters that the run saved; after_task -1: after the last task that it reached. */
struct trial_adapters {
    int64_t after_task;
    char *path, *digest;
};

struct trial_source {
    struct run_row run;
    struct trial_adapters *adapters; /* by after_task */
    size_t count;
};

/* The caller frees, after a failure too. ERROR_ARGUMENT when there is no such run, ERROR_BUSY while it is written. */
status trial_source_read(struct store *store, int64_t run, struct trial_source *source, struct error *error);
void trial_source_free(struct trial_source *source);

struct trials {
    struct model *model;
    const struct data *data;
    struct store *store;
    int64_t run;
    const struct trial_source *source;
    struct progress *progress;
    const struct stop *stop;
};

/* keys: the selector's keys, which identify the trial. Stored rows are not computed again; after a stop the same call
 * goes on. */
status trials_run(const struct trials *trials, const struct selector_settings *settings, const char *keys,
                  struct error *error);
