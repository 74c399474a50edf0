/* mtil rerun: repeats a run from what the database stores. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/formats/strings.h"
#include "harness/commands/output.h"
#include "harness/commands/run_list.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"
#include "results/store/repeat.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    {.name = "out", .type = OPTION_TEXT, .help = "database to keep the repetition in; default: none"},
    {0}};

struct rerun {
    const struct command_call *call;
    struct store *store, *repetition;
    struct run_row run;
    char *folder, *database; /* of the repetition; the folder is removed */
    struct suite *suite;
};

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void close_rerun(struct rerun *r)
{
    suite_destroy(r->suite);
    store_close(r->repetition);
    store_close(r->store);
    run_row_free(&r->run);
    if (r->folder != NULL)
        nftw(r->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(r->folder);
    free(r->database);
}

static status make_folder(struct rerun *r, struct error *error)
{
    const char *parent = getenv("TMPDIR"), *out = options_text(r->call->options, "out");
    char *folder = path_format("%s/mtil-rerun-XXXXXX", parent != NULL && parent[0] != 0 ? parent : "/tmp");
    if (mkdtemp(folder) == NULL) {
        status result = error_errno(error, errno, "%s: cannot be created", folder);
        free(folder);
        return result;
    }
    r->folder = folder;
    r->database = out != NULL ? xstrdup(out) : path_format("%s/results.db", folder);
    return OK;
}

/* The given words, then the places of the repetition; the words must not change what is computed. */
static status read_suite(struct rerun *r, struct error *error)
{
    const struct command_call *call = r->call;
    struct strings words = {0};
    strings_copy(&words, call->arguments + 2, call->argument_count - 2);
    strings_format(&words, "run.folder=%s/runs", r->folder);
    strings_format(&words, "run.database=%s", r->database);
    strings_format(&words, "run.checkpoints=none");
    status result = suite_parse_stored(&r->suite, r->run.suite_text, r->run.suite, settings_sections,
                                       (const char *const *)words.items, words.count, error);
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

static status run(const struct command_call *call, struct error *error)
{
    struct rerun r = {.call = call};
    int64_t run = 0;
    status result = read_run(&r, error);
    NEXT(result, make_folder(&r, error));
    NEXT(result, read_suite(&r, error));
    NEXT(result, repeat(&r, &run, error));
    NEXT(result, compare(&r, run, error));
    close_rerun(&r);
    return result;
}

const struct command command_rerun = {
    .name = "rerun",
    .arguments = "DATABASE RUN [key=value…]",
    .summary = "repeat a run with its stored settings and compare the results bit for bit",
    .details = "Computes the run again with its stored settings and seed, in a temporary folder, and\n"
               "compares all rows: accuracies, predictions, losses, routing, merges. If some differ,\n"
               "the first of each table is shown and the exit status is 1. Files are expected at their old\n"
               "paths; key=value gives other paths (data.root=…, model.weights=…) or changes how the run is\n"
               "computed (run.threads=2).\n",
    .example = "  mtil rerun results.db 3\n",
    .options = options,
    .least = 2,
    .most = SIZE_MAX,
    .run = run,
};
