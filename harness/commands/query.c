/* mtil query: what a results database holds, in a form for people, programs or papers. */
#include <string.h>

#include "harness/commands/output.h"
#include "results/query.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    {.name = "run", .type = OPTION_INTEGER, .minimum = 1, .maximum = 1e15, .help = "only the run of this number"},
    {.name = "suite", .type = OPTION_TEXT, .help = "only runs of this suite"},
    {.name = "setting", .type = OPTION_TEXT, .help = "only runs of this setting, as in the suite: full_shot, few_shot"},
    {.name = "method", .type = OPTION_TEXT, .help = "only runs of this method"},
    {.name = "policy", .type = OPTION_TEXT, .help = "only runs of this merge policy"},
    {.name = "selector", .type = OPTION_TEXT, .help = "only runs of this selector"},
    {.name = "status",
     .type = OPTION_CHOICE,
     .choices = "running|stopped|finished|failed",
     .help = "only runs in this state"},
    {.name = "seed", .type = OPTION_INTEGER, .help = "only runs of this seed"},
    {.name = "dataset", .type = OPTION_TEXT, .help = "only this task"},
    {.name = "since", .type = OPTION_TEXT, .help = "only runs started at this time (UTC) or later: 2026-01-31T12:00"},
    {.name = "before", .type = OPTION_TEXT, .help = "only runs started before this time"},
    {0},
};

static struct query_filter read_filter(const struct options *given)
{
    return (struct query_filter){
        .run = options_given(given, "run") ? options_integer(given, "run") : 0,
        .suite = options_text(given, "suite"),
        .setting = options_text(given, "setting"),
        .method = options_text(given, "method"),
        .policy = options_text(given, "policy"),
        .selector = options_text(given, "selector"),
        .status = options_text(given, "status"),
        .dataset = options_text(given, "dataset"),
        .since = options_text(given, "since"),
        .before = options_text(given, "before"),
        .has_seed = options_given(given, "seed"),
        .seed = options_given(given, "seed") ? options_integer(given, "seed") : 0,
    };
}

static bool is_sql(const char *what)
{
    return what[strcspn(what, " \t\n")] != 0;
}

static status run(const struct command_call *call, struct error *error)
{
    const char *what = call->arguments[0];
    struct query_filter filter = read_filter(call->options);
    struct store *store;
    TRY(store_open(&store, call->arguments[1], STORE_READ, error));
    struct table table = {0};
    status result =
        is_sql(what) ? query_sql(store, what, &table, error) : query_named(store, what, &filter, &table, error);
    if (result == OK)
        result = output_table(call, &table, error);
    table_free(&table);
    store_close(store);
    return result;
}

const struct command command_query = {
    .name = "query",
    .arguments = "WHAT DATABASE",
    .summary = "print what a results database holds",
    .details = "WHAT is metrics, matrix, leaderboard, experts, events, selector or runs, or a SELECT\n"
               "of your own in quotes.\n",
    .example = "  mtil query leaderboard results.sqlite --suite mini --format markdown\n"
               "  mtil query \"SELECT suite, count(*) AS runs FROM runs GROUP BY suite\" results.sqlite\n",
    .options = options,
    .least = 2,
    .most = 2,
    .run = run,
};
