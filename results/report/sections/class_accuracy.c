/* How well each class is recognised, and what it is taken for: one run, from what is kept of each test image. */
#include <math.h>
#include <string.h>

#include "results/query.h"
#include "results/report/figure_drawing.h"
#include "results/report/section.h"

enum { CLASSES_MOST = 100 /* that a heat map shows */, NAMED_MOST = 20 /* with names and numbers */ };

/* The answer of a query as it is, but for its first columns, which are the same in all rows or numbers of names. */
static void show_accuracies(const struct section_call *call, const struct table *answer, const char *run)
{
    static const char *const titles[] = {"class", "task", "images", "zero-shot", "right after its task", "at the end"};
    enum { NAME = 2, CLASS = 3, CLASS_NAME = 4, IMAGES = 5, ACCURACIES = 3 };
    struct table table = {0};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(&table, &(struct table_column){.title = titles[i], .decimals = i > 2 ? 1 : 0});
    for (size_t row = 0; row < table_rows(answer); row++) {
        const struct table_cell *name = table_cell_at(answer, row, CLASS_NAME), *images;
        if (name->kind == CELL_TEXT)
            table_add_text(&table, name->text);
        else
            table_add_text(&table,
                           report_format(call->report, "%lld", (long long)table_cell_at(answer, row, CLASS)->integer));
        table_add_text(&table, table_cell_at(answer, row, NAME)->text);
        images = table_cell_at(answer, row, IMAGES);
        table_add_integer(&table, images->kind == CELL_INTEGER ? images->integer : 0);
        for (size_t i = 0; i < ACCURACIES; i++) {
            const struct table_cell *cell = table_cell_at(answer, row, IMAGES + 1 + i);
            table_add_real(&table, cell->kind == CELL_REAL ? cell->real : (double)NAN);
        }
    }
    text_add(call->page, "<details><summary>Accuracy on each of %zu classes</summary>\n", table_rows(&table));
    html_table(call->page,
               &(struct html_table){
                   .table = &table,
                   .name = section_name(call, "class-accuracy"),
                   .heads = 1,
                   .wrapped = true,
                   .caption = report_format(call->report, "Percent of the test images of each class, %s.", run)});
    text_add(call->page, "</details>\n");
    table_free(&table);
}

/* Rows of the query: class and predicted class with the share of the class's images. */
static void take_shares(const struct table *answer, size_t classes, double *share)
{
    enum { CLASS = 2, PREDICTED_TASK = 4, PREDICTED = 5, SHARE = 8 };
    for (size_t i = 0; i < classes * classes; i++)
        share[i] = (double)NAN;
    for (size_t row = 0; row < table_rows(answer); row++) {
        const struct table_cell *class = table_cell_at(answer, row, CLASS), *task = table_cell_at(answer, row, 1),
                                *other = table_cell_at(answer, row, PREDICTED_TASK),
                                *predicted = table_cell_at(answer, row, PREDICTED);
        if (class->kind != CELL_INTEGER || predicted->kind != CELL_INTEGER || task->kind != CELL_TEXT ||
            other->kind != CELL_TEXT || strcmp(task->text, other->text) != 0)
            continue;
        if (class->integer < (int64_t)classes && predicted->integer < (int64_t)classes)
            share[(size_t) class->integer * classes + (size_t)predicted->integer] =
                table_cell_at(answer, row, SHARE)->real;
    }
}

static size_t count_classes(const struct table *answer)
{
    int64_t most = -1;
    for (size_t row = 0; row < table_rows(answer); row++)
        for (size_t column = 2; column <= 5; column += 3) {
            const struct table_cell *cell = table_cell_at(answer, row, column);
            most = cell->kind == CELL_INTEGER && cell->integer > most ? cell->integer : most;
        }
    return (size_t)(most + 1);
}

static status draw(const struct section_call *call, size_t task, const struct table *answer, size_t classes,
                   struct error *error)
{
    struct report *report = call->report;
    double *share = report_take(report, classes * classes, sizeof *share);
    const char **names = report_take(report, classes, sizeof *names);
    TRY(report_check(report, error));
    take_shares(answer, classes, share);
    bool named = classes <= NAMED_MOST;
    for (size_t i = 0; i < classes; i++)
        names[i] = report_format(report, "%zu", i);
    for (size_t row = 0; row < table_rows(answer) && named; row++) {
        const struct table_cell *class = table_cell_at(answer, row, 2), *name = table_cell_at(answer, row, 3);
        if (class->kind == CELL_INTEGER && name->kind == CELL_TEXT)
            names[class->integer] = name->text;
    }
    struct figure_panel panel = {.title = "", .value = share, .mark = (double)NAN};
    struct figure figure = {.name = section_name_of(call, "class-confusion", task + 1),
                            .title = report_format(report, "%s: what the images of each class were taken for, %%",
                                                   call->board->names[task]),
                            .caption =
                                "A row per class, a column per class that was predicted; empty: never. mtil query "
                                "confusion --dataset has names and counts.",
                            .kind = FIGURE_HEAT,
                            .x_title = "predicted class",
                            .y_title = "class",
                            .value_title = "share, %",
                            .panel = &panel,
                            .panels = 1,
                            .x_label = names,
                            .columns = classes,
                            .y_label = names,
                            .rows = classes,
                            .low = 0,
                            .high = 100,
                            .printed = named};
    draw_figure(call->page, &figure, false);
    return report_check(report, error);
}

static status show_confusion(const struct section_call *call, struct query_filter *filter, size_t task,
                             struct error *error)
{
    struct table answer = {0};
    filter->dataset = call->board->names[task];
    status result = query_named(call->report->store, "confusion", filter, &answer, error);
    size_t classes = result == OK ? count_classes(&answer) : 0;
    if (classes > 1 && classes <= CLASSES_MOST) {
        section_choice(call, call->board->names[task]);
        result = draw(call, task, &answer, classes, error);
        section_choice_end(call);
    }
    table_free(&answer);
    return result;
}

static status show_run(const struct section_call *call, const struct configuration *configuration, bool *shown,
                       struct error *error)
{
    struct table answer = {0};
    struct query_filter filter = {.run = configuration->run[0].run};
    status result = query_named(call->report->store, "classes", &filter, &answer, error);
    *shown = result == OK && table_rows(&answer) > 0;
    if (*shown) {
        const char *run = report_format(call->report, "%s, run %lld", configuration->label, (long long)filter.run);
        html_paragraph(call->page, "note", report_format(call->report, "One run: %s.", run));
        show_accuracies(call, &answer, run);
        section_choices(call, "Task");
        for (size_t task = 0; task < call->board->tasks && result == OK; task++)
            if (section_wants_task(call, task))
                result = show_confusion(call, &filter, task, error);
        section_choices_end(call);
    }
    table_free(&answer);
    return result;
}

/* Of the best configuration that kept its images. */
status section_class_accuracy(const struct section_call *call, struct error *error)
{
    bool shown = false;
    for (size_t i = 0; i < call->board->shown && !shown; i++)
        TRY(show_run(call, call->board->configuration[i], &shown, error));
    return report_check(call->report, error);
}
