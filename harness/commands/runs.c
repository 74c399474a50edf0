/* mtil runs delete, mtil verify and mtil rerun: commands on the stored runs that a command line numbers. A new subcommand
 * of `mtil runs`: its struct command here, and its address in `subcommands`. `mtil query DATABASE runs` lists the runs. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/text.h"
#include "datasets/formats/strings.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"
#include "harness/run/settings.h"
#include "harness/train/method.h"
#include "results/store.h"
#include "results/store/repeat.h"
#include "results/verify.h"

/* --- Runs by number --- */

/* The runs that a command line names: "3", "1,4", "5-9", each at least 1; ascending, each once. */
struct run_list {
    int64_t *runs;
    size_t count;
};

enum { RUNS_MOST = 1000000 };

static status add(struct run_list *list, int64_t run, struct error *error)
{
    if (list->count == RUNS_MOST)
        return error_set(error, ERROR_ARGUMENT, "command line: expected at most %d runs, found more", RUNS_MOST);
    GROW(list->runs, list->count);
    list->runs[list->count++] = run;
    return OK;
}

/* "5" or "5-9". */
static status add_part(struct run_list *list, char *part, struct error *error)
{
    int64_t first, last;
    char *dash = strchr(part, '-');
    if (dash != NULL)
        *dash = 0;
    bool numbers = parse_integer(part, &first) && parse_integer(dash != NULL ? dash + 1 : part, &last);
    if (!numbers || first < 1 || last < first) {
        if (dash != NULL)
            *dash = '-';
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected runs as 3, 1,4 or 5-9 (mtil query runs has their numbers), found "
                         "\"%.60s\"",
                         part);
    }
    for (int64_t run = first; run <= last; run++)
        TRY(add(list, run, error));
    return OK;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void sort(struct run_list *list)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->runs, list->count, sizeof *list->runs, compare_numbers);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->runs[kept - 1] != list->runs[i])
            list->runs[kept++] = list->runs[i];
    list->count = kept;
}

/* strsep, so that an empty part is an error too. */
static status add_word(struct run_list *list, const char *word, struct error *error)
{
    char *copy = xstrdup(word), *rest = copy;
    status result = OK;
    for (char *part; result == OK && (part = strsep(&rest, ",")) != NULL;)
        result = add_part(list, part, error);
    free(copy);
    return result;
}

/* The caller frees, also after a failure. */
static status run_list_read(struct run_list *list, const char *const *words, size_t count, struct error *error)
{
    *list = (struct run_list){0};
    for (size_t i = 0; i < count; i++)
        TRY(add_word(list, words[i], error));
    sort(list);
    return OK;
}

static void run_list_free(struct run_list *list)
{
    free(list->runs);
    *list = (struct run_list){0};
}

/* --- mtil runs delete: a run's rows in all tables, and its files --- */

static const struct option delete_options[] = {
    {.name = "yes", .type = OPTION_BOOLEAN, .fallback = "no", .help = "do not ask"}, {0}};

/* A run to remove. */
struct doomed {
    struct run_row row;
    struct run_files files;
};

struct removal {
    struct store *store;
    struct run_list list;
    struct doomed *doomed; /* [list.count], the first of them prepared */
    size_t prepared;
};

/* All are locked before the first is removed, so that either all or none are removed. A missing run may have been
 * removed by an earlier call of the command. */
static status prepare(const struct command_call *call, struct removal *removal, struct error *error)
{
    removal->doomed = xcalloc(removal->list.count, sizeof *removal->doomed);
    for (size_t i = 0; i < removal->list.count; i++) {
        struct doomed *doomed = &removal->doomed[removal->prepared];
        int64_t run = removal->list.runs[i];
        *doomed = (struct doomed){.files.descriptor = -1};
        status result = store_read_run(removal->store, run, &doomed->row, error);
        if (result == ERROR_ARGUMENT && removal->list.count > 1) {
            log_info(call->log, "%s: there is no run %" PRId64, call->arguments[0], run);
            continue;
        }
        removal->prepared++;
        TRY(result);
        TRY(store_run_lock(removal->store, run, error));
        TRY(run_files_find(&doomed->files, doomed->row.folder, doomed->row.seed, error));
    }
    return removal->prepared > 0
               ? OK
               : error_set(error, ERROR_ARGUMENT, "%s: none of these runs is there", call->arguments[0]);
}

