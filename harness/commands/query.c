/* mtil query: the contents of a results database, for people, programs or papers. */
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "harness/commands/inputs/filter.h"
#include "harness/commands/inputs/test_files.h"
#include "harness/commands/output.h"
#include "harness/run/settings.h"
#include "results/query.h"
#include "results/query/question.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    OUTPUT_COLUMNS_OPTION,
    FILTER_OPTIONS,
    OPTION(TEXT, "by", NULL,
           "settings to show in the leaderboard, to group merges by, or a curve's: policy,merge.every"),
    OPTION(TEXT, "baseline", NULL,
           "row that paper-table compares classifiers with, and cost all; default: Dense (cost: else the first)"),
    OPTION(BOOLEAN, "published", "false",
           "add published numbers: in paper-table, and for SQL as the tables published and published_matrix"),
    OPTION(TEXT, "questions", NULL,
           "a folder of more questions, a file NAME.sql each: a head and SQL (results/README.md)"),
    {0},
};

/* What the command line asks, and the database that it asks. */
struct request {
    const char *what;
    const char *database; /* NULL: only the published numbers */
    struct questions questions;
    struct question own; /* a file, or SQL */
    const struct question *question;
};

static bool has_space(const char *word)
{
    return word[strcspn(word, " \t\r\n\f\v")] != 0;
}

static bool is_database(const char *word)
{
    return file_exists(word) && !file_is_directory(word) && !question_is_file(word);
}

static bool is_question(const struct request *request, const char *word)
{
    return questions_find(&request->questions, word) != NULL || question_is_file(word) || has_space(word);
}

/* The database comes first; the other order is accepted if only the second word can be one. */
static void read_words(struct request *request, const char *const *word, size_t count)
{
    if (count == 2) {
        bool swapped = !is_database(word[0]) &&
                       (is_database(word[1]) || (is_question(request, word[0]) && !is_question(request, word[1])));
        request->database = word[swapped];
        request->what = word[!swapped];
    } else if (count == 1 && is_database(word[0])) {
        request->database = word[0];
    } else if (count == 1) {
        request->what = word[0];
    }
}

/* The question of a name, of a file, or of SQL. */
static status find(struct request *request, struct error *error)
{
    request->question = question_is_file(request->what) ? NULL : questions_find(&request->questions, request->what);
    if (request->question != NULL && *request->question->title != 0)
        return OK;
    request->question = &request->own;
    if (question_is_file(request->what))
        TRY(question_read(&request->own, request->what, error));
    else if (has_space(request->what))
        TRY(question_parse(&request->own, "SQL", "SQL", request->what, error));
    else /* there is none, or it only answers for others */
        return query_unknown(&request->questions, request->what, error);
    return request->own.shown[ON_PAGE] == NULL
               ? OK
               : error_set(error, ERROR_ARGUMENT, "%s: is a section of a page; mtil report --questions FOLDER shows it",
                           request->what);
}

static status read_request(struct request *request, const struct command_call *call, struct error *error)
{
    bool published = options_boolean(call->options, "published");
    TRY(questions_open(&request->questions, options_text(call->options, "questions"), error));
    request->database = published ? NULL : SETTINGS_DATABASE;
    read_words(request, call->arguments, call->argument_count);
    if (request->what == NULL && published)
        request->what = "paper-table";
    if (request->what == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: query: expected [DATABASE] WHAT, found %s; WHAT is a question such as "
                         "leaderboard, or \"SELECT …\"; see mtil query --help",
                         call->argument_count > 0 ? call->arguments[0] : "nothing");
    return find(request, error);
}

/* An option that the question would not read. */
static status check_option(const struct request *request, const char *option, const char *word, struct error *error)
{
    if (option == NULL || question_uses(&request->questions, request->question, word))
        return OK;
    SCOPED(text_free) struct text names = {0};
    for (size_t i = 0; i < request->questions.count; i++) {
        const struct question *other = &request->questions.question[i];
        if (*other->title != 0 && question_uses(&request->questions, other, word))
            text_add(&names, "%s%s", names.size > 0 ? ", " : "", other->name);
    }
    return error_set(error, ERROR_ARGUMENT,
                     "command line: query: --%s is for questions that read %s (%s), found %.200s", option, word,
                     names.data != NULL ? names.data : "", request->what);
}

