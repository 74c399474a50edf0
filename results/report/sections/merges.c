/* What became of merges: whether merged experts are used at all, and whether runs that use them more have better Transfer. */
#include <math.h>

#include "results/report/section.h"
#include "results/statistics/statistics.h"

enum { RUN_USE, RUN_UNUSED, RUN_DISTANCE, RUN_TRANSFER, NUMBERS };

static const char *const titles[NUMBERS] = {"use (1: an even share)", "merged experts never chosen, %",
                                            "distance to sources", "Transfer, %"};

/* Of a configuration: [NUMBERS, runs], of its runs with merges. */
struct effects {
    size_t runs, capacity;
    double *value;
};

static void take_run(void *context, struct statement *row)
{
    struct effects *effects = context;
    if (isnan(row_real(row, RUN_USE)))
        return;
    for (size_t i = 0; i < NUMBERS; i++)
        effects->value[i * effects->capacity + effects->runs] = row_real(row, i);
    effects->runs++;
}

static status load(const struct section_call *call, const struct configuration *configuration, struct effects *effects,
                   struct error *error)
{
    *effects = (struct effects){.capacity = configuration->used};
    effects->value = report_take(call->report, NUMBERS, array_size(configuration->used, sizeof *effects->value));
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < configuration->used; run++)
        TRY(report_rows(call->report,
                        "SELECT avg(use), 100.0 * avg(use = 0), avg(distance), "
                        "(SELECT transfer FROM metrics WHERE metrics.run = ?1) FROM merge_use WHERE run = ?1",
                        configuration->run[run].run, take_run, effects, error));
    return OK;
}

static const double *numbers(const struct effects *effects, size_t which)
{
    return effects->value + which * effects->capacity;
}

static struct figure_interval interval_of(const struct effects *effects, size_t which, const char *label, size_t colour)
{
    const double *value = numbers(effects, which);
    double mean = statistics_mean(value, effects->runs);
    struct interval interval = statistics_mean_interval(mean, statistics_sd(value, effects->runs), effects->runs, 0.95);
    return (struct figure_interval){
        .label = label, .colour = colour, .mean = mean, .low = interval.low, .high = interval.high};
}

static status draw(const struct section_call *call, const struct effects *effects, struct error *error)
{
    size_t shown = call->board->shown;
    struct figure_panel panels[NUMBERS];
    struct figure_interval *rows = report_take(call->report, NUMBERS * shown, sizeof *rows);
    TRY(report_check(call->report, error));
    for (size_t which = 0; which < NUMBERS; which++) {
        panels[which] = (struct figure_panel){.title = titles[which], .interval = rows + which * shown};
        for (size_t i = 0; i < shown; i++)
            if (effects[i].runs > 0)
                rows[which * shown + panels[which].intervals++] =
                    interval_of(&effects[i], which, call->board->configuration[i]->legend, i);
    }
    struct figure figure = {.name = section_name(call, "merges"),
                            .title = "Whether merged experts are used",
                            .caption = "In the 50 iterations after each merge, fewer where the task ends; not in the "
                                       "next task, whose router is another "
                                       "(next_use of mtil query merges). Means over the merges of a run, then over "
                                       "runs, with 95% intervals (Student); "
                                       "no interval where there is one run. The axes of the panels differ.",
                            .kind = FIGURE_INTERVALS,
                            .panel = panels,
                            .panels = NUMBERS,
                            .low = (double)NAN,
                            .high = (double)NAN,
                            .decimals = 2,
                            .own_ranges = true};
    return section_figure(call, &figure, error);
}

static void add_row(struct table *table, const struct effects *effects, const char *label)
{
    const double *use = numbers(effects, RUN_USE), *transfer = numbers(effects, RUN_TRANSFER);
    double r = statistics_correlation(use, transfer, effects->runs);
    struct interval interval = statistics_correlation_interval(r, effects->runs, 0, 0.95);
    table_add_text(table, label);
    table_add_integer(table, (int64_t)effects->runs);
    for (size_t which = 0; which < NUMBERS; which++)
        table_add_real(table, statistics_mean(numbers(effects, which), effects->runs));
    table_add_real(table, r);
    table_add_real(table, interval.low);
    table_add_real(table, interval.high);
}

static void show_table(const struct section_call *call, const struct effects *effects)
{
    static const int decimals[NUMBERS] = {2, 1, 2, 1};
    static const char *const correlation[] = {"r", "r from", "r to"};
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "configuration"});
    table_add_column(&table, &(struct table_column){.title = "runs"});
    for (size_t i = 0; i < NUMBERS; i++)
        table_add_column(&table, &(struct table_column){.title = titles[i], .decimals = decimals[i]});
    for (size_t i = 0; i < sizeof correlation / sizeof *correlation; i++)
        table_add_column(&table, &(struct table_column){.title = correlation[i], .decimals = 2});
    for (size_t i = 0; i < call->board->shown; i++)
        if (effects[i].runs > 0)
            add_row(&table, &effects[i], call->board->configuration[i]->label);
    html_table(call->page, &(struct html_table){
                               .table = &table,
                               .name = section_name(call, "merges"),
                               .heads = 1,
                               .wrapped = true,
                               .caption = "r: correlation of a run's mean use with its Transfer over the runs of the "
                                          "configuration, with Fisher's 95% interval, which fewer than four runs do "
                                          "not have. Each merge: mtil query merges."});
    table_free(&table);
}

status section_merges(const struct section_call *call, struct error *error)
{
    struct effects *effects = report_take(call->report, call->board->shown, sizeof *effects);
    bool any = false;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < call->board->shown; i++) {
        TRY(load(call, call->board->configuration[i], &effects[i], error));
        any |= effects[i].runs > 0;
    }
    if (!any)
        return OK;
    section_note_left_out(call);
    TRY(draw(call, effects, error));
    show_table(call, effects);
    return report_check(call->report, error);
}
