/* Tries a selector on the adapters that a run saved: trains it on frozen features, task after task, and evaluates after
 * each task whose adapters were saved. The run is not changed; rows go to the tables of results/store/trials.h.
 *
 *     struct trials trials = {.model = model, .data = data, .store = store, .run = run, .source = &source, .progress = p,
 *                             .stop = stop};
 *     TRY(trials_run(&trials, &settings, error));                // a selector's settings; once for each
 *
 * The model is frozen, of the run's suite and seed.
 */
#ifndef MTIL_HARNESS_EVALUATE_TRIALS_H
#define MTIL_HARNESS_EVALUATE_TRIALS_H

#include "harness/heads/model.h"
#include "results/store/trials.h"

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

#endif
