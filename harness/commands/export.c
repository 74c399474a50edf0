/* mtil export: writes runs as files of other programs. */
#include "harness/commands/inputs/filter.h"
#include "harness/commands/output.h"
#include "harness/run/settings.h"
#include "results/export/files.h"

static const struct option options[] = {
    {.name = "csv", .type = OPTION_TEXT, .help = "folder to write one CSV file per table to; required"},
    FILTER_OPTIONS,
    {0},
};

static status run(const struct command_call *call, struct error *error)
{
    const char *folder = options_text(call->options, "csv");
    const char *database = call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    if (folder == NULL || *folder == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: export: expected --csv FOLDER, found no folder; see mtil export --help");
    struct query_filter filter = filter_read(call->options);
    struct export_counts counts;
    struct store *store;
    TRY(store_open_stoppable(&store, database, STORE_READ, call->stop, error));
    status result = query_check_filter(store, &filter, error);
    NEXT(result, export_csv(store, &filter, folder, &counts, error));
    if (result == OK)
        log_info(call->log, "%zu files with %zu rows in %s", counts.files, counts.rows, folder);
    store_close(store);
    return result;
}

const struct command command_export = {
    .name = "export",
    .arguments = "[DATABASE]",
    .summary = "write runs as files for other programs",
    .details = "One file per table and view that has runs (except the packed predictions), such as\n"
               "FOLDER/matrix.csv, runs.csv and steps.csv, with the columns of results/README.md; the column `run`\n"
               "refers to runs.csv. --dataset chooses runs that have this task, and all their tasks are written.\n"
               "Exporting again replaces files. DATABASE defaults to results.db.\n",
    .example = "  mtil export results.db --csv csv --suite mini\n",
    .options = options,
    .most = 1,
    .run = run,
};
