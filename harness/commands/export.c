/* mtil export: writes runs in the format of another program. */
#include "harness/commands/inputs/filter.h"
#include "harness/commands/output.h"
#include "harness/config/settings.h"
#include "results/export/tensorboard.h"

static const struct option options[] = {
    {.name = "tensorboard", .type = OPTION_TEXT, .help = "folder to write TensorBoard's event files to"},
    FILTER_OPTIONS,
    {0},
};

static status run(const struct command_call *call, struct error *error)
{
    const char *folder = options_text(call->options, "tensorboard");
    const char *database = call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    if (folder == NULL || *folder == 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: export: expected --tensorboard FOLDER, found no folder; see mtil export --help");
    struct query_filter filter = filter_read(call->options);
    struct tensorboard_counts counts;
    struct store *store;
    TRY(store_open_stoppable(&store, database, STORE_SNAPSHOT, call->stop, error));
    status result = query_check_filter(store, &filter, error);
    NEXT(result, tensorboard_export(store, &filter, folder, &counts, error));
    store_close(store);
    if (result == OK)
        log_info(call->log, "%zu %s with %zu values in %s: tensorboard --logdir %s", counts.runs,
                 counts.runs == 1 ? "run" : "runs", counts.values, folder, folder);
    return result;
}

const struct command command_export = {
    .name = "export",
    .arguments = "[DATABASE]",
    .summary = "write runs as files for TensorBoard",
    .details = "One file per run, SUITE/METHOD-POLICY-CONFIGURATION/seedN/events.out.tfevents.*, with losses\n"
               "and learning rates by iteration, the accuracy of each task by the number of tasks\n"
               "trained, Transfer, Average, Last and the other metrics, and the suite as text. Exporting\n"
               "a run again replaces its file. DATABASE defaults to results.db.\n",
    .example = "  mtil export results.db --tensorboard logs --suite mini\n"
               "  tensorboard --logdir logs\n",
    .options = options,
    .least = 0,
    .most = 1,
    .run = run,
};
