/* Runs of a store as files for TensorBoard.
 *
 *     struct tensorboard_counts counts;
 *     TRY(tensorboard_export(store, &(struct query_filter){.suite = "mini"}, "logs", &counts, error));
 *     … tensorboard --logdir logs
 *
 * One file per run, FOLDER/SUITE/METHOD-POLICY-CONFIGURATION/seedN/events.out.tfevents.STARTED.mtil, where CONFIGURATION
 * is the beginning of the suite's digest; exporting a run again replaces its file. In it:
 *
 *     training/loss, training/learning_rate       by iteration, counted through all tasks
 *     accuracy/TASK, metrics/mean_accuracy        by number of tasks trained; 0: zero-shot CLIP
 *     metrics/transfer, average, last, …          of a run whose matrix is complete, after the last task
 *     run, hyperparameters                        as text: what `mtil query runs` shows, and the suite key by key
 *     _hparams_/…                                 for the tab HParams: method, policy, suite, and the settings in which
 *                                                 the chosen runs differ; the seeds of a configuration are one group
 *
 * Accuracies and metrics are in percent. The clock is the run's start plus the time of its phases, so the time for
 * which a run was stopped does not count.
 */
#ifndef MTIL_RESULTS_EXPORT_TENSORBOARD_H
#define MTIL_RESULTS_EXPORT_TENSORBOARD_H

#include <stddef.h>

#include "core/status.h"
#include "results/query.h"
#include "results/store.h"

struct tensorboard_counts {
    size_t runs, values; /* values: numbers, text not counted */
};

/* Writes the chosen runs into folder, which is created if missing. The files appear together when all are complete; a
 * failure leaves the folder as it was. ERROR_ARGUMENT when the filter chooses no run. */
status tensorboard_export(struct store *store, const struct query_filter *filter, const char *folder,
                          struct tensorboard_counts *counts, struct error *error);

#endif
