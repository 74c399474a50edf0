/* Configurations by their mean over seeds. */
#include <math.h>
#include <string.h>

#include "results/metrics.h"
#include "results/report/section.h"

enum { ROWS_MOST = 200 };

static const enum report_metric with_interval[] = {TRANSFER, AVERAGE, LAST};
static const char *const titles[] = {"Transfer", "Average", "Last"};
static const char *const halves[] = {"Transfer ±", "Average ±", "Last ±"};

#define INTERVALS (sizeof with_interval / sizeof *with_interval)

/* Words such as "policy" are part of a configuration's label. */
static bool is_setting(const char *by)
{
    return strchr(by, '.') != NULL;
}

static void add_columns(struct table *table, const struct report_request *request)
{
    table_add_column(table, &(struct table_column){.title = "configuration"});
    for (size_t i = 0; i < request->by_count; i++)
        if (is_setting(request->by[i]))
            table_add_column(table, &(struct table_column){.title = request->by[i]});
    table_add_column(table, &(struct table_column){.title = "seeds"});
    for (size_t i = 0; i < INTERVALS; i++) {
        table_add_column(table, &(struct table_column){.title = titles[i], .decimals = 1, .best = BEST_HIGHEST});
        table_add_column(table, &(struct table_column){.title = halves[i], .decimals = 1});
    }
    table_add_column(table, &(struct table_column){.title = "Forgetting", .decimals = 1, .best = BEST_LOWEST});
    table_add_column(table, &(struct table_column){.title = "Gain", .decimals = 1, .best = BEST_HIGHEST});
}

static status add_settings(struct table *table, struct report *report, const struct configuration *configuration,
                           struct error *error)
{
    struct setting_values values;
    size_t asked = 0;
    for (size_t i = 0; i < report->request->by_count; i++)
        asked += is_setting(report->request->by[i]);
    if (asked == 0)
        return OK;
    status result = report_values(report, configuration, &values, error);
    for (size_t i = 0; result == OK && i < report->request->by_count; i++)
        if (is_setting(report->request->by[i]))
            table_add_text(table, setting_values_find(&values, report->request->by[i]));
    setting_values_free(&values);
    return result;
}

static status add_row(struct table *table, struct report *report, const struct configuration *configuration,
                      struct error *error)
{
    table_add_text(table, configuration->label);
    TRY(add_settings(table, report, configuration, error));
    table_add_integer(table, (int64_t)configuration->finished);
    for (size_t i = 0; i < INTERVALS; i++) {
        table_add_real(table, configuration->metric[with_interval[i]].mean);
        table_add_real(table, configuration->metric[with_interval[i]].half);
    }
    table_add_real(table, configuration->metric[FORGETTING].mean);
    table_add_real(table, configuration->metric[GAIN].mean);
    return OK;
}

static status write_table(const struct section_call *call, struct error *error)
{
    status result = OK;
    struct table table = {0};
    const struct board *board = call->board;
    size_t rows = board->count < ROWS_MOST ? board->count : ROWS_MOST;
    add_columns(&table, call->report->request);
    for (size_t i = 0; i < rows && result == OK; i++)
        result = add_row(&table, call->report, board->configuration[i], error);
    const char *cut =
        rows < board->count ? report_format(call->report, " The best %zu of %zu by Last.", rows, board->count) : "";
    html_table(call->page,
               &(struct html_table){.table = &table,
                                    .name = section_name(call, "leaderboard"),
                                    .heads = 1,
                                    .caption = report_format(
                                        call->report,
                                        "Percent, means over finished seeds; bold: the best of a column. ±: half the "
                                        "width of the 95%% interval of the mean to its left (Student), – where one "
                                        "seed has none. Gain: Last less zero-shot CLIP's accuracy.%s",
                                        cut)});
    table_free(&table);
    return result;
}

static void fill_panel(struct figure_panel *panel, struct figure_interval *rows, const struct board *board,
                       size_t number)
{
    for (size_t i = 0; i < board->shown; i++) {
        struct estimate estimate = board->configuration[i]->metric[with_interval[number]];
        rows[i] = (struct figure_interval){.label = board->configuration[i]->legend,
                                           .colour = board->configuration[i]->colour,
                                           .mean = estimate.mean,
                                           .low = estimate.mean - estimate.half,
                                           .high = estimate.mean + estimate.half};
    }
    *panel = (struct figure_panel){.title = titles[number], .interval = rows, .intervals = board->shown};
}

static status draw(const struct section_call *call, struct error *error)
{
    const struct board *board = call->board;
    struct figure_panel *panels = report_take(call->report, INTERVALS, sizeof *panels);
    struct figure_interval *rows = report_take(call->report, INTERVALS * board->shown, sizeof *rows);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < INTERVALS; i++)
        fill_panel(&panels[i], rows + i * board->shown, board, i);
    struct figure figure = {.name = section_name(call, "leaderboard"),
                            .title = "Transfer, Average and Last",
                            .caption =
                                "Means over finished seeds with 95% intervals (Student); no interval where there "
                                "is one seed. The axes of the panels differ.",
                            .kind = FIGURE_INTERVALS,
                            .x_title = "accuracy, %",
                            .panel = panels,
                            .panels = INTERVALS,
                            .low = (double)NAN,
                            .high = (double)NAN,
                            .decimals = 1,
                            .own_ranges = true};
    return section_figure(call, &figure, error);
}

static void define_metrics(const struct section_call *call)
{
    struct table table = {0};
    size_t count;
    const struct metric *metrics = metric_list(&count);
    table_add_column(&table, &(struct table_column){.title = "metric"});
    table_add_column(&table, &(struct table_column){.title = "of task j of T"});
    table_add_column(&table, &(struct table_column){.title = "source"});
    for (size_t i = 0; i < count; i++) {
        table_add_text(&table, metrics[i].title);
        table_add_text(&table, metrics[i].formula);
        table_add_text(&table, metrics[i].source);
    }
    text_add(call->page, "<details><summary>What the metrics are</summary>\n");
    html_table(call->page,
               &(struct html_table){
                   .table = &table,
                   .name = section_name(call, "metrics"),
                   .heads = 1,
                   .wrapped = true,
                   .caption = "a(i, j): accuracy on task j after task i. A run's metric is the mean over its tasks. In "
                              "class-incremental runs Last is the accuracy over all classes seen and Average its mean "
                              "over the tasks. ±: always the half-width of the 95% interval of a mean over seeds; sd: "
                              "standard deviation. results/METRICS.md in the sources has the formulas."});
    text_add(call->page, "</details>\n");
    table_free(&table);
}

static bool any_finished(const struct board *board)
{
    for (size_t i = 0; i < board->count; i++)
        if (board->configuration[i]->metric[LAST].n > 0)
            return true;
    return false;
}

status section_leaderboard(const struct section_call *call, struct error *error)
{
    if (!any_finished(call->board)) {
        html_paragraph(call->page, "note", "No run is finished yet.");
        return OK;
    }
    TRY(write_table(call, error));
    define_metrics(call);
    section_note_left_out(call);
    return draw(call, error);
}
