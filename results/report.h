/* One page that shows what a results database holds, and its figures for papers.
 *
 *     struct report_request request = {.folder = "report", .best = REPORT_BEST, .figures = true};
 *     struct report_outcome outcome;
 *     TRY(report_write(store, &request, &outcome, error));    // report/index.html, report/figures/…
 *
 * Files get their names when all are complete, the page first; a failure before that leaves the earlier files. An
 * earlier report is replaced. A folder that holds anything else is left alone, with ERROR_ARGUMENT.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"
#include "core/threads.h"
#include "results/query.h"
#include "results/store.h"

#define REPORT_BEST 6 /* colours that can be told apart */

/* The mark in the first bytes of every page (report/page.html), by which a report is recognised. */
#define REPORT_MARK "<meta name=\"generator\" content=\"mtil report\">"

/* Everything is borrowed for the call. */
struct report_request {
    struct query_filter filter;
    const char *folder;
    const char *const *by;   /* what is compared, as in comparison_request */
    size_t by_count;         /* 0: nothing is compared */
    size_t best;             /* configurations to draw for each sequence of tasks; 1 to REPORT_BEST */
    bool figures;            /* files for papers too */
    const char *questions;   /* a folder of more sections, a file for each; NULL: none */
    const struct stop *stop; /* a request ends with ERROR_STOPPED; NULL: nobody asks */
};

struct report_outcome {
    size_t runs, configurations, figures;
};

status report_write(struct store *store, const struct report_request *request, struct report_outcome *outcome,
                    struct error *error);