static void release(struct removal *removal)
{
    for (size_t i = 0; i < removal->prepared; i++) {
        run_row_free(&removal->doomed[i].row);
        run_files_close(&removal->doomed[i].files);
    }
    free(removal->doomed);
    run_list_free(&removal->list);
    store_close(removal->store);
}

static void show_run(const struct command_call *call, const struct doomed *doomed)
{
    const struct run_row *row = &doomed->row;
    const struct run_files *files = &doomed->files;
    bool lost = files->folder == NULL && row->folder != NULL;
    log_info(call->log, "run %" PRId64 ": %s, seed %" PRId64 ", %s; %zu file%s, %.1f MB%s%s%s", row->run, row->suite,
             row->seed, row->status, files->count, files->count == 1 ? "" : "s", (double)files->bytes / 1e6,
             row->folder != NULL ? " in " : "", row->folder != NULL ? row->folder : "",
             lost ? ", which is not there" : "");
    if (files->others > 0)
        log_info(call->log, "%s: %zu entr%s that no run wrote stay%s", files->folder, files->others,
                 files->others == 1 ? "y" : "ies", files->others == 1 ? "s" : "");
}

/* Waits for input or a stop request; a signal ends the wait. */
static bool answer_is_yes(const struct command_call *call)
{
    char line[16] = "";
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!stop_requested(call->stop) && poll(&input, 1, -1) < 0 && errno == EINTR)
        ;
    return !stop_requested(call->stop) && fgets(line, sizeof line, stdin) != NULL &&
           (strcmp(line, "y\n") == 0 || strcmp(line, "yes\n") == 0);
}

static status ask(const struct command_call *call, const struct removal *removal, bool *agreed, struct error *error)
{
    *agreed = options_boolean(call->options, "yes");
    if (*agreed)
        return OK;
    if (!isatty(STDIN_FILENO))
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: runs delete asks for confirmation, but standard input is no terminal: add --yes");
    for (size_t i = 0; i < removal->prepared; i++)
        show_run(call, &removal->doomed[i]);
    log_info(call->log, "databases that mtil merge-db joined with this one lose the same files");
    fprintf(stderr, "Remove %s from %s for good? [y/N] ", removal->prepared == 1 ? "it" : "them", call->arguments[0]);
    fflush(stderr);
    *agreed = answer_is_yes(call);
    if (stop_requested(call->stop))
        return error_set(error, ERROR_STOPPED, "nothing was removed");
    return OK;
}

static status delete_run(const struct command_call *call, struct store *store, struct doomed *doomed,
                         struct error *error)
{
    int64_t run = doomed->row.run;
    TRY(run_files_remove(&doomed->files, error));
    TRY(store_run_erase(store, run, error));
    fprintf(call->out, "run %" PRId64 " removed: %zu file%s, %.1f MB\n", run, doomed->files.count,
            doomed->files.count == 1 ? "" : "s", (double)doomed->files.bytes / 1e6);
    if (doomed->files.folder == NULL && doomed->row.folder != NULL)
        log_warn(call->log, "%s: the folder of run %" PRId64 " is not there; files that lie elsewhere stay",
                 doomed->row.folder, run);
    return OK;
}

static status delete_runs(const struct command_call *call, struct removal *removal, struct error *error)
{
    bool agreed;
    TRY(store_open(&removal->store, call->arguments[0], STORE_WRITE, error));
    TRY(run_list_read(&removal->list, call->arguments + 1, call->argument_count - 1, error));
    TRY(prepare(call, removal, error));
    TRY(ask(call, removal, &agreed, error));
    if (!agreed)
        log_info(call->log, "nothing was removed");
    for (size_t i = 0; agreed && i < removal->prepared; i++) {
        if (stop_requested(call->stop))
            return error_set(error, ERROR_STOPPED, "stopped after %zu of %zu runs; the same command removes the others",
                             i, removal->prepared);
        TRY(delete_run(call, removal->store, &removal->doomed[i], error));
    }
    return OK;
}

static status run_delete(const struct command_call *call, struct error *error)
{
    struct removal removal = {0};
    if (!file_exists(call->arguments[0]))
        return error_set(error, ERROR_IO, "%s: there is no such file", call->arguments[0]);
    status result = delete_runs(call, &removal, error);
    release(&removal);
    return result;
}

