/* The data of a report: the chosen runs, by configuration and by sequence of tasks, as temporary tables of the connection
 * that the questions of the page read.
 *
 *     struct report report = {.store = store, .request = request};
 *     TRY(report_load(&report, error));
 *     for (int64_t board = 1; board <= report.boards; board++)
 *         TRY(report_board(&report, board, error));              // fills the tables for the questions of the board
 *
 * Tables of a board, which go with the next one:
 *     configurations  a row per configuration, best Last first: number (from 1), run (its first one), hash, label, legend,
 *                     colour (null: not drawn), runs, finished, used (how many enter means), seeds ("2 seeds")
 *     members         a row per run: run, number, turn (from 0 in its configuration), seed, status, finished, used (0, 1), and
 *                     its metrics
 *     drawn           the used runs of configurations with a colour: run, number, turn, seed, label, legend, colour, seeds
 *     board           a row per task: task, name, title ("3  cifar100"), wanted (0: --dataset asks for another)
 *     differing       settings of the first 2000 configurations: number, key, value, incidental
 *     asked           settings of --by: place, key
 *     metric_names    place (from 0), metric, title, formula, source, best ("highest", "lowest"); of all boards
 *
 * A label is what distinguishes a configuration from the others of its board; the legend is the same with its method, for
 * figures. A section that includes results/questions/parts/compared.sql reads what mtil compare finds.
 */
#ifndef MTIL_RESULTS_REPORT_DATA_H
#define MTIL_RESULTS_REPORT_DATA_H

#include <stdint.h>

#include "core/text.h"
#include "results/compare.h"
#include "results/report.h"
#include "results/store.h"
#include "results/store/database.h"

struct report {
    struct store *store;
    const struct report_request *request;
    int64_t runs, finished, configurations, boards, boards_left_out;
    struct comparison_request compared; /* the connection refers to it */
    struct comparison comparison;       /* store NULL: there is none */
    const char *folder;                 /* being written */
    size_t figures;                     /* written for papers so far */
    void **memory;                      /* [taken] what report_take gave */
    size_t taken;
};

status report_load(struct report *report, struct error *error);
status report_board(struct report *report, int64_t number, struct error *error);
void report_free(struct report *report);

/* Zeroed memory, a formatted string and a copy, which the report owns until report_release or report_free. */
void *report_take(struct report *report, size_t count, size_t size);
const char *report_format(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
const char *report_copy(struct report *report, const char *string);
void report_release(struct report *report, size_t taken); /* what was taken since there were so many */

/* The rows of a statement that reads these tables. */
struct table;
status report_ask(struct report *report, const char *sql, struct table *rows, struct error *error);

/* page.c: the whole page. */
status page_write(struct report *report, struct text *html, struct error *error);

status report_stopped(const struct report *report, struct error *error); /* ERROR_STOPPED after a stop request */

#endif
