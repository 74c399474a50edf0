/* The training loss of each task. */
#include <math.h>

#include "results/report/section.h"

enum { POINTS_MOST = 150 }; /* of a line; more are averaged in groups */

/* Means over runs and neighbouring iterations, by task. */
struct sums {
    size_t tasks, group;              /* iterations that make a point */
    double *iteration, *loss, *count; /* [tasks, POINTS_MOST] */
};

struct extent {
    int64_t last;
};

static void take_extent(void *context, struct statement *row)
{
    struct extent *extent = context;
    int64_t last = statement_integer(row, 0);
    extent->last = last > extent->last ? last : extent->last;
}

static void take_step(void *context, struct statement *row)
{
    struct sums *sums = context;
    int64_t task = statement_integer(row, 0), iteration = statement_integer(row, 1);
    double loss = row_real(row, 2);
    if (task < 0 || task >= (int64_t)sums->tasks || iteration < 1 || isnan(loss))
        return;
    size_t point = ((size_t)iteration - 1) / sums->group;
    if (point >= POINTS_MOST)
        return;
    size_t at = (size_t)task * POINTS_MOST + point;
    sums->iteration[at] += (double)iteration;
    sums->loss[at] += loss;
    sums->count[at]++;
}

static status load_sums(const struct section_call *call, const struct configuration *configuration, struct sums *sums,
                        struct error *error)
{
    size_t size = call->board->tasks * POINTS_MOST;
    struct extent extent = {0};
    *sums = (struct sums){.tasks = call->board->tasks};
    sums->iteration = report_take(call->report, size, sizeof(double));
    sums->loss = report_take(call->report, size, sizeof(double));
    sums->count = report_take(call->report, size, sizeof(double));
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < configuration->used; run++)
        TRY(report_rows(call->report, "SELECT max(iteration) FROM steps WHERE run = ?1", configuration->run[run].run,
                        take_extent, &extent, error));
    sums->group = ((size_t)extent.last + POINTS_MOST - 1) / POINTS_MOST;
    sums->group = sums->group ? sums->group : 1;
    for (size_t run = 0; run < configuration->used; run++)
        TRY(report_rows(call->report, "SELECT task, iteration, loss FROM steps WHERE run = ?1",
                        configuration->run[run].run, take_step, sums, error));
    return OK;
}

/* Points that have a value, moved to the front. */
static struct figure_series series_of(const struct sums *sums, size_t task, size_t colour)
{
    double *x = sums->iteration + task * POINTS_MOST, *y = sums->loss + task * POINTS_MOST;
    const double *count = sums->count + task * POINTS_MOST;
    size_t points = 0;
    for (size_t i = 0; i < POINTS_MOST; i++) {
        if (count[i] == 0)
            continue;
        x[points] = x[i] / count[i];
        y[points++] = y[i] / count[i];
    }
    return (struct figure_series){.colour = colour, .points = points, .x = x, .y = y};
}

static size_t fill_panels(const struct section_call *call, const struct sums *sums, struct figure_panel *panels)
{
    const struct board *board = call->board;
    size_t count = 0;
    for (size_t task = 0; task < board->tasks; task++) {
        struct figure_series *series = report_take(call->report, board->shown, sizeof *series);
        size_t points = 0;
        if (series == NULL || !section_wants_task(call, task))
            continue;
        for (size_t i = 0; i < board->shown; i++) {
            series[i] = series_of(&sums[i], task, i);
            points += series[i].points;
        }
        if (points > 0)
            panels[count++] = (struct figure_panel){.title = section_task_title(call, task),
                                                    .series = series,
                                                    .series_count = board->shown,
                                                    .mark = (double)NAN};
    }
    return count;
}

status section_loss(const struct section_call *call, struct error *error)
{
    const struct board *board = call->board;
    struct sums *sums = report_take(call->report, board->shown, sizeof *sums);
    struct figure_panel *panels = report_take(call->report, board->tasks, sizeof *panels);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < board->shown; i++)
        TRY(load_sums(call, board->configuration[i], &sums[i], error));
    struct figure figure = {.name = section_name(call, "loss"),
                            .title = "Training loss over the iterations of each task",
                            .caption =
                                report_format(call->report,
                                              "Means over seeds of the losses that were recorded; where there are "
                                              "more than %d per task, neighbours are averaged.",
                                              POINTS_MOST),
                            .kind = FIGURE_LINES,
                            .x_title = "iteration",
                            .y_title = "loss",
                            .panel = panels,
                            .panels = fill_panels(call, sums, panels),
                            .legend = section_legend(call),
                            .legend_count = board->shown,
                            .low = (double)NAN,
                            .high = (double)NAN,
                            .decimals = 3};
    TRY(report_check(call->report, error));
    if (figure.panels == 0)
        return OK;
    section_note_left_out(call);
    return section_figure(call, &figure, error);
}
