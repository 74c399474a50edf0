/* mtil export: writes runs in the formats of other programs. */
#include "harness/commands/inputs/filter.h"
#include "harness/commands/output.h"
#include "harness/run/settings.h"
#include "results/export/files.h"

static const struct option options[] = {
    {.name = "csv", .type = OPTION_TEXT, .help = "folder to write one CSV file per table to"},
    {.name = "tensorboard", .type = OPTION_TEXT, .help = "folder to write TensorBoard's event files to"},
    FILTER_OPTIONS,
    {0},
};

static status write_csv(const struct command_call *call, struct store *store, const struct query_filter *filter,
                        const char *folder, struct error *error)
{
    struct export_counts counts;
    TRY(export_csv(store, filter, folder, &counts, error));
    log_info(call->log, "%zu files with %zu rows in %s", counts.files, counts.entries, folder);
    return OK;
}

static status write_tensorboard(const struct command_call *call, struct store *store, const struct query_filter *filter,
                                const char *folder, struct error *error)
{
    struct export_counts counts;
    TRY(export_tensorboard(store, filter, folder, &counts, error));
    log_info(call->log, "%zu %s with %zu values in %s: tensorboard --logdir %s", counts.files,
             counts.files == 1 ? "run" : "runs", counts.entries, folder, folder);
    return OK;
}

static const char *folder_of(const struct command_call *call, const char *option)
{
    const char *folder = options_text(call->options, option);
    return folder != NULL && *folder != 0 ? folder : NULL;
}

static status run(const struct command_call *call, struct error *error)
{
    const char *csv = folder_of(call, "csv"), *tensorboard = folder_of(call, "tensorboard");
    const char *database = call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    if (csv == NULL && tensorboard == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: export: expected --csv FOLDER or --tensorboard FOLDER, found no folder; see "
                         "mtil export --help");
    struct query_filter filter = filter_read(call->options);
    struct store *store;
    TRY(store_open_stoppable(&store, database, STORE_READ, call->stop, error));
    status result = query_check_filter(store, &filter, error);
    if (csv != NULL)
        NEXT(result, write_csv(call, store, &filter, csv, error));
    if (tensorboard != NULL)
        NEXT(result, write_tensorboard(call, store, &filter, tensorboard, error));
    store_close(store);
    return result;
}

const struct command command_export = {
    .name = "export",
    .arguments = "[DATABASE]",
    .summary = "write runs as files for other programs",
    .details = "--csv: one file per table and view that has runs (except the packed predictions), such as\n"
               "FOLDER/matrix.csv, runs.csv and steps.csv, with the columns of results/README.md; the column `run`\n"
               "refers to runs.csv.\n"
               "\n"
               "--tensorboard: one file per run, SUITE/METHOD-POLICY-CONFIGURATION/seedN/\n"
               "events.out.tfevents.*, with losses and learning rates by iteration, the accuracy of each\n"
               "task by the number of tasks trained, Transfer, Average, Last and the other metrics, the\n"
               "suite as text, and, for the tab HParams, the settings in which the exported runs differ.\n"
               "\n"
               "Exporting again replaces files. DATABASE defaults to results.db.\n",
    .example = "  mtil export results.db --csv csv --suite mini\n"
               "  mtil export results.db --tensorboard logs --suite mini\n"
               "  tensorboard --logdir logs\n",
    .options = options,
    .least = 0,
    .most = 1,
    .run = run,
};
