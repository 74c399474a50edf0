#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "results/report/sections/experts.h"

struct loading {
    struct report *report;
    struct blocks *blocks;
};

static void take_block(void *context, struct statement *row)
{
    struct loading *loading = context;
    struct blocks *blocks = loading->blocks;
    size_t experts = (size_t)statement_integer(row, 2);
    if (blocks->count == BLOCKS_MOST)
        return;
    blocks->experts = experts > blocks->experts ? experts : blocks->experts;
    struct block block = {report_copy(loading->report, statement_text(row, 0)), statement_integer(row, 1)};
    blocks->label[blocks->count] = report_format(loading->report, "%s %" PRId64, block.encoder, block.block);
    blocks->tasks[blocks->count] = (size_t)statement_integer(row, 3);
    blocks->block[blocks->count++] = block;
}

status blocks_load_from(const struct section_call *call, int64_t run, const char *sql, struct blocks *blocks,
                        struct error *error)
{
    *blocks = (struct blocks){0};
    struct loading loading = {call->report, blocks};
    TRY(report_rows(call->report, sql, run, take_block, &loading, error));
    return report_check(call->report, error);
}

status blocks_load(const struct section_call *call, const struct configuration *configuration, struct blocks *blocks,
                   struct error *error)
{
    return blocks_load_from(call, configuration->run[0].run,
                            "SELECT encoder, block, max(expert) + 1, max(task) + 1 FROM expert_counts WHERE run = ?1 "
                            "GROUP BY encoder, block ORDER BY encoder, block",
                            blocks, error);
}

size_t blocks_find(const struct blocks *blocks, const char *encoder, int64_t block)
{
    size_t i = 0;
    while (i < blocks->count && (blocks->block[i].block != block || strcmp(blocks->block[i].encoder, encoder) != 0))
        i++;
    return i;
}

static void show_table(const struct section_call *call, const struct block_values *values)
{
    struct table table = {0};
    size_t tasks = call->board->tasks;
    table_add_column(&table, &(struct table_column){.title = "block"});
    for (size_t task = 0; task < tasks; task++)
        table_add_column(&table,
                         &(struct table_column){.title = call->board->names[task], .decimals = values->decimals});
    for (size_t i = 0; i < values->blocks->count; i++) {
        table_add_text(&table, values->blocks->label[i]);
        for (size_t task = 0; task < tasks; task++)
            table_add_real(&table, values->value[i * tasks + task]);
    }
    html_table(call->page, &(struct html_table){.table = &table,
                                                .name = values->name,
                                                .caption = values->caption,
                                                .heat = true,
                                                .low = values->low,
                                                .high = values->high,
                                                .heads = 1,
                                                .files = section_files(call, values->name)});
    table_free(&table);
}

status blocks_show(const struct section_call *call, const struct block_values *values, struct error *error)
{
    section_choice(call, values->label);
    show_table(call, values);
    section_choice_end(call);
    struct figure_panel panel = {.title = "", .value = values->value, .mark = (double)NAN};
    struct figure figure = {.name = values->name,
                            .title = values->label,
                            .caption = values->caption,
                            .kind = FIGURE_HEAT,
                            .panel = &panel,
                            .panels = 1,
                            .x_title = "task",
                            .y_title = "block",
                            .value_title = values->value_title,
                            .x_label = call->board->names,
                            .columns = call->board->tasks,
                            .y_label = (const char **)values->blocks->label,
                            .rows = values->blocks->count,
                            .low = values->low,
                            .high = values->high,
                            .decimals = values->decimals,
                            .printed = true,
                            .only_file = true};
    return section_figure(call, &figure, error);
}
