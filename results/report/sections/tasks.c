/* One metric at a time: configurations × tasks. */
#include <math.h>

#include "results/metrics.h"
#include "results/report/section.h"

enum { ROWS_MOST = 60 };

/* Sums over runs: [metrics, tasks]. */
struct sums {
    size_t tasks;
    double *value, *count;
};

static void take_task(void *context, struct statement *row)
{
    struct sums *sums = context;
    int64_t task = statement_integer(row, 0);
    for (size_t metric = 0; task >= 0 && task < (int64_t)sums->tasks && metric < REPORT_METRICS; metric++) {
        double value = row_real(row, 1 + metric);
        size_t at = metric * sums->tasks + (size_t)task;
        sums->value[at] += isnan(value) ? 0 : value;
        sums->count[at] += !isnan(value);
    }
}

static status load(const struct section_call *call, const struct configuration *configuration, struct sums *sums,
                   struct error *error)
{
    size_t size = REPORT_METRICS * call->board->tasks;
    *sums = (struct sums){.tasks = call->board->tasks,
                          .value = report_take(call->report, size, sizeof(double)),
                          .count = report_take(call->report, size, sizeof(double))};
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < configuration->finished; run++)
        TRY(report_rows(call->report,
                        "SELECT task, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, "
                        "zero_shot FROM task_metrics WHERE run = ?1",
                        configuration->run[run].run, take_task, sums, error));
    return OK;
}

static void add_row(struct table *table, const struct configuration *configuration, const struct sums *sums,
                    size_t metric)
{
    table_add_text(table, configuration->label);
    for (size_t task = 0; task < sums->tasks; task++) {
        size_t at = metric * sums->tasks + task;
        table_add_real(table, sums->count[at] > 0 ? sums->value[at] / sums->count[at] : (double)NAN);
    }
    table_add_real(table, configuration->metric[metric].mean);
}

/* Metrics that no configuration has, such as Transfer of single tasks, have no table. */
static bool is_known(const struct board *board, size_t metric)
{
    for (size_t i = 0; i < board->count; i++)
        if (board->configuration[i]->metric[metric].n > 0)
            return true;
    return false;
}

static void show(const struct section_call *call, const struct metric *metric, const struct sums *sums, size_t rows,
                 size_t number)
{
    struct table table = {0};
    const struct board *board = call->board;
    bool shares = number == TRANSFER || number == AVERAGE || number == LAST || number == ZERO_SHOT;
    enum table_best best = metric->lower_is_better ? BEST_LOWEST : BEST_HIGHEST;
    table_add_column(&table, &(struct table_column){.title = "configuration"});
    for (size_t task = 0; task < board->tasks; task++)
        table_add_column(&table, &(struct table_column){.title = board->names[task], .decimals = 1, .best = best});
    table_add_column(&table, &(struct table_column){.title = "mean", .decimals = 1, .best = best});
    for (size_t i = 0; i < rows; i++)
        add_row(&table, board->configuration[i], &sums[i], number);
    section_choice(call, metric->title);
    html_table(call->page,
               &(struct html_table){
                   .table = &table,
                   .name = section_name(call, report_format(call->report, "tasks-%s", metric->name)),
                   .heads = 1,
                   .heat = shares,
                   .low = 0,
                   .high = 100,
                   .caption = report_format(call->report, "%s: %s. Percent, means over finished seeds.%s",
                                            metric->title, metric->formula,
                                            rows < board->count ? " The configurations with the highest Last." : "")});
    table_free(&table);
    section_choice_end(call);
}

status section_tasks(const struct section_call *call, struct error *error)
{
    const struct board *board = call->board;
    size_t rows = board->count < ROWS_MOST ? board->count : ROWS_MOST, count;
    const struct metric *metrics = metric_list(&count);
    struct sums *sums = report_take(call->report, rows, sizeof *sums);
    TRY(report_check(call->report, error));
    if (board->tasks < 2 || !is_known(board, LAST))
        return OK;
    for (size_t i = 0; i < rows; i++)
        TRY(load(call, board->configuration[i], &sums[i], error));
    section_choices(call, "Metric");
    for (size_t i = 0; i < count && i < REPORT_METRICS; i++)
        if (is_known(board, i))
            show(call, &metrics[i], sums, rows, i);
    section_choices_end(call);
    return report_check(call->report, error);
}
