/* The accuracy on each task while the others are trained. */
#include <math.h>

#include "results/report/section.h"

struct curves {
    double *x, *mean, *low, *high; /* [tasks, 1 + tasks]: one after another for each panel */
};

static bool take_curves(const struct section_call *call, struct curves *curves)
{
    size_t size = (call->board->tasks + 1) * call->board->tasks;
    curves->x = report_take(call->report, size, sizeof(double));
    curves->mean = report_take(call->report, size, sizeof(double));
    curves->low = report_take(call->report, size, sizeof(double));
    curves->high = report_take(call->report, size, sizeof(double));
    return !call->report->failed;
}

/* The matrix by columns. */
static status load_curves(const struct section_call *call, size_t number, struct curves *curves, struct error *error)
{
    size_t tasks = call->board->tasks, size = (tasks + 1) * tasks;
    struct accuracies accuracies;
    if (!take_curves(call, curves))
        return report_check(call->report, error);
    struct arena_mark mark = arena_mark(&call->report->arena);
    TRY(section_accuracies(call, call->board->configuration[number], &accuracies, error));
    for (size_t task = 0; task < tasks; task++)
        for (size_t row = 0; row <= tasks; row++) {
            struct spread spread = spread_of(accuracies.value + row * tasks + task, accuracies.runs, size);
            size_t at = task * (tasks + 1) + row;
            curves->x[at] = (double)row;
            curves->mean[at] = spread.mean;
            curves->low[at] = spread.low;
            curves->high[at] = spread.high;
        }
    arena_release(&call->report->arena, mark);
    return OK;
}

static void fill_panels(const struct section_call *call, const struct curves *curves, struct figure_panel *panels,
                        size_t *count)
{
    const struct board *board = call->board;
    size_t points = board->tasks + 1;
    for (size_t task = 0; task < board->tasks; task++) {
        struct figure_series *series = report_take(call->report, board->shown, sizeof *series);
        if (series == NULL || !section_wants_task(call, task))
            continue;
        for (size_t i = 0; i < board->shown; i++)
            series[i] = (struct figure_series){.colour = board->configuration[i]->colour,
                                               .points = points,
                                               .x = curves[i].x + task * points,
                                               .y = curves[i].mean + task * points,
                                               .low = curves[i].low + task * points,
                                               .high = curves[i].high + task * points};
        panels[(*count)++] = (struct figure_panel){.title = section_task_title(call, task),
                                                   .series = series,
                                                   .series_count = board->shown,
                                                   .mark = (double)task + 1};
    }
}

status section_forgetting(const struct section_call *call, struct error *error)
{
    const struct board *board = call->board;
    struct curves *curves = report_take(call->report, board->shown, sizeof *curves);
    struct figure_panel *panels = report_take(call->report, board->tasks, sizeof *panels);
    size_t count = 0;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < board->shown; i++)
        TRY(load_curves(call, i, &curves[i], error));
    fill_panels(call, curves, panels, &count);
    const char **legend = section_legend(call);
    TRY(report_check(call->report, error));
    section_note_left_out(call);
    struct figure figure = {.name = section_name(call, "forgetting"),
                            .title = "Accuracy on each task, %, after 0 (zero-shot), 1, 2, … tasks trained",
                            .caption =
                                "Lines: means over seeds. Bands: from the least to the greatest seed. Dotted: when "
                                "the panel's own task has been trained.",
                            .kind = FIGURE_LINES,
                            .x_title = "tasks trained",
                            .y_title = "accuracy, %",
                            .panel = panels,
                            .panels = count,
                            .legend = legend,
                            .legend_count = REPORT_BEST,
                            .low = (double)NAN,
                            .high = (double)NAN,
                            .decimals = 1,
                            .points = true};
    return section_figure(call, &figure, error);
}
