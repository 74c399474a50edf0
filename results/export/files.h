/* Runs of a store as files for other programs: tables as CSV, and event files for TensorBoard.
 *
 *     struct export_counts counts;
 *     TRY(export_csv(store, &(struct query_filter){.suite = "mini"}, "csv", &counts, error));
 *     … pandas.read_csv("csv/matrix.csv").merge(pandas.read_csv("csv/runs.csv"), on="run")
 *     TRY(export_tensorboard(store, &(struct query_filter){.suite = "mini"}, "logs", &counts, error));
 *     … tensorboard --logdir logs
 *
 * The folder is created if missing. The files appear together when all are complete; a failure leaves the folder as it
 * was. ERROR_ARGUMENT when the filter chooses no run.
 */
#ifndef MTIL_RESULTS_EXPORT_FILES_H
#define MTIL_RESULTS_EXPORT_FILES_H

#include <stddef.h>

#include "core/file_group.h"
#include "results/query.h"
#include "results/store/database.h"

struct export_counts {
    size_t files, entries; /* entries: rows of tables, numbers for TensorBoard */
};

/* A file for every table and view whose rows belong to a run, FOLDER/NAME.csv, with the rows of the chosen runs in the
 * columns that results/README.md describes: one row per observation, and `run` in each. Tables that hold packed bytes
 * (per_image, test_labels) are left out: `mtil query classes` and `confusion` read them. ERROR_ARGUMENT also when a
 * table has more cells than a query may. */
status export_csv(struct store *store, const struct query_filter *filter, const char *folder,
                  struct export_counts *counts, struct error *error);

/* One file per run, FOLDER/SUITE/METHOD-POLICY-CONFIGURATION/seedN/events.out.tfevents.STARTED.mtil, where CONFIGURATION
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
 * which a run was stopped does not count. */
status export_tensorboard(struct store *store, const struct query_filter *filter, const char *folder,
                          struct export_counts *counts, struct error *error);

/* How both are written: add is called with the files for every row of sql, in which `chosen` has the runs. */
struct export_files {
    struct store *store;
    struct file_group group;
    struct export_counts *counts;
};
status export_files(struct export_files *files, const struct query_filter *filter, const char *folder, const char *sql,
                    row_taker *add, struct error *error);

#endif
