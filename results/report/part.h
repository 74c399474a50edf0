/* A part of a section: the answer of one question of results/sections/, as tables, figures and texts.
 *
 *     TRY(part_write(call, question, error));                  // appends to call->page; nothing where there is no answer
 */
#ifndef MTIL_RESULTS_REPORT_PART_H
#define MTIL_RESULTS_REPORT_PART_H

#include "core/text.h"
#include "results/query/question.h"
#include "results/report/data.h"
#include "results/report/figure.h"
#include "results/table.h"

struct section_call {
    struct report *report;
    const char *prefix; /* of names and ids: "" or "board2-" */
    struct text *page;
};

/* "board2-matrix": a name for a table or a figure's files. */
const char *section_name(const struct section_call *call, const char *what);

/* Rows [first, end) of an answer, which one drawing shows. */
struct part {
    const struct section_call *call;
    const struct question *question;
    const struct table *rows;
    size_t first, end;
};

status part_write(const struct section_call *call, const struct question *question, struct error *error);

/* A line of the head, with the values of the first row in place of {column}; NULL: the head has no such line. */
const char *part_says(const struct part *part, enum question_key key);
const char *part_fill(const struct part *part, const char *text);

const char *part_name(const struct part *part); /* of tables, figures and their files */

/* Whether the table has the column: others say how a row is shown. */
bool part_is_column(const struct part *part, const char *name);

/* The words of the line "draw", as "line|points", and whether it has the word. */
const char *part_words(const struct part *part);
bool part_has_word(const struct part *part, const char *word);

/* The two numbers of the line "range"; NAN where there is none. */
struct figure_range part_range(const struct part *part);

/* A value of a row; "" and NAN where the column or the value is missing. */
const char *part_text(const struct part *part, size_t row, const char *column);
double part_real(const struct part *part, size_t row, const char *column);

/* Draws a figure; heat: of one panel, whose table the page has already. */
status part_figure(const struct part *part, struct error *error);

#endif
