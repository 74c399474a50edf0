/* mtil query: what a results database holds, in a form for people, programs or papers. */
#include <string.h>

#include "harness/commands/filter.h"
#include "harness/commands/output.h"
#include "results/query.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    FILTER_OPTIONS,
    {0},
};

static bool is_sql(const char *what)
{
    return what[strcspn(what, " \t\n")] != 0;
}

static status run(const struct command_call *call, struct error *error)
{
    const char *what = call->arguments[0];
    struct query_filter filter = filter_read(call->options);
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
