/* Which classes which expert serves: of each block, how often images of each class choose each expert in the last test, and
 * the mean gates (RMoE, Figure 5). */
#include <inttypes.h>
#include <math.h>

#include "results/report/sections/experts.h"

enum { CLASSES_MOST = 128 }; /* of a task, in a figure */

/* Blocks that decide: where they share experts, those of training are the first of each run. */
static const char blocks_sql[] = "SELECT 'image', block, (SELECT max(expert) + 1 FROM expert_counts WHERE run = ?1), 1 "
                                 "FROM class_experts WHERE run = ?1 GROUP BY block ORDER BY block";

/* What is drawn, in percent or as a mean: of a run's tasks, and of the classes of a task. */
static const struct drawn {
    const char *name, *title, *value_title, *what;
    const char *tasks, *classes; /* rows of block, task or class, expert and value */
} drawn[] = {
    {"served", "Experts", "share, %", "the experts that test images choose, %",
     "SELECT block, task, expert, 100.0 * sum(count) / sum(sum(count)) OVER (PARTITION BY block, task) "
     "FROM class_experts WHERE run = ?1 GROUP BY block, task, expert",
     "SELECT block, class, expert, share FROM class_usage WHERE run = ?1 AND task = %zu"},
    {"gates", "Mean gates", "mean gate",
     "the mean gate of each expert over all choices of test images, 0 in those of others",
     "SELECT block, task, expert, sum(gate * count) / sum(sum(count)) OVER (PARTITION BY block, task) "
     "FROM class_experts WHERE run = ?1 AND gate IS NOT NULL GROUP BY block, task, expert",
     "SELECT block, class, expert, mean_gate FROM class_usage "
     "WHERE run = ?1 AND task = %zu AND mean_gate IS NOT NULL"},
};
enum { DRAWN = sizeof drawn / sizeof *drawn };

/* Of one run. */
struct serving {
    const char *of; /* configuration and seed */
    const struct blocks *blocks;
    size_t tasks, rows; /* rows: of value, classes of a task or tasks */
    double *value;      /* [blocks, rows, experts], NAN: never chosen */
    bool has_value;
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
    if (block == s->blocks->count || class < 0 || class >= (int64_t)s->rows || expert < 0 || expert >= (int64_t)experts)
        return;
    s->has_value = true;
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

/* first: the number of the first row. */
static status draw(const struct section_call *call, const struct serving *s, const struct drawn *what, const char *name,
                   const char *title, const char *caption, size_t first, struct error *error)
{
    const struct blocks *blocks = s->blocks;
    size_t experts = blocks->experts;
    struct figure_panel *panel = report_take(call->report, blocks->count, sizeof *panel);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < blocks->count; i++)
        panel[i] = (struct figure_panel){
            .title = blocks->label[i], .value = s->value + i * s->rows * experts, .mark = (double)NAN};
    struct figure figure = {.name = name,
                            .title = title,
                            .caption = caption,
                            .kind = FIGURE_HEAT,
                            .x_title = "expert",
                            .y_title = first > 0 ? "task" : "class",
                            .value_title = what->value_title,
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

static status read_values(const struct section_call *call, struct serving *s, int64_t run, const char *sql,
                          struct error *error)
{
    size_t size = s->blocks->count * s->rows * s->blocks->experts;
    s->value = report_take(call->report, size, sizeof *s->value);
    s->has_value = false;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < size; i++)
        s->value[i] = (double)NAN;
    return report_rows(call->report, sql, run, take_cell, s, error);
}

static status show_tasks(const struct section_call *call, struct serving *s, int64_t run, struct error *error)
{
    s->rows = s->tasks;
    section_choice(call, "all tasks");
    for (size_t i = 0; i < DRAWN; i++) {
        const struct drawn *what = &drawn[i];
        TRY(read_values(call, s, run, what->tasks, error));
        if (s->has_value)
            TRY(draw(call, s, what, section_name(call, report_format(call->report, "%s-tasks", what->name)),
                     report_format(call->report, "%s of each task's images", what->title),
                     report_format(call->report, "%s: %s. " READ_IT " A row per task.", s->of, what->what), 1, error));
    }
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
    section_choice(call, name);
    for (size_t i = 0; i < DRAWN; i++) {
        const struct drawn *what = &drawn[i];
        TRY(read_values(call, s, run, report_format(report, what->classes, task), error));
        if (s->has_value)
            TRY(draw(call, s, what, section_name_of(call, what->name, task + 1),
                     report_format(report, "%s of each class of %s", what->title, name),
                     report_format(report,
                                   "%s: %s. " READ_IT
                                   " A row per class, by its number: mtil query class-experts has the names.%s",
                                   s->of, what->what, more),
                     0, error));
    }
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
    section_choices(call, "Task");
    if (s->tasks > 1)
        TRY(show_tasks(call, s, configuration->run[0].run, error));
    for (size_t task = 0; task < s->tasks; task++)
        if (is_served(s, task) && section_wants_task(call, task))
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
