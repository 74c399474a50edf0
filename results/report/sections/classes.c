/* Which classes which expert serves: of each block, how often images of each class choose each expert in the last test. */
#include <inttypes.h>
#include <math.h>

#include "results/report/sections/experts.h"

enum { CLASSES_MOST = 128 }; /* of a task, in a figure */

/* Blocks that decide: where they share experts, those of training are the first of each run. */
static const char blocks_sql[] = "SELECT 'image', block, (SELECT max(expert) + 1 FROM expert_counts WHERE run = ?1), 1 "
                                 "FROM class_experts WHERE run = ?1 GROUP BY block ORDER BY block";

/* Of one run. */
struct serving {
    const char *of; /* configuration and seed */
    const struct blocks *blocks;
    size_t tasks, rows;         /* rows: of value, classes of a task or tasks */
    double *value;              /* [blocks, rows, experts]: choices, later percent; NAN: none */
    double *of_task, *of_class; /* [blocks, tasks, experts] choices; [blocks] Σ −n ln p(expert | class) */
    bool any;
};

static void take_class(void *context, struct statement *row)
{
    struct serving *s = context;
    size_t block = blocks_find(s->blocks, "image", statement_integer(row, 1)), experts = s->blocks->experts;
    int64_t task = statement_integer(row, 0), class = statement_integer(row, 2), expert = statement_integer(row, 3);
    double count = row_real(row, 4), share = row_real(row, 5) / 100;
    if (block == s->blocks->count || task < 0 || task >= (int64_t)s->tasks || class < 0 || expert < 0 ||
        expert >= (int64_t)experts)
        return;
    s->any = true;
    s->of_task[(block * s->tasks + (size_t)task) * experts + (size_t)expert] += count;
    s->of_class[block] -= share > 0 ? count * log(share) : 0;
}

static void take_cell(void *context, struct statement *row)
{
    struct serving *s = context;
    size_t block = blocks_find(s->blocks, "image", statement_integer(row, 0)), experts = s->blocks->experts;
    int64_t class = statement_integer(row, 1), expert = statement_integer(row, 2);
    if (block < s->blocks->count && class >= 0 && class < (int64_t)s->rows && expert >= 0 && expert < (int64_t)experts)
        s->value[(block * s->rows + (size_t) class) * experts + (size_t)expert] = row_real(row, 3);
}

static void take_classes(void *context, struct statement *row)
{
    *(int64_t *)context = statement_integer(row, 0);
}

static status load(const struct section_call *call, const struct blocks *blocks, int64_t run, struct serving *s,
                   struct error *error)
{
    *s = (struct serving){.blocks = blocks, .tasks = call->board->tasks};
    s->of_task = report_take(call->report, blocks->count * s->tasks * blocks->experts, sizeof *s->of_task);
    s->of_class = report_take(call->report, blocks->count, sizeof *s->of_class);
    TRY(report_check(call->report, error));
    return report_rows(call->report, "SELECT task, block, class, expert, count, share FROM class_usage WHERE run = ?1",
                       run, take_class, s, error);
}

/* --- How much the class matters --- */

/* exp of the entropy of what all images choose, and of what those of one class do, in the mean. */
static void add_effective(const struct serving *s, size_t block, struct table *table)
{
    size_t experts = s->blocks->experts;
    double all = 0, entropy = 0;
    for (size_t i = 0; i < s->tasks * experts; i++)
        all += s->of_task[block * s->tasks * experts + i];
    for (size_t expert = 0; expert < experts; expert++) {
        double count = 0;
        for (size_t task = 0; task < s->tasks; task++)
            count += s->of_task[(block * s->tasks + task) * experts + expert];
        entropy -= count > 0 ? count / all * log(count / all) : 0;
    }
    table_add_text(table, s->blocks->label[block]);
    table_add_real(table, all > 0 ? exp(entropy) : (double)NAN);
    table_add_real(table, all > 0 ? exp(s->of_class[block] / all) : (double)NAN);
}

static void show_effective(const struct section_call *call, const struct serving *s)
{
    struct table table = {0};
    const char *name = section_name(call, "served");
    table_add_column(&table, &(struct table_column){.title = "block"});
    table_add_column(&table, &(struct table_column){.title = "experts of all images", .decimals = 1});
    table_add_column(&table, &(struct table_column){.title = "of one class", .decimals = 1});
    for (size_t i = 0; i < s->blocks->count; i++)
        add_effective(s, i, &table);
    html_table(call->page,
               &(struct html_table){
                   .table = &table,
                   .name = name,
                   .heads = 1,
                   .caption = report_format(
                       call->report,
                       "%s: effective number of experts, of %zu, that the test images choose in the "
                       "last test, all of them and those of one class (exp of the entropy, for classes of its mean). "
                       "The same number twice: the choice does not depend on the class. Images without a router are "
                       "left out.",
                       s->of, s->blocks->experts)});
    table_free(&table);
}

/* --- Pictures --- */

static const char **numbers(struct report *report, size_t count, size_t first)
{
    const char **label = report_take(report, count, sizeof *label);
    for (size_t i = 0; label != NULL && i < count; i++)
        label[i] = report_format(report, "%zu", first + i);
    return label;
}

