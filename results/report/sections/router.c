/* Where the test images of each task were sent, after the last task. */
#include <math.h>
#include <stdlib.h>

#include "results/report/section.h"

/* Images pooled over runs: [tasks, 1 + tasks], zero-shot CLIP first. */
struct confusion {
    size_t tasks;
    double *images, *share;
};

static void take_choice(void *context, struct statement *row)
{
    struct confusion *confusion = context;
    int64_t task = statement_integer(row, 0), router = statement_integer(row, 1);
    if (task >= 0 && task < (int64_t)confusion->tasks && router >= -1 && router < (int64_t)confusion->tasks)
        confusion->images[(size_t)task * (confusion->tasks + 1) + (size_t)(router + 1)] += row_real(row, 2);
}

static status load_confusion(const struct section_call *call, const struct configuration *configuration,
                             struct confusion *confusion, bool *any, struct error *error)
{
    size_t tasks = call->board->tasks, size = tasks * (tasks + 1);
    *confusion = (struct confusion){.tasks = tasks,
                                    .images = report_take(call->report, size, sizeof(double)),
                                    .share = report_take(call->report, size, sizeof(double))};
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < configuration->used; run++)
        TRY(report_rows(call->report,
                        "SELECT task, router, count FROM router_choices WHERE run = ?1 AND after_task = "
                        "(SELECT max(after_task) FROM router_choices WHERE run = ?1)",
                        configuration->run[run].run, take_choice, confusion, error));
    for (size_t task = 0; task < tasks; task++) {
        double sum = 0;
        for (size_t i = 0; i <= tasks; i++)
            sum += confusion->images[task * (tasks + 1) + i];
        *any |= sum > 0;
        for (size_t i = 0; i <= tasks; i++)
            confusion->share[task * (tasks + 1) + i] =
                sum > 0 ? 100 * confusion->images[task * (tasks + 1) + i] / sum : (double)NAN;
    }
    return OK;
}

static const char **column_names(const struct section_call *call)
{
    const char **names = report_take(call->report, call->board->tasks + 1, sizeof *names);
    if (names == NULL)
        return NULL;
    names[0] = "zero-shot";
    for (size_t task = 0; task < call->board->tasks; task++)
        names[task + 1] = call->board->names[task];
    return names;
}

static void show_table(const struct section_call *call, const struct confusion *confusion, const char *name,
                       const char **columns, const char *seeds)
{
    struct table table = {0};
    size_t tasks = confusion->tasks, width = tasks + 2;
    bool *framed = calloc(tasks * width, sizeof *framed);
    table_add_column(&table, &(struct table_column){.title = "images of"});
    for (size_t i = 0; i <= tasks; i++)
        table_add_column(&table, &(struct table_column){.title = columns[i], .decimals = 1});
    for (size_t task = 0; task < tasks; task++) {
        table_add_text(&table, call->board->names[task]);
        for (size_t i = 0; i <= tasks; i++)
            table_add_real(&table, confusion->share[task * (tasks + 1) + i]);
        if (framed != NULL)
            framed[task * width + task + 2] = true;
    }
    table.failed |= framed == NULL;
    html_table(call->page,
               &(struct html_table){.table = &table,
                                    .name = name,
                                    .heat = true,
                                    .low = 0,
                                    .high = 100,
                                    .heads = 1,
                                    .framed = framed,
                                    .files = section_files(call, name),
                                    .caption = report_format(call->report,
                                                             "Percent of each task's test images (rows) that went to "
                                                             "each router (columns) after the last task, pooled over "
                                                             "%s; framed: the task's own router.",
                                                             seeds)});
    table_free(&table);
    free(framed);
}

static status show_confusion(const struct section_call *call, const struct confusion *confusion, size_t number,
                             struct error *error)
{
    const struct configuration *configuration = call->board->configuration[number];
    const char *name = section_name_of(call, "router", number + 1), **columns = column_names(call);
    TRY(report_check(call->report, error));
    section_choice(call, configuration->label);
    show_table(call, confusion, name, columns, section_seeds(call, configuration));
    section_choice_end(call);
    struct figure_panel panel = {.title = "", .value = confusion->share, .mark = (double)NAN};
    struct figure figure = {
        .name = name,
        .title = configuration->legend,
        .caption = report_format(
            call->report,
            "Percent of the test images of each task that went to each router after the last task, pooled over %s.",
            section_seeds(call, configuration)),
        .kind = FIGURE_HEAT,
        .panel = &panel,
        .panels = 1,
        .x_title = "router chosen",
        .y_title = "images of",
        .value_title = "share, %",
        .x_label = columns,
        .columns = confusion->tasks + 1,
        .y_label = call->board->names,
        .rows = confusion->tasks,
        .low = 0,
        .high = 100,
        .decimals = 1,
        .printed = true,
        .only_file = true};
    return section_figure(call, &figure, error);
}

status section_router(const struct section_call *call, struct error *error)
{
    size_t shown = call->board->shown;
    struct confusion *confusions = report_take(call->report, shown, sizeof *confusions);
    bool *any = report_take(call->report, shown, sizeof *any), some = false;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < shown; i++) {
        TRY(load_confusion(call, call->board->configuration[i], &confusions[i], &any[i], error));
        some |= any[i];
    }
    if (!some)
        return OK;
    section_note_left_out(call);
    section_choices(call, "Configuration");
    for (size_t i = 0; i < shown; i++)
        if (any[i])
            TRY(show_confusion(call, &confusions[i], i, error));
    section_choices_end(call);
    return report_check(call->report, error);
}
