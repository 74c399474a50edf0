/* Runs of a store as files for other programs.
 *
 *     struct export_counts counts;
 *     TRY(export_csv(store, &(struct query_filter){.suite = "mini"}, "csv", &counts, error));
 *     … pandas.read_csv("csv/matrix.csv").merge(pandas.read_csv("csv/runs.csv"), on="run")
 */
#pragma once

#include <stddef.h>

#include "results/query.h"

struct export_counts {
    size_t files, rows;
};

/* A file for every table and view whose rows belong to a run, FOLDER/NAME.csv, with the rows of the chosen runs in the
 * columns that results/README.md describes: one row per observation, and `run` in each. Tables that hold packed bytes
 * (per_image, test_labels) are left out: `mtil query classes` and `confusion` read them. The folder is created if missing. The files
 * appear together when all are complete; a failure leaves the folder as it was. ERROR_ARGUMENT when the filter chooses no run, or a
 * table has more cells than a query may. */
status export_csv(struct store *store, const struct query_filter *filter, const char *folder,
                  struct export_counts *counts, struct error *error);
