/* Results of a run's saved adapters with another selector, beside the run's own.
 *
 *     struct trial_source source;
 *     TRY(trial_source_read(store, run, &source, error));            // and locks the run until the store is closed
 *     TRY(trial_open(store, run, &(struct trial_row){"text", "per_image", settings}, &trial, error));
 *     TRY(trial_has(store, run, trial, after_task, &has, error));
 *     TRY(trial_add(store, run, trial, evaluations, choices, tasks, error));      // a row of the matrix, or nothing
 *     trial_source_free(&source);
 */
#ifndef MTIL_RESULTS_STORE_TRIALS_H
#define MTIL_RESULTS_STORE_TRIALS_H

#include "results/store/erase.h"

/* Adapters that the run saved; after_task −1: after the last task that it reached. */
struct trial_adapters {
    int64_t after_task;
    char *path, *digest;
};

struct trial_source {
    struct run_remains run;
    struct trial_adapters *adapters; /* by after_task */
    size_t count;
};

/* The caller frees, after a failure too. ERROR_ARGUMENT when there is no such run, ERROR_BUSY while it is written. */
status trial_source_read(struct store *store, int64_t run, struct trial_source *source, struct error *error);
void trial_source_free(struct trial_source *source);

struct trial_row {
    const char *selector, *selection;
    const char *settings; /* they identify a trial of a run */
};

/* Test images of `task` sent to each router; counts[0] is zero-shot CLIP, counts[1 + t] router t. Zeros are not
 * stored. */
struct router_choices_row {
    int64_t after_task, task;
    const uint64_t *counts;
    size_t routers; /* counts has one more */
};

/* trial 0: there is none yet. */
status trial_find(struct store *store, int64_t run, const struct trial_row *row, int64_t *trial, struct error *error);
/* Finds the trial or adds it: with its first results, so that a selector that failed leaves nothing. */
status trial_open(struct store *store, int64_t run, const struct trial_row *row, int64_t *trial, struct error *error);
status trial_has(struct store *store, int64_t run, int64_t trial, int64_t after_task, bool *has, struct error *error);
status trial_add(struct store *store, int64_t run, int64_t trial, const struct evaluation_row *evaluations,
                 const struct router_choices_row *choices, size_t tasks, struct error *error);

#endif
