/* The parts of a page, each a function in a file of its own and one line of the table in page.c.
 *
 *     status section_loss(const struct section_call *call, struct error *error)
 *     {
 *         … html_table(call->page, …); return section_figure(call, &figure, error);
 *     }
 *
 * A part with nothing to show writes nothing and has no heading.
 */
#ifndef MTIL_RESULTS_REPORT_SECTION_H
#define MTIL_RESULTS_REPORT_SECTION_H

#include "core/text.h"
#include "results/report/data.h"
#include "results/report/figure.h"
#include "results/report/html.h"

struct section_call {
    struct report *report;
    const struct board *board;
    const char *prefix; /* of names and ids: "" or "board2-" */
    struct text *page;
};

/* The comparison, which is no question: compare.h makes its tables. */
status section_comparison(const struct section_call *call, struct error *error);

/* "board2-matrix": a name for a table or a figure's files. */
const char *section_name(const struct section_call *call, const char *what);

/* Stem of a figure's files for html_table; NULL when none are written. */
const char *section_files(const struct section_call *call, const char *name);

/* Alternatives that are shown one at a time: begins all of them, and one; each ends with "</div>". */
void section_choices(const struct section_call *call, const char *name);
void section_choice(const struct section_call *call, const char *label);

#endif
