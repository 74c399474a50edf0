#include "results/report/section.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "results/report/figure_drawing.h"
#include "results/report/folder.h"
#include "results/report/picture.h"

/* --- Accuracies --- */

struct cells {
    size_t tasks;
    double *value; /* [1 + tasks, tasks] */
};

static void take_cell(void *context, struct statement *row)
{
    struct cells *cells = context;
    int64_t after_task = statement_integer(row, 0), task = statement_integer(row, 1);
    if (task >= 0 && task < (int64_t)cells->tasks && after_task >= -1 && after_task < (int64_t)cells->tasks)
        cells->value[(size_t)(after_task + 1) * cells->tasks + (size_t)task] = row_real(row, 2);
}

static void take_images(void *context, struct statement *row)
{
    int64_t *images = context;
    images[statement_integer(row, 0)] = statement_integer(row, 1);
}

/* Test images of each task if the configuration is class-incremental; otherwise NULL. */
static status accumulated_images(const struct section_call *call, const struct configuration *configuration,
                                 const int64_t **images, struct error *error)
{
    int64_t *of_task = report_take(call->report, call->board->tasks + 1, sizeof *of_task);
    TRY(report_check(call->report, error));
    TRY(report_rows(call->report,
                    "SELECT task, test_images FROM tasks JOIN runs USING (run) WHERE run = ?1 AND task < tasks AND "
                    "setting = 'class_incremental'",
                    configuration->run[0].run, take_images, of_task, error));
    *images = of_task[0] > 0 ? of_task : NULL;
    return OK;
}

status section_accuracies(const struct section_call *call, const struct configuration *configuration,
                          struct accuracies *accuracies, struct error *error)
{
    size_t tasks = call->board->tasks, size = (tasks + 1) * tasks;
    double *value = report_take(call->report, array_size(configuration->used, size), sizeof *value);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < configuration->used * size; i++)
        value[i] = (double)NAN;
    for (size_t run = 0; run < configuration->used; run++) {
        struct cells cells = {tasks, value + run * size};
        TRY(report_rows(call->report, "SELECT after_task, task, accuracy FROM matrix WHERE run = ?1",
                        configuration->run[run].run, take_cell, &cells, error));
    }
    *accuracies = (struct accuracies){configuration->used, tasks, value, NULL};
    return accumulated_images(call, configuration, &accuracies->images, error);
}

struct spread spread_of(const double *value, size_t runs, size_t stride)
{
    struct spread spread = {.low = INFINITY, .high = -INFINITY};
    double sum = 0;
    for (size_t run = 0; run < runs; run++) {
        double one = value[run * stride];
        if (isnan(one))
            continue;
        spread.n++;
        sum += one;
        spread.low = fmin(spread.low, one);
        spread.high = fmax(spread.high, one);
    }
    spread.mean = spread.n ? sum / (double)spread.n : (double)NAN;
    if (spread.n == 0)
        spread.low = spread.high = (double)NAN;
    return spread;
}

/* --- Names --- */

const char *section_name(const struct section_call *call, const char *what)
{
    return report_format(call->report, "%s%s", call->prefix, what);
}

const char *section_name_of(const struct section_call *call, const char *what, size_t number)
{
    return report_format(call->report, "%s%s-%zu", call->prefix, what, number);
}

status section_figure(const struct section_call *call, const struct figure *figure, struct error *error)
{
    struct report *report = call->report;
    TRY(report_stopped(report, error));
    if (!figure->only_file)
        draw_figure(call->page, figure, report->request->figures);
    if (!report->request->figures)
        return OK;
    report->figures++;
    return picture_write(report_format(report, "%s/" REPORT_FIGURES, report->folder), figure, error);
}

const char *section_files(const struct section_call *call, const char *name)
{
    return call->report->request->figures ? name : NULL;
}

const char **section_legend(const struct section_call *call)
{
    const char **legend = report_take(call->report, REPORT_BEST, sizeof *legend);
    for (size_t i = 0; legend != NULL && i < call->board->shown; i++)
        legend[call->board->configuration[i]->colour] = call->board->configuration[i]->legend;
    return legend;
}

const char *section_seeds(const struct section_call *call, const struct configuration *configuration)
{
    return report_format(call->report, "%zu seed%s%s", configuration->used, configuration->used == 1 ? "" : "s",
                         configuration->finished ? "" : ", unfinished");
}

void section_note_left_out(const struct section_call *call)
{
    const struct board *board = call->board;
    size_t all = board->finished > 0 ? board->finished : board->count;
    if (all < board->count)
        html_paragraph(call->page, "note",
                       report_format(call->report, "%zu configuration%s without a finished run %s not drawn.",
                                     board->count - all, board->count - all == 1 ? "" : "s",
                                     board->count - all == 1 ? "is" : "are"));
    if (all <= board->shown)
        return;
    const char *what = board->shown == 1
                           ? "Drawn is the configuration"
                           : report_format(call->report, "Drawn are the %zu configurations", board->shown);
    html_paragraph(call->page, "note", report_format(call->report, "%s with the highest Last of %zu.", what, all));
}

const char *section_task_title(const struct section_call *call, size_t task)
{
    return report_format(call->report, "%zu  %s", task + 1, call->board->names[task]);
}

bool section_wants_task(const struct section_call *call, size_t task)
{
    const char *dataset = call->report->request->filter.dataset;
    return dataset == NULL || strcmp(dataset, call->board->names[task]) == 0;
}

/* --- Choices --- */

void section_choices(const struct section_call *call, const char *name)
{
    text_add(call->page, "<div class=\"choices\" data-name=\"");
    html_escape(call->page, name);
    text_add(call->page, "\">\n");
}

void section_choice(const struct section_call *call, const char *label)
{
    text_add(call->page, "<div class=\"choice\"><h4>");
    html_escape(call->page, label);
    text_add(call->page, "</h4>\n");
}

void section_choice_end(const struct section_call *call)
{
    text_add(call->page, "</div>\n");
}

void section_choices_end(const struct section_call *call)
{
    text_add(call->page, "</div>\n");
}
