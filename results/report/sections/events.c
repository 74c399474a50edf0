/* Merges, skips and freezes per task. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "results/report/section.h"

static const char *const kinds[] = {"merge", "skip", "freeze"};
static const char *const titles[] = {"merges", "skipped merges", "experts frozen"};
static const char *const encoders[] = {"image", "text"};

enum { KINDS = 3, ENCODERS = 2 };

/* Of a configuration: [runs, encoders, tasks, kinds]. */
struct events {
    size_t runs, tasks;
    double *count;
    bool any;
};

struct counting {
    struct events *events;
    double *count; /* of the run */
};

static size_t find(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static void take_event(void *context, struct statement *row)
{
    struct counting *counting = context;
    struct events *events = counting->events;
    int64_t task = statement_integer(row, 0);
    size_t encoder = find(encoders, ENCODERS, statement_text(row, 1)),
           kind = find(kinds, KINDS, statement_text(row, 2));
    if (task < 0 || task >= (int64_t)events->tasks || encoder == ENCODERS || kind == KINDS)
        return;
    counting->count[(encoder * events->tasks + (size_t)task) * KINDS + kind] = row_real(row, 3);
    events->any = true;
}

static status load_events(const struct section_call *call, const struct configuration *configuration,
                          struct events *events, struct error *error)
{
    size_t size = ENCODERS * call->board->tasks * KINDS;
    *events = (struct events){.runs = configuration->used, .tasks = call->board->tasks};
    events->count = report_take(call->report, array_size(events->runs, size), sizeof *events->count);
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < events->runs; run++) {
        struct counting counting = {events, events->count + run * size};
        TRY(report_rows(call->report,
                        "SELECT task, encoder, event, count(*) FROM expert_events WHERE run = ?1 "
                        "GROUP BY task, encoder, event",
                        configuration->run[run].run, take_event, &counting, error));
    }
    return OK;
}

static struct spread spread_of_event(const struct events *events, size_t encoder, size_t task, size_t kind)
{
    size_t size = ENCODERS * events->tasks * KINDS;
    return spread_of(events->count + (encoder * events->tasks + task) * KINDS + kind, events->runs, size);
}

/* --- The figure: both encoders together --- */

static struct figure_series series_of(struct report *report, const struct events *events, size_t kind, size_t colour)
{
    double *numbers = report_take(report, 2 * events->tasks, sizeof *numbers);
    if (numbers == NULL)
        return (struct figure_series){0};
    for (size_t task = 0; task < events->tasks; task++) {
        numbers[task] = (double)task + 1;
        for (size_t encoder = 0; encoder < ENCODERS; encoder++)
            numbers[events->tasks + task] += spread_of_event(events, encoder, task, kind).mean;
    }
    return (struct figure_series){
        .colour = colour, .points = events->tasks, .x = numbers, .y = numbers + events->tasks};
}

static status draw(const struct section_call *call, const struct events *events, struct error *error)
{
    struct figure_panel panels[KINDS];
    size_t shown = call->board->shown;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct figure_series *series = report_take(call->report, shown, sizeof *series);
        TRY(report_check(call->report, error));
        panels[kind] = (struct figure_panel){.title = titles[kind], .series = series, .mark = (double)NAN};
        for (size_t i = 0; i < shown; i++)
            if (events[i].any)
                series[panels[kind].series_count++] =
                    series_of(call->report, &events[i], kind, call->board->configuration[i]->colour);
    }
    struct figure figure = {.name = section_name(call, "events"),
                            .title = "What happened to the experts in each task",
                            .caption =
                                "All blocks of both encoders together, means over seeds. A merge is skipped when no "
                                "expert is free, or the least used is one of the two most used.",
                            .kind = FIGURE_LINES,
                            .x_title = "task",
                            .y_title = "events per run",
                            .panel = panels,
                            .panels = KINDS,
                            .legend = section_legend(call),
                            .legend_count = REPORT_BEST,
                            .low = 0,
                            .high = (double)NAN,
                            .decimals = 1,
                            .points = true};
    TRY(report_check(call->report, error));
    return section_figure(call, &figure, error);
}

/* --- The table --- */

static void add_rows(const struct section_call *call, struct table *table, const struct events *events,
                     const char *label)
{
    for (size_t encoder = 0; encoder < ENCODERS; encoder++)
        for (size_t task = 0; task < events->tasks; task++) {
            table_add_text(table, label);
            table_add_text(table, encoders[encoder]);
            table_add_integer(table, (int64_t)task + 1);
            table_add_text(table, call->board->names[task]);
            for (size_t kind = 0; kind < KINDS; kind++)
                table_add_real(table, spread_of_event(events, encoder, task, kind).mean);
        }
}

static void show_table(const struct section_call *call, const struct events *events)
{
    static const char *const columns[] = {"configuration", "encoder", "task", "dataset"};
    struct table table = {0};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(&table, &(struct table_column){.title = columns[i]});
    for (size_t kind = 0; kind < KINDS; kind++)
        table_add_column(&table, &(struct table_column){.title = titles[kind], .decimals = 1});
    for (size_t i = 0; i < call->board->shown; i++)
        if (events[i].any)
            add_rows(call, &table, &events[i], call->board->configuration[i]->label);
    text_add(call->page, "<details><summary>Numbers per encoder and task</summary>\n");
    html_table(call->page, &(struct html_table){.table = &table,
                                                .name = section_name(call, "events"),
                                                .wrapped = true,
                                                .heads = 1,
                                                .caption = "Per run, means over seeds. A single event is told by "
                                                           "mtil query events."});
    text_add(call->page, "</details>\n");
    table_free(&table);
}

status section_events(const struct section_call *call, struct error *error)
{
    struct events *events = report_take(call->report, call->board->shown, sizeof *events);
    bool any = false;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < call->board->shown; i++) {
        TRY(load_events(call, call->board->configuration[i], &events[i], error));
        any |= events[i].any;
    }
    if (!any)
        return OK;
    section_note_left_out(call);
    TRY(draw(call, events, error));
    show_table(call, events);
    return report_check(call->report, error);
}
