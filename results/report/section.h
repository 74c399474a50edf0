/* What a question of results/sections/ says, on the page: rows of its answer as a table, a figure or a list.
 *
 *     TRY(section_write(report, question, error));             // appends to report->body; nothing where there is no answer
 */
#ifndef MTIL_RESULTS_REPORT_SECTION_H
#define MTIL_RESULTS_REPORT_SECTION_H

#include "results/query/question.h"
#include "results/report/data.h"
#include "results/table.h"

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

status section_write(struct report *report, const struct question *question, struct error *error);

/* A value of a row; "" and NAN where the column or the value is missing. */
const char *part_text(const struct part *part, size_t row, const char *column);
double part_real(const struct part *part, size_t row, const char *column);

#endif