static const struct command command_runs_delete = {
    .name = "runs delete",
    .arguments = "DATABASE RUN...",
    .summary = "remove runs with all their rows and files",
    .details =
        "RUN is a number (mtil query DATABASE runs), a list or a range: 3, 1,4 or 5-9. Shows what would be removed\n"
        "and asks first. From a run's folder, only files that runs write are removed, and the folder itself if it\n"
        "is then empty; databases that mtil merge-db joined share these files. A run in progress is not removed. "
        "After\n"
        "an interruption, give the same command again. A removed run starts from the beginning when it is requested\n"
        "again.\n",
    .example = "  mtil runs delete results.db 3\n  mtil runs delete results.db 5-9 --yes\n",
    .options = delete_options,
    .least = 2,
    .most = SIZE_MAX,
    .run = run_delete,
};

/* --- mtil verify --- */

static const struct option verify_options[] = {OUTPUT_FORMAT_OPTION, {0}};

static const char *cells_of(const char *name)
{
    const struct method *method = NULL;
    const struct head *head;
    for (size_t i = 0; (method = method_at(i)) != NULL && strcmp(method->name, name) != 0;)
        i++;
    if (method != NULL && method->head != NULL && head_find(&head, method->head, NULL) == OK && !head->of_texts)
        return "trained";
    if (method != NULL && method->own != NULL)
        return "own";
    if (method != NULL && method->alone)
        return "diagonal";
    if (method != NULL && method->joint)
        return "last";
    bool learns = method == NULL || method->options != NULL || method->end_task != NULL ||
                  method_groups(method, NULL) != GROUPS_NONE;
    return learns ? "all" : "zero-shot";
}

/* The examples that people see of each kind of fault. */
enum { EXAMPLES = 3, WHAT = 1 };

/* Counts the faults of each kind, and takes the first of them. */
static void sum_up(const struct table *faults, struct table *kinds, struct table *examples)
{
    table_add_column(kinds, &(struct table_column){.title = "what"});
    table_add_column(kinds, &(struct table_column){.title = "faults"});
    for (size_t column = 0; column < faults->columns; column++)
        table_add_column(examples, &faults->column[column]);
    for (size_t row = 0; row < table_rows(faults); row++) {
        size_t kind = 0;
        const char *what = table_cell_at(faults, row, WHAT)->text;
        while (kind < table_rows(kinds) && strcmp(table_cell_at(kinds, kind, 0)->text, what) != 0)
            kind++;
        if (kind == table_rows(kinds)) {
            table_add_text(kinds, what);
            table_add_integer(kinds, 0);
        }
        if (kinds->cell[kind * kinds->columns + 1].integer++ < EXAMPLES)
            for (size_t column = 0; column < faults->columns; column++)
                table_add_cell(examples, table_cell_at(faults, row, column));
    }
}

/* People see a line per kind and some examples, programs and --verbose all of them. */
static void show_faults(const struct command_call *call, const struct table *faults)
{
    struct table kinds = {0}, examples = {0};
    if (strcmp(options_text(call->options, "format"), "table") != 0) {
        output_table(call, faults);
        return;
    }
    sum_up(faults, &kinds, &examples);
    output_table(call, &kinds);
    fputs("\n", call->out);
    output_table(call, call->verbose ? faults : &examples);
    if (!call->verbose && table_rows(&examples) < table_rows(faults))
        log_info(call->log, "%zu of %zu faults are shown; --verbose shows all", table_rows(&examples),
                 table_rows(faults));
    table_free(&kinds);
    table_free(&examples);
}

static status show(const struct command_call *call, const char *database, const struct verification *verification,
                   struct error *error)
{
    size_t faults = table_rows(&verification->faults);
    if (faults > 0)
        show_faults(call, &verification->faults);
    else
        output_table(call, &verification->checked);
    if (verification->missing_files > 0)
        log_info(call->log, "%s: %zu file%s of its runs cannot be found any more, and %s not checked", database,
                 verification->missing_files, verification->missing_files == 1 ? "" : "s",
                 verification->missing_files == 1 ? "was" : "were");
    if (faults == 0)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: %zu thing%s not hold; see above", database, faults,
                     faults == 1 ? " does" : "s do");
}

