/* mtil query: the contents of a results database, for people, programs or papers. */
#include <ctype.h>
#include <string.h>

#include "core/file.h"
#include "harness/commands/inputs/filter.h"
#include "harness/commands/output.h"
#include "harness/config/settings.h"
#include "results/query.h"
#include "results/query/published.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    FILTER_OPTIONS,
    {.name = "by",
     .type = OPTION_TEXT,
     .help = "settings to show in the leaderboard, or to group merges by: merge.every,training.batch"},
    {.name = "baseline", .type = OPTION_TEXT, .help = "row that paper-table compares classifiers with; default: Dense"},
    {.name = "published",
     .type = OPTION_BOOLEAN,
     .fallback = "false",
     .help = "add published numbers: in paper-table, and for SQL as the tables published and published_matrix"},
    {0},
};

/* What the command line asks, and of which database. */
struct question {
    const char *what;
    const char *database; /* NULL: only the published numbers */
    bool published;
};

static bool has_space(const char *word)
{
    while (*word != 0 && !isspace((unsigned char)*word))
        word++;
    return *word != 0;
}

/* A folder may have the name of a question ("runs"); it is never the database. */
static bool is_file(const char *word)
{
    return file_exists(word) && !file_is_directory(word);
}

static bool is_question(const char *word)
{
    return query_exists(word) || (has_space(word) && !is_file(word));
}

/* The database comes first; the other order is accepted if only the second argument can be the database. */
static void read_two(struct question *question, const char *first, const char *second)
{
    bool swapped = is_question(first) && !is_file(first) && !(is_question(second) && !is_file(second));
    bool only_second_exists = is_file(second) && !is_file(first);
    swapped = swapped || (only_second_exists && !is_question(second));
    question->database = swapped ? second : first;
    question->what = swapped ? first : second;
}

static status read_one(struct question *question, const char *word, struct error *error)
{
    bool asks = is_question(word) || (!is_file(word) && !question->published);
    if (!asks && !question->published)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: query: expected what to ask %s, such as leaderboard or \"SELECT …\"; see mtil "
                         "query --help",
                         word);
    question->what = asks ? word : "paper-table";
    question->database = asks ? question->published ? NULL : SETTINGS_DATABASE : word;
    return OK;
}

static status read_question(struct question *question, const struct command_call *call, struct error *error)
{
    question->published = options_boolean(call->options, "published");
    question->what = "paper-table";
    if (call->argument_count == 2)
        read_two(question, call->arguments[0], call->arguments[1]);
    else if (call->argument_count == 1)
        TRY(read_one(question, call->arguments[0], error));
    else if (!question->published)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: query: expected [DATABASE] WHAT, found nothing; see mtil query --help");
    return OK;
}

static status ask_sql(const struct command_call *call, struct store *store, const char *sql, struct table *table,
                      struct error *error)
{
    const char *filter = filter_given(call->options);
    if (filter != NULL)
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: query: --%s selects runs for the named queries only, found SQL: write the condition there, "
            "with WHERE",
            filter);
    return query_sql(store, sql, table, error);
}

static status ask(const struct command_call *call, struct store *store, const struct question *question,
                  const struct query_filter *filter, struct table *table, struct error *error)
{
    if (question->published)
        TRY(published_attach(store, error));
    if (filter->by != NULL && strcmp(question->what, "leaderboard") != 0 && strcmp(question->what, "merges") != 0)
        return error_set(error, ERROR_ARGUMENT, "command line: query: --by is for leaderboard and merges, found %.60s",
                         question->what);
    if (filter->baseline != NULL && strcmp(question->what, "paper-table") != 0)
        return error_set(error, ERROR_ARGUMENT, "command line: query: --baseline is for paper-table, found %.60s",
                         question->what);
    if (has_space(question->what))
        return ask_sql(call, store, question->what, table, error);
    if (query_exists(question->what))
        TRY(query_check_filter(store, filter, error));
    return query_named(store, question->what, filter, table, error);
}

