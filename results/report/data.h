/* The data of a report: the chosen runs, by configuration and by sequence of tasks, as temporary tables of the connection
 * that the questions of the page read.
 *
 *     struct report report = {.store = store, .request = request};
 *     TRY(report_load(&report, error));
 *     for (int64_t b = 1; b <= report.boards; b++)
 *         TRY(report_board(&report, b, &board, error));            // fills the tables for the questions of board b
 *
 * Tables of a board:
 *     configurations  a row per configuration, best Last first: number (from 1), run (its first one), hash, label, legend,
 *                     colour (null: not drawn), runs, finished, used (how many enter means), seeds ("2 seeds")
 *     members         a row per run: run, number, turn (from 0 in its configuration), seed, status, finished, used (0, 1), and
 *                     its metrics
 *     drawn           the used runs of configurations with a colour: run, number, turn, seed, label, legend, colour, seeds
 *     board           a row per task: task, name, title ("3  cifar100"), wanted (0: --dataset asks for another)
 *     differing       settings of the first 200 configurations: number, key, value, incidental
 *     metric_names    place (from 0), metric, title, formula, source, best ("highest", "lowest"); of all boards
 *
 * A label is what distinguishes a configuration from the others of its board; the legend is the same with its method, for
 * figures. All memory is in the report's arena and is freed with it.
 */
#ifndef MTIL_RESULTS_REPORT_DATA_H
#define MTIL_RESULTS_REPORT_DATA_H

#include <stdint.h>

#include "core/arena.h"
#include "core/text.h"
#include "results/compare.h"
#include "results/report.h"
#include "results/store.h"
#include "results/store/database.h"

struct board {
    int64_t number;
    const char *title;               /* "11 tasks: aircraft, caltech101, cifar100, …" */
    const char *legend[REPORT_BEST]; /* by colour; NULL: not in use */
    int64_t *run;                    /* [runs] */
    size_t runs;
};

struct report {
    struct store *store;
    const struct report_request *request;
    struct arena arena;
    bool failed; /* out of memory at some point */
    int64_t runs, finished, configurations, boards, boards_left_out;
    bool complete;                 /* a finished run has all metrics */
    const char *folder;            /* being written */
    struct comparison *comparison; /* NULL: there is none */
    const char *not_compared;      /* why, where it is no mistake of the user's */
    size_t figures;                /* written for papers so far */
};

status report_load(struct report *report, struct error *error);

/* After report_load: fills comparison, which the caller frees. */
status report_compare(struct report *report, struct error *error);

/* Fills the tables above. */
status report_board(struct report *report, int64_t number, struct board *board, struct error *error);

/* Zeroed memory of the report; NULL, and report->failed, when out of memory. */
void *report_take(struct report *report, size_t count, size_t size);

/* A formatted string in the report's memory; "" and report->failed when out of memory. */
const char *report_format(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
const char *report_copy(struct report *report, const char *string);

status report_check(const struct report *report, struct error *error);   /* ERROR_MEMORY after a failure */
status report_stopped(const struct report *report, struct error *error); /* ERROR_STOPPED after a stop request */

/* labels.c: labels, legends and colours of page_configurations. */
status label_configurations(struct report *report, struct error *error);

/* One of the scripts of results/report/sql/. */
status report_script(struct report *report, const char *name, struct error *error);

#endif
