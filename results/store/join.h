/* Joins several results databases into one: every run once, with all its rows. (Merging experts is adapters/merge.h.)
 *
 *     struct join_counts counts[2];
 *     struct join_settings settings = {.log = log};
 *     TRY(join_databases("all.db", (const char *[]){"node1.db", "node2.db"}, 2, &settings, counts, error));
 *
 * A suite's digest and a seed identify a run. Where two files have the same run, they must agree in every common row,
 * and the one with more rows is kept, as when a run was stopped, copied and continued. Times, machines and paths
 * (`runs`, `settings`, `timings`, `artifacts`) may differ; those of the kept run stay. Runs that disagree are a
 * conflict.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct stop; /* core/threads.h */

struct join_settings {
    bool keep_first;         /* of runs that disagree keep the first: the output's, then the inputs' in order */
    const struct log *log;   /* gets a warning for each conflict, which names the run and what differs; may be NULL */
    const struct stop *stop; /* may be NULL */
};

/* Counts of the runs of an input. */
struct join_counts {
    size_t runs;
    size_t added;     /* were not there */
    size_t known;     /* were there, with as many rows or more */
    size_t completed; /* were there with fewer rows, and are this input's now */
    size_t conflicts;
};

/* Joins inputs into output, which is created, or added to when it is there; counts has room for each input. Inputs are
 * only read; an older schema is brought up to date in memory. All or nothing: on any failure, a conflict without
 * keep_first (ERROR_FORMAT) included, output is unchanged or absent. ERROR_BUSY when a run of the output that would be
 * completed is being written, ERROR_STOPPED after a request to stop. */
status join_databases(const char *output, const char *const *inputs, size_t count, const struct join_settings *settings,
                      struct join_counts *counts, struct error *error);