static status run(const struct command_call *call, struct error *error)
{
    struct question question = {0};
    struct query_filter filter = filter_read(call->options);
    struct store *store;
    TRY(read_question(&question, call, error));
    TRY(question.database != NULL ? store_open_stoppable(&store, question.database, STORE_SNAPSHOT, call->stop, error)
                                  : store_open_memory(&store, "published numbers", error));
    filter.published = question.published;
    filter.by = options_text(call->options, "by");
    filter.baseline = options_text(call->options, "baseline");
    struct table table = {0};
    status result = ask(call, store, &question, &filter, &table, error);
    struct text note = {0};
    if (query_exists(question.what))
        NEXT(result, query_note(store, question.what, &filter, &note, error));
    if (result == OK && note.size > 0)
        log_info(call->log, "%s: %s", store_path(store), note.data);
    else if (result == OK && table_rows(&table) == 0 && filter_given(call->options) != NULL)
        log_info(call->log, "%s: no run passes these filters, or the runs that do have no such rows",
                 store_path(store));
    NEXT(result, output_table(call, &table, error));
    text_free(&note);
    table_free(&table);
    store_close(store);
    return result;
}

const struct command command_query = {
    .name = "query",
    .arguments = "[DATABASE] WHAT",
    .summary = "print the contents of a results database",
    .details = "WHAT is one of the following, or a SELECT of your own in quotes:\n\n"
               "  runs         all runs: suite, settings, seed, state, dates\n"
               "  metrics      transfer, average, last and more of each run\n"
               "  tasks        metrics of each task\n"
               "  classes      accuracy on each class\n"
               "  confusion    true task x task of the predicted class, where classes of several tasks compete; with "
               "--dataset\n"
               "               true class x predicted class\n"
               "  similarity   mean cosine between the class names of tasks that one dataset was cut into (split_by)\n"
               "  matrix       accuracy on each task after each task\n"
               "  leaderboard  configurations by their mean over seeds\n"
               "  paper-table  methods x datasets: Transfer, Average and Last, as papers print them;\n"
               "               of classifiers (where there are no others, or with --method supervised):\n"
               "               accuracy, and the difference from the row Dense, or --baseline\n"
               "  experts      how often each expert was chosen\n"
               "  blocks       frozen experts of each block after the last task, those that it added, and\n"
               "               their mean over the first, middle and last third of a tower\n"
               "  class-experts  how often images of each class chose each expert in the last test;\n"
               "               with --dataset a row per block and class, a column per expert, percent\n"
               "  events       merges, skips and freezes\n"
               "  merges       use of merged experts, loss, distance; --by merge.policy: a row per policy,\n"
               "               and whether runs that use them more have better Transfer\n"
               "  selector     right routers and accuracy of each selector: a run's own, and those of mtil eval\n"
               "  routers      the router confusion: true task x chosen router\n"
               "  inputs       what each run was computed from: files, images, digests of their contents\n"
               "  sessions     programs and machines that worked on each run\n"
               "  digest       one digest of all accuracies, to compare databases\n"
               "  time         time by kind of work\n\n"
               "DATABASE defaults to results.db, where mtil run writes; with --published and no DATABASE\n"
               "only published numbers are shown, else those of the runs' settings and orders.\n"
               "transfer: accuracy on tasks not trained yet; average: after all tasks, trained or not;\n"
               "last: after the last task; forgetting: best accuracy less last; backward_transfer: last less\n"
               "the accuracy right after the task; forward_transfer: accuracy right before the task less\n"
               "zero-shot CLIP's; gain: last less zero-shot. Means over tasks, percent; METRICS.md in results/\n"
               "has the formulas and their sources.\n\n"
               "leaderboard and paper-table show finished runs; ± is the half-width of the 95% interval\n"
               "of the mean over seeds (Student), sd the standard deviation over seeds. Filters select runs for\n"
               "these queries, not for a SELECT; --where filters by any setting of a suite, and --by adds\n"
               "settings to the leaderboard. To list all tables and views:\n"
               "mtil query results.db \"SELECT type, name FROM sqlite_schema\"; see results/README.md.\n",
    .example = "  mtil query results.db leaderboard --suite mini\n"
               "  mtil query results.db leaderboard --by merge.every --where training.batch=64\n"
               "  mtil query results.db paper-table --published --format latex\n"
               "  mtil query results.db \"SELECT suite, count(*) AS runs FROM runs GROUP BY suite\"\n"
               "  mtil query --published\n",
    .options = options,
    .least = 0,
    .most = 2,
    .run = run,
};
