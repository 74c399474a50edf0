/* mtil query: the contents of a results database, for people, programs or papers. */
#include <ctype.h>
#include <string.h>

#include "core/file.h"
#include "harness/commands/inputs/filter.h"
#include "harness/commands/output.h"
#include "harness/run/settings.h"
#include "results/query.h"
#include "results/query/question.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    FILTER_OPTIONS,
    {.name = "by",
     .type = OPTION_TEXT,
     .help = "settings to show in the leaderboard, or to group merges by: policy,merge.every"},
    {.name = "baseline", .type = OPTION_TEXT, .help = "row that paper-table compares classifiers with; default: Dense"},
    {.name = "published",
     .type = OPTION_BOOLEAN,
     .fallback = "false",
     .help = "add published numbers: in paper-table, and for SQL as the tables published and published_matrix"},
    {.name = "questions",
     .type = OPTION_TEXT,
     .help = "a folder of more questions, files *.sql as results/questions/ has them"},
    {0},
};

/* What the command line asks, and of which database. */
struct request {
    const char *what;
    const char *database; /* NULL: only the published numbers */
    bool published;
    struct questions questions; /* that have names */
    struct question file;       /* where `what` names one */
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

static bool is_sql_file(const char *word)
{
    size_t length = strlen(word);
    return length > 4 && strcmp(word + length - 4, ".sql") == 0;
}

static bool is_question(const struct request *request, const char *word)
{
    return questions_find(&request->questions, word) != NULL || is_sql_file(word) ||
           (has_space(word) && !is_file(word));
}

/* The database comes first; the other order is accepted if only the second argument can be the database. */
static void read_two(struct request *request, const char *first, const char *second)
{
    bool asks = is_question(request, first) && (!is_file(first) || is_sql_file(first));
    bool swapped = asks && !(is_question(request, second) && (!is_file(second) || is_sql_file(second)));
    bool only_second_exists = is_file(second) && !is_file(first);
    swapped = swapped || (only_second_exists && !is_question(request, second));
    request->database = swapped ? second : first;
    request->what = swapped ? first : second;
}

static status read_one(struct request *request, const char *word, struct error *error)
{
    bool asks = is_question(request, word) || (!is_file(word) && !request->published);
    if (!asks && !request->published)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: query: expected what to ask %s, such as leaderboard or \"SELECT …\"; see mtil "
                         "query --help",
                         word);
    request->what = asks ? word : "paper-table";
    request->database = asks ? request->published ? NULL : SETTINGS_DATABASE : word;
    return OK;
}

static status read_request(struct request *request, const struct command_call *call, struct error *error)
{
    request->published = options_boolean(call->options, "published");
    request->what = "paper-table";
    TRY(questions_open(&request->questions, options_text(call->options, "questions"), error));
    if (call->argument_count == 2)
        read_two(request, call->arguments[0], call->arguments[1]);
    else if (call->argument_count == 1)
        TRY(read_one(request, call->arguments[0], error));
    else if (!request->published)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: query: expected [DATABASE] WHAT, found nothing; see mtil query --help");
    if (is_sql_file(request->what))
        TRY(question_read(&request->file, request->what, error));
    return request->file.shown[ON_PAGE] == NULL
               ? OK
               : error_set(error, ERROR_ARGUMENT, "%s: is a section of a page; mtil report --questions FOLDER shows it",
                           request->what);
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

static status ask(const struct command_call *call, struct store *store, const struct request *request,
                  const struct query_filter *filter, struct table *table, struct text *note, struct error *error)
{
    const struct question *question =
        is_sql_file(request->what) ? &request->file : questions_find(&request->questions, request->what);
    if (request->published)
        TRY(published_attach(store, error));
    if (question == NULL && has_space(request->what))
        return ask_sql(call, store, request->what, table, error);
    if (question == NULL || (question != &request->file && *question->title == 0)) /* it only answers for others */
        return query_unknown(&request->questions, request->what, error);
    if (filter->by != NULL && !question_uses(&request->questions, question, "asked"))
        return error_set(error, ERROR_ARGUMENT, "command line: query: --by is for leaderboard and merges, found %.60s",
                         request->what);
    if (filter->baseline != NULL && !question_uses(&request->questions, question, ":baseline"))
        return error_set(error, ERROR_ARGUMENT, "command line: query: --baseline is for paper-table, found %.60s",
                         request->what);
    TRY(query_check_filter(store, filter, error));
    return query_ask(store, &request->questions, question, filter, table, note, error);
}

static status answer(const struct command_call *call, const struct request *request, struct error *error)
{
    struct query_filter filter = filter_read(call->options);
    struct store *store;
    TRY(request->database != NULL ? store_open_stoppable(&store, request->database, STORE_READ, call->stop, error)
                                  : store_open(&store, "published numbers", STORE_MEMORY, error));
    filter.published = request->published;
    filter.by = options_text(call->options, "by");
    filter.baseline = options_text(call->options, "baseline");
    struct table table = {0};
    struct text note = {0};
    status result = ask(call, store, request, &filter, &table, &note, error);
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

static status run(const struct command_call *call, struct error *error)
{
    struct request request = {0};
    status result = read_request(&request, call, error);
    NEXT(result, answer(call, &request, error));
    question_free(&request.file);
    questions_close(&request.questions);
    return result;
}

const struct command command_query = {
    .name = "query",
    .arguments = "[DATABASE] WHAT",
    .summary = "print the contents of a results database",
    .details = "WHAT is a question by name (mtil list questions: leaderboard, paper-table, matrix, ...), a file of\n"
               "SQL (FILE.sql, with a head as those of results/questions/ have it), or a SELECT in quotes.\n\n"
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