static status ask(const struct command_call *call, struct store *store, const struct request *request,
                  struct table *table, struct text *note, struct error *error)
{
    struct query_filter filter = filter_read(call->options);
    filter.published = options_boolean(call->options, "published");
    filter.by = options_text(call->options, "by");
    filter.baseline = options_text(call->options, "baseline");
    if (!question_uses(&request->questions, request->question, ":dataset"))
        TRY(check_option(request, filter_given(call->options), "chosen", error));
    TRY(check_option(request, filter.by != NULL ? "by" : NULL, "asked", error));
    TRY(check_option(request, filter.published ? "published" : NULL, "published", error));
    TRY(check_option(request, filter.baseline != NULL ? "baseline" : NULL, ":baseline", error));
    TRY(query_check_filter(store, &filter, error));
    return query_ask(store, &request->questions, request->question, &filter, table, note, error);
}

/* Says that --dataset chose runs alone, where the question is of whole runs. */
static void say_whole_runs(const struct command_call *call, const struct store *store, const struct request *request)
{
    const char *dataset = options_text(call->options, "dataset");
    if (dataset != NULL && *request->question->title != 0 &&
        !question_uses(&request->questions, request->question, ":dataset"))
        log_info(call->log, "%s: %s is of whole runs: --dataset only chooses those that have %s", store_path(store),
                 request->question->name, dataset);
}

static status answer(const struct command_call *call, const struct request *request, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    TRY(request->database != NULL ? store_open_stoppable(&store, request->database, STORE_READ, call->stop, error)
                                  : store_open(&store, "published numbers", STORE_MEMORY, error));
    SCOPED(table_free) struct table table = {0};
    SCOPED(text_free) struct text note = {0};
    SCOPED(test_files_close) struct test_files files = {.store = store};
    TRY(test_files_attach(&files, error));
    TRY(ask(call, store, request, &table, &note, error));
    if (note.size > 0)
        log_info(call->log, "%s: %s", store_path(store), note.data);
    say_whole_runs(call, store, request);
    return output_chosen(call, &table, error);
}

static status run(const struct command_call *call, struct error *error)
{
    struct request request = {0};
    status result = read_request(&request, call, error);
    NEXT(result, answer(call, &request, error));
    question_free(&request.own);
    questions_close(&request.questions);
    return result;
}

const struct command command_query = {
    .name = "query",
    .arguments = "[DATABASE] WHAT",
    .summary = "print the contents of a results database",
    .details =
        "WHAT is a question by name (mtil list questions: leaderboard, paper-table, matrix, ...), a file of\n"
        "SQL (FILE.sql, with a head as each part of results/questions/ has it), or a SELECT in quotes.\n\n"
        "DATABASE defaults to results.db, where mtil run writes; with --published and no DATABASE\n"
        "only published numbers are shown, else those of the runs' settings and orders.\n"
        "transfer: accuracy on tasks not trained yet; average: after each task, on all of them;\n"
        "last: after the last task; forgetting: best accuracy less last; backward_transfer: last less\n"
        "the accuracy right after the task; forward_transfer: accuracy right before the task less\n"
        "zero-shot CLIP's; gain: last less zero-shot. Means over tasks, percent; METRICS.md in results/\n"
        "has the formulas and their sources.\n\n"
        "leaderboard and paper-table show finished runs; ± is the half-width of the 95% interval of the mean\n"
        "over seeds (Student), bold the best and what an exact test does not tell from it. cost has multiples of\n"
        "the baseline's parameters, operations, times and memory: means over the seeds that both have, on one\n"
        "machine. Filters choose runs for these questions, and for a SELECT that reads the table chosen in place\n"
        "of runs; --where filters by any setting of a suite, and --by adds settings to the leaderboard. To list\n"
        "all tables and views: mtil query results.db \"SELECT type, name FROM sqlite_schema\"\n"
        "(results/README.md).\n",
    .example = "  mtil query results.db leaderboard --suite mini\n"
               "  mtil query results.db leaderboard --by merge.every --where training.batch=64 --columns row,last\n"
               "  mtil query results.db paper-table --published --format latex\n"
               "  mtil query settings --run 1,4\n"
               "  mtil query results.db \"SELECT suite, count(*) AS runs FROM chosen GROUP BY suite\" --seed 1,2\n"
               "  mtil query --published\n",
    .options = options,
    .most = 2,
    .run = run,
};