/* Counts of each row into percent of it. */
static void make_shares(struct serving *s)
{
    size_t experts = s->blocks->experts;
    for (size_t row = 0; row < s->blocks->count * s->rows; row++) {
        double *value = s->value + row * experts, sum = 0;
        for (size_t expert = 0; expert < experts; expert++)
            sum += value[expert];
        for (size_t expert = 0; expert < experts; expert++)
            value[expert] = value[expert] > 0 ? 100 * value[expert] / sum : (double)NAN;
    }
}

static status draw(const struct section_call *call, struct serving *s, const char *name, const char *title,
                   const char *caption, size_t first, struct error *error)
{
    const struct blocks *blocks = s->blocks;
    size_t experts = blocks->experts;
    struct figure_panel *panel = report_take(call->report, blocks->count, sizeof *panel);
    TRY(report_check(call->report, error));
    make_shares(s);
    for (size_t i = 0; i < blocks->count; i++)
        panel[i] = (struct figure_panel){
            .title = blocks->label[i], .value = s->value + i * s->rows * experts, .mark = (double)NAN};
    struct figure figure = {.name = name,
                            .title = title,
                            .caption = caption,
                            .kind = FIGURE_HEAT,
                            .x_title = "expert",
                            .y_title = first > 0 ? "task" : "class",
                            .value_title = "share, %",
                            .panel = panel,
                            .panels = blocks->count,
                            .x_label = numbers(call->report, experts, 0),
                            .columns = experts,
                            .y_label = numbers(call->report, s->rows, first),
                            .rows = s->rows,
                            .low = 0,
                            .high = (double)NAN,
                            .decimals = 0};
    TRY(report_check(call->report, error));
    return section_figure(call, &figure, error);
}

#define READ_IT                                                                                                        \
    "A panel per block, a column per expert; empty: never chosen. A column that is dark in few rows is an expert for " \
    "these; rows that look alike are served alike."

static status show_tasks(const struct section_call *call, struct serving *s, struct error *error)
{
    s->rows = s->tasks;
    s->value = s->of_task;
    section_choice(call, "all tasks");
    TRY(draw(
        call, s, section_name(call, "served-tasks"), "Experts of each task's images",
        report_format(call->report, "%s: the experts that test images choose, %%. " READ_IT " A row per task.", s->of),
        1, error));
    section_choice_end(call);
    return OK;
}

static status show_task(const struct section_call *call, struct serving *s, int64_t run, size_t task,
                        struct error *error)
{
    struct report *report = call->report;
    struct arena_mark mark = arena_mark(&report->arena);
    int64_t classes = 0;
    const char *name = call->board->names[task], *more = "";
    TRY(report_rows(report, report_format(report, "SELECT classes FROM tasks WHERE run = ?1 AND task = %zu", task), run,
                    take_classes, &classes, error));
    s->rows = classes < 1 ? 1 : classes > CLASSES_MOST ? CLASSES_MOST : (size_t)classes;
    if (classes > CLASSES_MOST)
        more = report_format(report, " The first %d of %" PRId64 " classes.", CLASSES_MOST, classes);
    s->value = report_take(report, s->blocks->count * s->rows * s->blocks->experts, sizeof *s->value);
    TRY(report_check(report, error));
    TRY(report_rows(report,
                    report_format(report,
                                  "SELECT block, class, expert, count FROM class_experts WHERE run = ?1 AND task = %zu",
                                  task),
                    run, take_cell, s, error));
    section_choice(call, name);
    TRY(draw(call, s, section_name_of(call, "served", task + 1),
             report_format(report, "%s: experts of each class", name),
             report_format(report,
                           "%s: the experts that test images choose, %%. " READ_IT
                           " A row per class, by its number: mtil query class-experts has the names.%s",
                           s->of, more),
             0, error));
    section_choice_end(call);
    arena_release(&report->arena, mark);
    return OK;
}

static bool is_served(const struct serving *s, size_t task)
{
    size_t experts = s->blocks->experts;
    double sum = 0;
    for (size_t block = 0; block < s->blocks->count; block++)
        for (size_t expert = 0; expert < experts; expert++)
            sum += s->of_task[(block * s->tasks + task) * experts + expert];
    return sum > 0;
}

static status show_run(const struct section_call *call, const struct configuration *configuration, struct serving *s,
                       struct error *error)
{
    s->of = report_format(call->report, "%s, seed %" PRId64, configuration->legend, configuration->run[0].seed);
    show_effective(call, s);
    bool *served = report_take(call->report, s->tasks, sizeof *served);
    TRY(report_check(call->report, error));
    for (size_t task = 0; task < s->tasks; task++) /* before counts become shares */
        served[task] = is_served(s, task) && section_wants_task(call, task);
    section_choices(call, "Task");
    if (s->tasks > 1)
        TRY(show_tasks(call, s, error));
    for (size_t task = 0; task < s->tasks; task++)
        if (served[task])
            TRY(show_task(call, s, configuration->run[0].run, task, error));
    section_choices_end(call);
    return OK;
}

/* Of the best configuration that has any: experts of different runs have nothing to do with one another. */
status section_classes(const struct section_call *call, struct error *error)
{
    struct blocks *blocks = report_take(call->report, 1, sizeof *blocks);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < call->board->shown; i++) {
        const struct configuration *configuration = call->board->configuration[i];
        struct serving serving;
        TRY(blocks_load_from(call, configuration->run[0].run, blocks_sql, blocks, error));
        if (blocks->count == 0)
            continue;
        TRY(load(call, blocks, configuration->run[0].run, &serving, error));
        if (serving.any)
            return show_run(call, configuration, &serving, error);
    }
    return OK;
}
