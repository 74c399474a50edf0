/* The data of a report: the chosen runs, by configuration and by sequence of tasks, as temporary tables of the connection that the
 * questions of the page read (README.md lists them).
 *
 *     struct report report = {.store = store, .request = request};
 *     TRY(report_load(&report, error));
 *     for (int64_t board = 1; board <= report.boards; board++)
 *         TRY(report_board(&report, board, error));              // fills the tables for the questions of the board
 *     report_free(&report);
 */
#pragma once

#include <stdint.h>

#include "core/file_writer.h"
#include "core/text.h"
#include "results/compare.h"
#include "results/query/question.h"
#include "results/report.h"
#include "results/store.h"
#include "results/store/database.h"
#include "results/table.h"

#define REPORT_FIGURES "figures" /* within the folder, for papers */

struct report {
    struct store *store;
    const struct report_request *request;
    int64_t runs, configurations, boards;
    struct comparison_request compared; /* the connection refers to it */
    struct comparison comparison;       /* store NULL: there is none */
    struct file_group files;            /* being written */
    size_t figures;                     /* written for papers so far */
    const char *prefix;                 /* of names and ids: "", or "board2-" on a page of several */
    struct text nav, body;              /* of the page: links to its sections, and these */
    void **memory;                      /* [taken] the strings of report_format */
    size_t taken;
};

status report_load(struct report *report, struct error *error);
status report_board(struct report *report, int64_t number, struct error *error);
void report_free(struct report *report);

/* A formatted string, which the report owns until report_release or report_free. */
const char *report_format(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
void report_release(struct report *report, size_t taken); /* frees the strings beyond the first `taken` */

status report_stopped(const struct report *report, struct error *error); /* ERROR_STOPPED after a stop request */

/* --- section.c --- */

/* Rows [first, end) of an answer, which are shown together, and the lines of the head with the values of the first row in place of
 * {column}. */
struct part {
    struct report *report;
    const struct question *question;
    const struct table *rows;
    size_t first, end;
    const char *title, *name;        /* name: of tables, figures and their files */
    const char *says[QUESTION_KEYS]; /* NULL: the head has no such line */
    const char *words;               /* of the line "draw", as "line|points|1" */
    int decimals;                    /* the number among them; DECIMALS_ALL: there is none */
    double low, high;                /* of the line "range"; NAN: open */
};

/* Appends the answer of a question of results/sections/ to report->body; nothing where there is none. */
status section_write(struct report *report, const struct question *question, struct error *error);

/* A value of a row; "" and NAN where the column or the value is missing. */
const char *part_text(const struct part *part, size_t row, const char *column);
double part_real(const struct part *part, size_t row, const char *column);
