/* The accuracy matrix: mean over seeds, and each seed. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "results/metrics.h"
#include "results/report/section.h"

enum { SEEDS_MOST = 5 }; /* of a configuration that are shown one by one */

struct matrix {
    const char *label, *name;
    const char *legend;    /* of the figure for papers */
    const double *value;   /* [1 + tasks, tasks] */
    const int64_t *images; /* as in accuracy_matrix */
};

static bool has_row(const double *row, size_t tasks)
{
    for (size_t task = 0; task < tasks; task++)
        if (!isnan(row[task]))
            return true;
    return false;
}

static void add_accuracies(struct table *table, const char *after, const struct accuracy_matrix *cells, size_t row)
{
    const double *value = row == 0 ? cells->zero_shot : cells->accuracy + (row - 1) * cells->tasks;
    table_add_text(table, after);
    for (size_t task = 0; task < cells->tasks; task++)
        table_add_real(table, value[task]);
    table_add_real(table, accuracy_mean(cells, (int64_t)row - 1));
}

static void add_metric(struct table *table, const char *name, const struct accuracy_matrix *matrix)
{
    const struct metric *metric = metric_find(name);
    table_add_text(table, metric->title);
    for (size_t task = 0; task < matrix->tasks; task++)
        table_add_real(table, metric_of_task(metric, matrix, task));
    table_add_real(table, metric_mean(metric, matrix));
}

/* Rows as at the end of a run; *framed: the accuracy on a task right after it was trained. */
static bool *fill_table(const struct board *board, const struct matrix *matrix, struct table *table)
{
    size_t tasks = board->tasks, columns = tasks + 2;
    bool *framed = calloc((tasks + 4) * columns, sizeof *framed);
    table_add_column(table, &(struct table_column){.title = "after"});
    for (size_t task = 0; task < tasks; task++)
        table_add_column(table, &(struct table_column){.title = board->names[task], .decimals = 1});
    table_add_column(table, &(struct table_column){.title = "mean", .decimals = 1});
    struct accuracy_matrix cells = {
        .tasks = tasks, .accuracy = matrix->value + tasks, .zero_shot = matrix->value, .images = matrix->images};
    for (size_t row = 0; row <= tasks; row++) {
        if (!has_row(matrix->value + row * tasks, tasks))
            continue;
        if (framed != NULL && row > 0)
            framed[table_rows(table) * columns + row] = true;
        add_accuracies(table, row == 0 ? "zero-shot" : board->names[row - 1], &cells, row);
    }
    if (cells.images == NULL)
        add_metric(table, "transfer", &cells);
    add_metric(table, "average", &cells);
    add_metric(table, "last", &cells);
    table->failed |= framed == NULL;
    return framed;
}

static void write_table(const struct section_call *call, const struct matrix *matrix, const char *of, bool with_files)
{
    struct table table = {0};
    bool *framed = fill_table(call->board, matrix, &table);
    html_table(call->page, &(struct html_table){
                               .table = &table,
                               .name = matrix->name,
                               .heat = true,
                               .low = 0,
                               .high = 100,
                               .heads = 1,
                               .framed = framed,
                               .files = with_files ? section_files(call, matrix->name) : NULL,
                               .caption = report_format(call->report,
                                                        "Test accuracy in percent on each task (columns) after "
                                                        "each task trained (rows), %s; framed: the task just trained.",
                                                        of)});
    table_free(&table);
    free(framed);
}

static status write_files(const struct section_call *call, const struct matrix *matrix, const char *of,
                          struct error *error)
{
    const struct board *board = call->board;
    const char **rows = report_take(call->report, board->tasks + 1, sizeof *rows);
    TRY(report_check(call->report, error));
    rows[0] = "zero-shot";
    for (size_t task = 0; task < board->tasks; task++)
        rows[task + 1] = board->names[task];
    struct figure_panel panel = {.title = "", .value = matrix->value, .mark = (double)NAN};
    struct figure figure = {.name = matrix->name,
                            .title = matrix->legend,
                            .caption = report_format(
                                call->report, "Test accuracy in percent on each task after each task trained, %s.", of),
                            .kind = FIGURE_HEAT,
                            .panel = &panel,
                            .panels = 1,
                            .x_title = "test on task",
                            .y_title = "after training on",
                            .value_title = "accuracy, %",
                            .x_label = board->names,
                            .columns = board->tasks,
                            .y_label = rows,
                            .rows = board->tasks + 1,
                            .low = 0,
                            .high = 100,
                            .decimals = 1,
                            .printed = true,
                            .only_file = true};
    return section_figure(call, &figure, error);
}

static status write_matrix(const struct section_call *call, const struct matrix *matrix, const char *of,
                           bool with_files, struct error *error)
{
    section_choice(call, matrix->label);
    write_table(call, matrix, of, with_files);
    section_choice_end(call);
    return with_files ? write_files(call, matrix, of, error) : OK;
}

static status write_seeds(const struct section_call *call, const struct configuration *configuration,
                          const struct accuracies *accuracies, size_t number, struct error *error)
{
    size_t size = (accuracies->tasks + 1) * accuracies->tasks;
    for (size_t run = 0; run < accuracies->runs && run < SEEDS_MOST && accuracies->runs > 1; run++) {
        int64_t seed = configuration->run[run].seed;
        struct matrix matrix = {
            .label = report_format(call->report, "%s, seed %" PRId64, configuration->label, seed),
            .name = report_format(call->report, "%smatrix-%zu-seed-%" PRId64, call->prefix, number, seed),
            .value = accuracies->value + run * size,
            .images = accuracies->images};
        TRY(write_matrix(call, &matrix, report_format(call->report, "run %" PRId64, configuration->run[run].run), false,
                         error));
    }
    return OK;
}

static status write_configuration(const struct section_call *call, size_t number, struct error *error)
{
    const struct configuration *configuration = call->board->configuration[number];
    struct accuracies accuracies;
    struct arena_mark mark = arena_mark(&call->report->arena);
    TRY(section_accuracies(call, configuration, &accuracies, error));
    size_t size = (accuracies.tasks + 1) * accuracies.tasks;
    double *mean = report_take(call->report, size, sizeof *mean);
    const char *seeds = section_seeds(call, configuration);
    struct matrix matrix = {.label = report_format(call->report, "%s, %s%s", configuration->label,
                                                   accuracies.runs > 1 ? "mean of " : "", seeds),
                            .name = section_name_of(call, "matrix", number + 1),
                            .legend = configuration->legend,
                            .value = mean,
                            .images = accuracies.images};
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < size; i++)
        mean[i] = spread_of(accuracies.value + i, accuracies.runs, size).mean;
    const char *of = report_format(call->report, accuracies.runs > 1 ? "mean over %s" : "of %s", seeds);
    TRY(write_matrix(call, &matrix, of, true, error));
    TRY(write_seeds(call, configuration, &accuracies, number + 1, error));
    arena_release(&call->report->arena, mark);
    return report_check(call->report, error);
}

status section_matrix(const struct section_call *call, struct error *error)
{
    section_note_left_out(call);
    section_choices(call, "Configuration or seed");
    for (size_t i = 0; i < call->board->shown; i++)
        TRY(write_configuration(call, i, error));
    section_choices_end(call);
    return OK;
}
