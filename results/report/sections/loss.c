/* The training loss of each task, and its balance loss (RMoE, Figure 4). */
#include <math.h>

#include "results/report/section.h"

enum { POINTS_MOST = 150 }; /* of a line; more are averaged in groups */

/* What is drawn of the steps. */
struct curve {
    const char *name, *choice, *title, *y_title, *what; /* choice NULL: it is no alternative to another */
    const char *sql;
    bool clock; /* over seconds */
};

#define LOSS_SQL "SELECT task, iteration, loss FROM steps WHERE run = ?1"

static const struct curve over_iterations = {
    "loss", "iterations", "Training loss over the iterations of each task", "loss", "losses", LOSS_SQL, false};
static const struct curve over_time = {
    "loss-time", "time", "Training loss over the time that each task was trained", "loss", "losses", LOSS_SQL, true};
static const struct curve balance = {"balance",
                                     NULL,
                                     "Balance loss over the iterations of each task",
                                     "balance loss",
                                     "balance losses, summed over blocks and without their weight,",
                                     "SELECT task, iteration, balance_loss FROM steps WHERE run = ?1",
                                     false};

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

static status load_sums(const struct section_call *call, const struct configuration *configuration,
                        const struct curve *curve, struct sums *sums, struct error *error)
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
        TRY(report_rows(call->report, curve->sql, configuration->run[run].run, take_step, sums, error));
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
            series[i] = series_of(&sums[i], task, board->configuration[i]->colour);
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

/* --- Over the clock --- */

/* Seconds of an iteration of each task, summed over runs. */
struct pace {
    size_t tasks;
    double *seconds, *runs; /* [tasks] */
};

static void take_pace(void *context, struct statement *row)
{
    struct pace *pace = context;
    int64_t task = statement_integer(row, 0);
    if (task < 0 || task >= (int64_t)pace->tasks || isnan(row_real(row, 1)))
        return;
    pace->seconds[task] += row_real(row, 1);
    pace->runs[task]++;
}

/* Iterations become seconds of training; a task whose pace is not known has no points. */
static status use_clock(const struct section_call *call, const struct configuration *configuration, struct sums *sums,
                        struct error *error)
{
    size_t tasks = sums->tasks;
    struct pace pace = {tasks, report_take(call->report, tasks, sizeof(double)),
                        report_take(call->report, tasks, sizeof(double))};
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < configuration->used; run++)
        TRY(report_rows(call->report,
                        "SELECT task, total(seconds) / sum(iterations) FROM timings WHERE run = ?1 AND phase = 'train' "
                        "AND iterations > 0 GROUP BY task",
                        configuration->run[run].run, take_pace, &pace, error));
    for (size_t at = 0; at < tasks * POINTS_MOST; at++) {
        size_t task = at / POINTS_MOST;
        bool known = pace.runs[task] > 0;
        sums->count[at] = known ? sums->count[at] : 0;
        sums->iteration[at] *= known ? pace.seconds[task] / pace.runs[task] : 0;
    }
    return OK;
}

/* --- The section --- */

static status draw(const struct section_call *call, const struct sums *sums, const struct curve *curve,
                   struct error *error)
{
    struct figure_panel *panels = report_take(call->report, call->board->tasks, sizeof *panels);
    TRY(report_check(call->report, error));
    struct figure figure = {.name = section_name(call, curve->name),
                            .title = curve->title,
                            .caption =
                                report_format(call->report,
                                              "Means over seeds of the %s that were recorded; where there are "
                                              "more than %d per task, neighbours are averaged.%s",
                                              curve->what, POINTS_MOST,
                                              curve->clock ? " Time: iterations times the mean seconds of one." : ""),
                            .kind = FIGURE_LINES,
                            .x_title = curve->clock ? "time, s" : "iteration",
                            .y_title = curve->y_title,
                            .panel = panels,
                            .panels = fill_panels(call, sums, panels),
                            .legend = section_legend(call),
                            .legend_count = REPORT_BEST,
                            .low = (double)NAN,
                            .high = (double)NAN,
                            .decimals = 3,
                            .fractions = curve->clock,
                            .noisy = true};
    TRY(report_check(call->report, error));
    if (curve->choice != NULL)
        section_choice(call, curve->choice);
    TRY(section_figure(call, &figure, error));
    if (curve->choice != NULL)
        section_choice_end(call);
    return OK;
}

/* A figure's points are moved to the front, so that each of them reads its own. */
static status load_all(const struct section_call *call, const struct curve *curve, struct sums *sums, bool *any,
                       struct error *error)
{
    *any = false;
    for (size_t i = 0; i < call->board->shown; i++) {
        const struct configuration *configuration = call->board->configuration[i];
        TRY(load_sums(call, configuration, curve, &sums[i], error));
        if (curve->clock)
            TRY(use_clock(call, configuration, &sums[i], error));
        for (size_t at = 0; at < sums[i].tasks * POINTS_MOST; at++)
            *any |= sums[i].count[at] > 0;
    }
    return OK;
}

static status show(const struct section_call *call, const struct curve *curve, struct sums *sums, struct error *error)
{
    bool any;
    TRY(load_all(call, curve, sums, &any, error));
    return any ? draw(call, sums, curve, error) : OK;
}

status section_loss(const struct section_call *call, struct error *error)
{
    struct sums *sums = report_take(call->report, call->board->shown, sizeof *sums);
    bool any;
    TRY(report_check(call->report, error));
    TRY(load_all(call, &over_iterations, sums, &any, error));
    if (!any)
        return OK;
    section_note_left_out(call);
    section_choices(call, "Over");
    TRY(draw(call, sums, &over_iterations, error));
    TRY(show(call, &over_time, sums, error));
    section_choices_end(call);
    return show(call, &balance, sums, error);
}
