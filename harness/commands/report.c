/* mtil report: a results database as one page, and its figures for papers. mtil export: its tables as files of other programs. */
#include <stdlib.h>

#include "core/scope.h"
#include "harness/commands/command.h"
#include "harness/commands/inputs/filter.h"
#include "harness/commands/output.h"
#include "harness/run/settings.h"
#include "results/export/files.h"
#include "results/report.h"

static const struct option report_options[] = {
    OPTION(TEXT, "out", NULL, "folder to write; required"),
    OPTION(LIST, "by", "policy", "what to compare, as in mtil compare: policy, method, merge.every, …"),
    OPTION_NUMBER(INTEGER, "best", 1, REPORT_BEST, "6", "number of configurations drawn, those with the highest Last"),
    OPTION(BOOLEAN, "figures", "true", "write the figures for papers too"),
    OPTION(TEXT, "questions", NULL,
           "a folder of more sections, a file NAME.sql each: a head and SQL (results/report/README.md)"),
    FILTER_OPTIONS,
    {0},
};

static void log_outcome(const struct command_call *call, const struct report_request *request,
                        const struct report_outcome *outcome)
{
    log_info(call->log, "%s/index.html: %zu run%s of %zu configuration%s, %zu figures for papers", request->folder,
             outcome->runs, outcome->runs == 1 ? "" : "s", outcome->configurations,
             outcome->configurations == 1 ? "" : "s", outcome->figures);
}

static status write_report(const struct command_call *call, struct report_request *request, struct error *error)
{
    struct report_outcome outcome;
    SCOPED(store_close_at) struct store *store = NULL;
    TRY(store_open_stoppable(&store, call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE, STORE_READ,
                             call->stop, error));
    TRY(report_write(store, request, &outcome, error));
    log_outcome(call, request, &outcome);
    return OK;
}

static status run_report(const struct command_call *call, struct error *error)
{
    struct report_request request = {
        .filter = filter_read(call->options),
        .folder = options_text(call->options, "out"),
        .best = (size_t)options_integer(call->options, "best"),
        .figures = options_boolean(call->options, "figures"),
        .questions = options_text(call->options, "questions"),
        .stop = call->stop,
    };
    if (request.folder == NULL)
        return error_set(error, ERROR_ARGUMENT, "command line: report: expected --out FOLDER, the folder to write");
    OWNED const char **by = options_list_items(call->options, "by", &request.by_count);
    request.by = by;
    return write_report(call, &request, error);
}

const struct command command_report = {
    .name = "report",
    .arguments = "[DATABASE] --out FOLDER",
    .summary = "write a page that shows the contents of a results database",
    .details =
        "FOLDER/index.html needs no network and no other file. FOLDER/figures has every figure for papers, with the\n"
        "width of one column (NAME-column) and of two, as SVG, which rsvg-convert makes PDF or PNG of (README.md of\n"
        "results/report), and its caption and data. The page and results/METRICS.md define the metrics. An existing "
        "report is\n"
        "replaced; a folder that holds anything else is left alone.\n",
    .example = "  mtil report results.db --out report --suite mini\n",
    .options = report_options,
    .most = 1,
    .run = run_report,
};

/* --- mtil export --- */

static const struct option export_options[] = {
    OPTION(TEXT, "csv", NULL, "folder to write one CSV file per table to; required"),
    FILTER_OPTIONS,
    {0},
};

static status run_export(const struct command_call *call, struct error *error)
{
    const char *folder = options_text(call->options, "csv");
    const char *database = call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    if (folder == NULL || *folder == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: export: expected --csv FOLDER, found no folder; see mtil export --help");
    struct query_filter filter = filter_read(call->options);
    struct export_counts counts;
    SCOPED(store_close_at) struct store *store = NULL;
    TRY(store_open_stoppable(&store, database, STORE_READ, call->stop, error));
    TRY(query_check_filter(store, &filter, error));
    TRY(export_csv(store, &filter, folder, &counts, error));
    log_info(call->log, "%zu files with %zu rows in %s", counts.files, counts.rows, folder);
    return OK;
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
    .options = export_options,
    .most = 1,
    .run = run_export,
};
