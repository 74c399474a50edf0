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

typedef status section_function(const struct section_call *call, struct error *error);

section_function section_comparison;

/* --- Shared by several parts --- */

/* Accuracies in percent of a configuration's used runs: [runs, 1 + tasks, tasks], zero-shot CLIP first; NAN: unknown. */
struct accuracies {
    size_t runs, tasks;
    const double *value;
    const int64_t *images; /* as in accuracy_matrix: [tasks], or NULL */
};
status section_accuracies(const struct section_call *call, const struct configuration *configuration,
                          struct accuracies *accuracies, struct error *error);

/* Over runs: value[run * stride]. */
struct spread {
    size_t n;
    double mean, low, high; /* least and greatest */
};
struct spread spread_of(const double *value, size_t runs, size_t stride);

/* "board2-matrix-3": a name for a figure's files. */
const char *section_name(const struct section_call *call, const char *what);
const char *section_name_of(const struct section_call *call, const char *what, size_t number);

/* Adds the figure to the page and, if files for papers are wanted, to their folder. */
status section_figure(const struct section_call *call, const struct figure *figure, struct error *error);

/* Stem of a figure's files for html_table; NULL when none are written. */
const char *section_files(const struct section_call *call, const char *name);

/* Names of the shown configurations in figures, [board->shown]. */
const char **section_legend(const struct section_call *call);

/* "2 seeds", or "1 seed, unfinished". */
const char *section_seeds(const struct section_call *call, const struct configuration *configuration);

/* Adds a sentence if configurations are left out. */
void section_note_left_out(const struct section_call *call);

/* Alternatives that are shown one at a time: begin, for each (choice … choice_end), end. */
void section_choices(const struct section_call *call, const char *name);
void section_choice(const struct section_call *call, const char *label);
void section_choice_end(const struct section_call *call);
void section_choices_end(const struct section_call *call);

/* Titles of tasks for panels, "3 cifar100"; whether a task is among those asked for. */
const char *section_task_title(const struct section_call *call, size_t task);
bool section_wants_task(const struct section_call *call, size_t task);

#endif