/* Runs alone are those of the default database. */
static bool names_database(const char *word)
{
    return word[strspn(word, "0123456789,-")] != 0 || file_exists(word);
}

static status run_verify(const struct command_call *call, struct error *error)
{
    struct run_list list;
    struct store *store;
    size_t given = call->argument_count > 0 && names_database(call->arguments[0]);
    const char *database = given > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    status result = run_list_read(&list, call->arguments + given, call->argument_count - given, error);
    NEXT(result, store_open(&store, database, STORE_READ, error));
    if (result == OK) {
        struct verification verification = {
            .runs = list.runs, .count = list.count, .cells = cells_of, .incidental = settings_incidental};
        result = verify_database(store, &verification, error);
        NEXT(result, show(call, database, &verification, error));
        verification_free(&verification);
        store_close(store);
    }
    run_list_free(&list);
    return result;
}

const struct command command_verify = {
    .name = "verify",
    .arguments = "[DATABASE] [RUN...]",
    .summary = "check the consistency of a results database",
    .details =
        "Compares rows with one another, with the settings and with stored files, and tables and views with those of\n"
        "this program. Inconsistencies are counted by kind, with examples; all of them are rows with --verbose "
        "and\n"
        "in the other formats. The exit status is then 1. RUN is a number, a list or a range: 3, 1,4 or 5-9; by "
        "default\n"
        "all runs are checked. Nothing is written.\n"
        "Rows that were changed alike, such as an image's prediction, its bit and the count of right ones, contradict\n"
        "nothing: mtil rerun computes a run again and compares every number.\n",
    .example = "  mtil verify results.db\n  mtil verify results.db 5-9 --format json\n",
    .options = verify_options,
    .most = SIZE_MAX,
    .run = run_verify,
};

/* --- mtil rerun --- */

static const struct option rerun_options[] = {
    OUTPUT_FORMAT_OPTION,
    ALLOW_COMMANDS_OPTION,
    {.name = "out", .type = OPTION_TEXT, .help = "database to keep the repetition in; default: none"},
    {0}};

struct rerun {
    const struct command_call *call;
    struct store *store, *repetition;
    struct run_row run;
    char *folder, *database;    /* of the repetition; the folder is removed once it is complete */
    struct temporary temporary; /* the folder, without a database to keep */
    struct suite *suite;
};

static void close_rerun(struct rerun *r)
{
    suite_destroy(r->suite);
    store_close(r->repetition);
    store_close(r->store);
    run_row_free(&r->run);
    temporary_remove(&r->temporary);
    free(r->folder);
    free(r->database);
}

/* Beside a database that is kept, so that the same command resumes the repetition. */
static status make_folder(struct rerun *r, struct error *error)
{
    const char *parent = getenv("TMPDIR"), *out = options_text(r->call->options, "out");
    if (out != NULL) {
        r->folder = path_format("%s.rerun", out);
        r->database = xstrdup(out);
        return OK;
    }
    parent = parent != NULL && parent[0] != 0 ? parent : "/tmp";
    char *target = path_format("%s/mtil-rerun", parent);
    temporary_clear(parent);
    status result = temporary_create_folder(&r->temporary, target, error);
    free(target);
    TRY(result);
    r->folder = xstrdup(r->temporary.path);
    r->database = path_format("%s/results.db", r->folder);
    return OK;
}

/* The given words, then the places of the repetition; the words must not change what is computed. */
static status read_suite(struct rerun *r, struct error *error)
{
    const struct command_call *call = r->call;
    struct strings words = {0};
    strings_copy(&words, call->arguments + 2, call->argument_count - 2);
    strings_format(&words, "run.folder=%s", r->folder);
    strings_format(&words, "run.database=%s", r->database);
    strings_format(&words, "run.checkpoints=none");
    status result = suite_parse_stored(&r->suite, r->run.suite_text, r->run.suite, settings_sections,
                                       (const char *const *)words.items, words.count, error);
    NEXT(result, suite_words_consent(call, r->suite, &words, error));
    strings_free(&words);
    return result;
}

