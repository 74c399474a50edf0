/* mtil report: a results database as one page, and its figures for papers. */
#include "results/report.h"

#include <stdlib.h>

#include "harness/commands/command.h"
#include "harness/commands/inputs/filter.h"
#include "harness/run/settings.h"

static const struct option options[] = {
    {.name = "out", .type = OPTION_TEXT, .help = "folder to write; required"},
    {.name = "by",
     .type = OPTION_LIST,
     .fallback = "policy",
     .help = "what to compare, as in mtil compare: policy, method, merge.every, …"},
    {.name = "best",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = REPORT_BEST,
     .fallback = "6",
     .help = "number of configurations drawn, those with the highest Last"},
    {.name = "figures", .type = OPTION_BOOLEAN, .fallback = "true", .help = "write the figures for papers too"},
    {.name = "questions",
     .type = OPTION_TEXT,
     .help = "a folder of more sections of the page, files *.sql as results/sections/ has them"},
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
    struct store *store;
    TRY(store_open_stoppable(&store, call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE, STORE_READ,
                             call->stop, error));
    status result = report_write(store, request, &outcome, error);
    store_close(store);
    if (result == OK)
        log_outcome(call, request, &outcome);
    return result;
}

static status run(const struct command_call *call, struct error *error)
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
    const char **by = options_list_items(call->options, "by", &request.by_count);
    request.by = by;
    status result = write_report(call, &request, error);
    free((void *)by);
    return result;
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
    .options = options,
    .most = 1,
    .run = run,
};
