/* The settings in which the configurations differ, and the runs behind them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "results/report/section.h"
#include "results/store/setting_values.h"

enum { KEYS_MOST = 200, RUNS_MOST = 500 };

/* --- Differences --- */

struct keys {
    struct report *report;
    size_t count;
    const char *key[KEYS_MOST];
};

static void take_key(void *context, const char *key, const char *a, const char *b)
{
    struct keys *keys = context;
    if (keys->count == KEYS_MOST || report_is_incidental(keys->report, key, a, b))
        return;
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(keys->key[i], key) == 0)
            return;
    keys->key[keys->count++] = report_copy(keys->report, key);
}

static void show_differences(const struct section_call *call, const struct keys *keys,
                             const struct setting_values *values)
{
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "setting"});
    for (size_t i = 0; i < call->board->shown; i++)
        table_add_column(&table, &(struct table_column){.title = call->board->configuration[i]->label});
    for (size_t k = 0; k < keys->count; k++) {
        table_add_text(&table, keys->key[k]);
        for (size_t i = 0; i < call->board->shown; i++)
            table_add_text(&table, setting_values_find(&values[i], keys->key[k]));
    }
    html_table(call->page, &(struct html_table){.table = &table,
                                                .name = section_name(call, "differences"),
                                                .wrapped = true,
                                                .heads = 1,
                                                .caption = "Settings of the suites that are not the same in all "
                                                           "configurations drawn; –: the setting does not apply."});
    table_free(&table);
}

status section_differences(const struct section_call *call, struct error *error)
{
    size_t shown = call->board->shown;
    struct setting_values *values = report_take(call->report, shown, sizeof *values);
    struct keys keys = {.report = call->report};
    TRY(report_check(call->report, error));
    status result = OK;
    for (size_t i = 0; i < shown && result == OK; i++)
        result = report_values(call->report, call->board->configuration[i], &values[i], error);
    for (size_t i = 1; i < shown && result == OK; i++)
        setting_values_compare(&values[0], &values[i], take_key, &keys);
    if (keys.count > 0)
        show_differences(call, &keys, values);
    for (size_t i = 0; i < shown; i++)
        setting_values_free(&values[i]);
    return result == OK ? report_check(call->report, error) : result;
}

/* --- Runs --- */

struct dates {
    struct table *table;
};

static void take_dates(void *context, struct statement *row)
{
    struct dates *dates = context;
    for (size_t column = 0; column < 3; column++)
        table_add_text(dates->table,
                       statement_value(row, column).kind == VALUE_NULL ? NULL : statement_text(row, column));
}

static status add_run(const struct section_call *call, struct table *table, const struct configuration *configuration,
                      const struct report_run *run, struct error *error)
{
    struct dates dates = {table};
    table_add_integer(table, run->run);
    table_add_text(table, configuration->label);
    table_add_integer(table, run->seed);
    table_add_real(table, run->metric[TRANSFER]);
    table_add_real(table, run->metric[AVERAGE]);
    table_add_real(table, run->metric[LAST]);
    table_add_text(table, run->status);
    return report_rows(call->report, "SELECT started, finished, message FROM runs WHERE run = ?1", run->run, take_dates,
                       &dates, error);
}

static void add_columns(struct table *table)
{
    static const struct table_column columns[] = {
        {.title = "run"},
        {.title = "configuration"},
        {.title = "seed"},
        {.title = "Transfer", .decimals = 1},
        {.title = "Average", .decimals = 1},
        {.title = "Last", .decimals = 1},
        {.title = "status"},
        {.title = "started"},
        {.title = "ended"},
        {.title = "message"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(table, &columns[i]);
}

static status fill_runs(const struct section_call *call, struct table *table, size_t *all, struct error *error)
{
    for (size_t i = 0; i < call->board->count; i++) {
        const struct configuration *configuration = call->board->configuration[i];
        for (size_t run = 0; run < configuration->runs; run++)
            if ((*all)++ < RUNS_MOST)
                TRY(add_run(call, table, configuration, &configuration->run[run], error));
    }
    return OK;
}

status section_runs(const struct section_call *call, struct error *error)
{
    struct table table = {0};
    size_t all = 0;
    add_columns(&table);
    status result = fill_runs(call, &table, &all, error);
    const char *cut = all > RUNS_MOST ? report_format(call->report, " The first %d of %zu.", RUNS_MOST, all) : "";
    if (result == OK) {
        text_add(call->page, "<details><summary>%zu run%s</summary>\n", all, all == 1 ? "" : "s");
        html_table(call->page, &(struct html_table){.table = &table,
                                                    .name = section_name(call, "runs"),
                                                    .wrapped = true,
                                                    .heads = 1,
                                                    .caption = report_format(
                                                        call->report, "Accuracies in percent, times in UTC.%s", cut)});
        text_add(call->page, "</details>\n");
    }
    table_free(&table);
    return result;
}