static status read_run(struct rerun *r, struct error *error)
{
    struct run_list list;
    status result = run_list_read(&list, r->call->arguments + 1, 1, error);
    if (result == OK && list.count != 1)
        result = error_set(error, ERROR_ARGUMENT, "command line: rerun: expected one run, found %zu", list.count);
    NEXT(result, store_open(&r->store, r->call->arguments[0], STORE_READ, error));
    NEXT(result, store_read_run(r->store, list.runs[0], &r->run, error));
    run_list_free(&list);
    TRY(result);
    return strcmp(r->run.status, "finished") == 0
               ? OK
               : error_set(error, ERROR_ARGUMENT, "%s: expected a finished run, found run %" PRId64 " %s",
                           r->call->arguments[0], r->run.run, r->run.status);
}

static status remove_files(const struct rerun *r, const struct run *run, struct error *error)
{
    struct run_files files;
    char *folder = run_folder(run);
    status result = run_files_find(&files, folder, r->run.seed, error);
    NEXT(result, run_files_remove(&files, error));
    run_files_close(&files);
    rmdir(r->folder); /* unless another repetition has files there */
    free(folder);
    return result;
}

/* An ordinary run, in a database of its own. */
static status repeat(struct rerun *r, int64_t *id, struct error *error)
{
    const struct command_call *call = r->call;
    struct run *run;
    TRY(store_open(&r->repetition, r->database, STORE_WRITE, error));
    TRY(run_open(&run, r->suite, (uint64_t)r->run.seed, call->log, error));
    struct sequence sequence = {.run = run, .store = r->repetition, .progress = call->progress, .stop = call->stop};
    status result = sequence_run(&sequence, error);
    progress_end(call->progress);
    *id = sequence.id;
    NEXT(result, remove_files(r, run, error));
    run_close(run);
    if (result == OK && sequence.finished_before)
        result = error_set(error, ERROR_ARGUMENT, "%s: already has this run; name another database", r->database);
    return result;
}

static status compare(struct rerun *r, int64_t run, struct error *error)
{
    struct repeat both = {.first = r->store, .first_run = r->run.run, .second = r->repetition, .second_run = run};
    struct table table = {0};
    status result = repeat_compare(&both, &table, error);
    if (result == OK)
        output_table(r->call, &table);
    if (result == OK && both.machines.size > 0)
        log_info(r->call->log, "run %" PRId64 " was computed under other conditions: %s", r->run.run,
                 both.machines.data);
    if (result == OK && !both.agrees)
        result = error_set(error, ERROR_FORMAT, "%s: the rows of run %" PRId64 " differ from those of its repetition",
                           r->call->arguments[0], r->run.run);
    text_free(&both.machines);
    table_free(&table);
    return result;
}

static status run_rerun(const struct command_call *call, struct error *error)
{
    struct rerun r = {.call = call, .temporary = {.lock = -1}};
    int64_t run = 0;
    status result = read_run(&r, error);
    NEXT(result, make_folder(&r, error));
    NEXT(result, read_suite(&r, error));
    NEXT(result, repeat(&r, &run, error));
    if (result == ERROR_STOPPED && r.temporary.path == NULL)
        error_context(error, "the same command resumes the repetition");
    NEXT(result, compare(&r, run, error));
    close_rerun(&r);
    return result;
}

const struct command command_rerun = {
    .name = "rerun",
    .arguments = "DATABASE RUN [key=value…]",
    .summary = "repeat a run with its stored settings and compare the results bit for bit",
    .details = "Computes the run again with its stored settings and seed, in a temporary folder, or, with\n"
               "--out, in OUT.rerun, where the same command resumes it after a stop, and\n"
               "compares all rows: accuracies, predictions, losses, routing, merges. If some differ,\n"
               "the first of each table is shown and the exit status is 1. Files are expected at their old\n"
               "paths; key=value gives other paths (data.root=…, model.weights=…) or changes how the run is\n"
               "computed (run.threads=2).\n",
    .example = "  mtil rerun results.db 3\n",
    .options = rerun_options,
    .least = 2,
    .most = SIZE_MAX,
    .run = run_rerun,
};

/* --- mtil runs --- */

static const struct command *const subcommands[] = {&command_runs_delete, NULL};

const struct command command_runs = {
    .name = "runs",
    .arguments = "SUBCOMMAND",
    .summary = "remove runs from a results database",
    .example = "  mtil runs delete results.db 3\n",
    .subcommands = subcommands,
};
