/* Effects of merges: the use of merged experts, and whether runs that use them more have better Transfer. */
#include <math.h>

#include "results/report/section.h"
#include "results/statistics/statistics.h"

enum { RUN_USE, RUN_UNUSED, RUN_NEXT_USE, RUN_DISTANCE, RUN_TRANSFER, NUMBERS };

static const char *const titles[NUMBERS] = {"use (1: an even share)", "merged experts never chosen, %",
                                            "use in the next task", "distance to sources", "Transfer, %"};

/* Of a configuration: of its runs with merges those that have a number, [NUMBERS, capacity], and their Transfer beside it. */
struct effects {
    const struct report_run *run; /* that is being read */
    size_t runs, capacity, known[NUMBERS];
    double *value, *transfer;
};

static void take_run(void *context, struct statement *row)
{
    struct effects *effects = context;
    if (isnan(row_real(row, RUN_USE)))
        return;
    double transfer = effects->run->metric[TRANSFER];
    for (size_t i = 0; i < NUMBERS; i++) {
        double value = i == RUN_TRANSFER ? transfer : row_real(row, i);
        if (isnan(value))
            continue;
        size_t at = i * effects->capacity + effects->known[i]++;
        effects->value[at] = value;
        effects->transfer[at] = transfer;
    }
    effects->runs++;
}

static status load(const struct section_call *call, const struct configuration *configuration, struct effects *effects,
                   struct error *error)
{
    *effects = (struct effects){.capacity = configuration->used};
    effects->value = report_take(call->report, NUMBERS, array_size(configuration->used, sizeof *effects->value));
    effects->transfer = report_take(call->report, NUMBERS, array_size(configuration->used, sizeof *effects->transfer));
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < configuration->used; run++) {
        effects->run = &configuration->run[run];
        TRY(report_rows(call->report,
                        "SELECT avg(use), 100.0 * avg(use = 0), avg(next_use) FILTER (WHERE NOT overwritten), "
                        "avg(distance) FROM merge_use WHERE run = ?1",
                        effects->run->run, take_run, effects, error));
    }
    return OK;
}

static struct figure_interval interval_of(const struct effects *effects, size_t which,
                                          const struct configuration *configuration)
{
    const double *value = effects->value + which * effects->capacity;
    size_t n = effects->known[which];
    double mean = statistics_mean(value, n);
    struct interval interval = statistics_mean_interval(mean, statistics_sd(value, n), n, 0.95);
    return (struct figure_interval){.label = configuration->legend,
                                    .colour = configuration->colour,
                                    .mean = mean,
                                    .low = interval.low,
                                    .high = interval.high};
}

static status draw(const struct section_call *call, const struct effects *effects, struct error *error)
{
    size_t shown = call->board->shown;
    struct figure_panel panels[NUMBERS];
    size_t used = 0;
    struct figure_interval *rows = report_take(call->report, NUMBERS * shown, sizeof *rows);
    TRY(report_check(call->report, error));
    for (size_t which = 0; which < NUMBERS; which++) {
        struct figure_panel *panel = &panels[used];
        *panel = (struct figure_panel){.title = titles[which], .interval = rows + which * shown};
        for (size_t i = 0; i < shown; i++)
            if (effects[i].known[which] > 0)
                rows[which * shown + panel->intervals++] =
                    interval_of(&effects[i], which, call->board->configuration[i]);
        used += panel->intervals > 0;
    }
    struct figure figure = {.name = section_name(call, "merges"),
                            .title = "Whether merged experts are used",
                            .caption = "Use in the 50 iterations after each merge, fewer where the task ends, and, of "
                                       "merged experts that no later merge overwrites, in the whole next task, whose "
                                       "router is another. Means over the merges of a run, then over runs, with 95% "
                                       "intervals (Student); no interval where there is one run. The axes of the "
                                       "panels differ.",
                            .kind = FIGURE_INTERVALS,
                            .panel = panels,
                            .panels = used,
                            .low = (double)NAN,
                            .high = (double)NAN,
                            .decimals = 2,
                            .own_ranges = true};
    return section_figure(call, &figure, error);
}

/* What may go with Transfer. */
static const size_t measures[] = {RUN_USE, RUN_NEXT_USE};
enum { MEASURES = sizeof measures / sizeof *measures };

static void add_row(struct table *table, const struct effects *effects, const char *label)
{
    table_add_text(table, label);
    table_add_integer(table, (int64_t)effects->runs);
    for (size_t which = 0; which < NUMBERS; which++)
        table_add_real(table, statistics_mean(effects->value + which * effects->capacity, effects->known[which]));
    for (size_t i = 0; i < MEASURES; i++) {
        size_t from = measures[i] * effects->capacity, n = effects->known[measures[i]];
        double r = statistics_correlation(effects->value + from, effects->transfer + from, n);
        struct interval interval = statistics_correlation_interval(r, n, 0, 0.95);
        table_add_real(table, r);
        table_add_real(table, interval.low);
        table_add_real(table, interval.high);
    }
}

static void show_table(const struct section_call *call, const struct effects *effects)
{
    static const int decimals[NUMBERS] = {2, 1, 2, 2, 1};
    static const char *const correlation[] = {"r", "r from", "r to", "r next", "r next from", "r next to"};
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
                                          "configuration, r next: of the use in the next task, with Fisher's 95% "
                                          "intervals, which fewer than four runs do not have. Each merge: mtil query "
                                          "merges."});
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
