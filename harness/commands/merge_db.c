/* mtil merge-db: joins results databases. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/commands/output.h"
#include "results/store/join.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    OPTION(BOOLEAN, "keep-first", "false",
           "keep the first of runs that disagree, OUT's before those of IN in their order; default: join nothing"),
    {0},
};

static void show(const struct command_call *call, const struct join_counts *counts)
{
    static const char *const titles[] = {"database", "runs", "added", "already there", "completed", "conflicts"};
    SCOPED(table_free) struct table table = {0};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(&table, &(struct table_column){.title = titles[i]});
    for (size_t i = 1; i < call->argument_count; i++) {
        const struct join_counts *of = &counts[i - 1];
        table_add_text(&table, call->arguments[i]);
        table_add_integer(&table, (int64_t)of->runs);
        table_add_integer(&table, (int64_t)of->added);
        table_add_integer(&table, (int64_t)of->known);
        table_add_integer(&table, (int64_t)of->completed);
        table_add_integer(&table, (int64_t)of->conflicts);
    }
    output_table(call, &table);
}

static status run(const struct command_call *call, struct error *error)
{
    struct join_settings settings = {
        .keep_first = options_boolean(call->options, "keep-first"), .log = call->log, .stop = call->stop};
    OWNED struct join_counts *counts = xcalloc(call->argument_count, sizeof *counts);
    status result =
        join_databases(call->arguments[0], call->arguments + 1, call->argument_count - 1, &settings, counts, error);
    if (result == OK)
        show(call, counts);
    return result;
}

const struct command command_merge_db = {
    .name = "merge-db",
    .arguments = "OUT IN...",
    .summary = "join results databases, each run once",
    .details = "OUT is created, or added to. A run is identified by settings, seed and inputs; if two files have the\n"
               "same run, the more complete one is kept. If runs disagree, they are listed and nothing is written.\n"
               "Files of runs stay where they are: OUT and IN name the same ones, which mtil runs delete removes.\n",
    .example = "  mtil merge-db all.db node1.db node2.db\n",
    .options = options,
    .least = 2,
    .most = SIZE_MAX,
    .run = run,
};
