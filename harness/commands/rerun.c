/* mtil rerun: repeats a stored run and compares the results. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file_writer.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/commands/inputs/run_list.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/run/sequence.h"
#include "harness/run/settings.h"
#include "results/store/repeat.h"

static const struct option rerun_options[] = {
    OUTPUT_FORMAT_OPTION,
    ALLOW_COMMANDS_OPTION,
    OPTION(TEXT, "out", NULL, "database to keep the repetition in; default: none"),
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
    OWNED char *target = path_format("%s/mtil-rerun", parent);
    temporary_clear(parent);
    TRY(temporary_create_folder(&r->temporary, target, error));
    r->folder = xstrdup(r->temporary.path);
    r->database = path_format("%s/results.db", r->folder);
    return OK;
}

/* The given words, then the places of the repetition; the words must not change what is computed. */
static status read_suite(struct rerun *r, struct error *error)
{
    const struct command_call *call = r->call;
    SCOPED(strings_free) struct strings words = {0};
    strings_copy(&words, call->arguments + 2, call->argument_count - 2);
    strings_format(&words, "run.folder=%s", r->folder);
    strings_format(&words, "run.database=%s", r->database);
    strings_format(&words, "run.checkpoints=none");
    TRY(suite_parse_stored(&r->suite, r->run.suite_text, r->run.suite, settings_sections,
                           (const char *const *)words.items, words.count, error));
    return suite_words_consent(call, r->suite, &words, error);
}

static status read_run(struct rerun *r, struct error *error)
{
    SCOPED(run_list_free) struct run_list list = {0};
    TRY(run_list_read(&list, r->call->arguments + 1, 1, error));
    if (list.count != 1)
        return error_set(error, ERROR_ARGUMENT, "command line: rerun: expected one run, found %zu", list.count);
    TRY(store_open(&r->store, r->call->arguments[0], STORE_READ, error));
    TRY(store_read_run(r->store, list.runs[0], &r->run, error));
    return strcmp(r->run.status, "finished") == 0
               ? OK
               : error_set(error, ERROR_ARGUMENT, "%s: expected a finished run, found run %" PRId64 " %s",
                           r->call->arguments[0], r->run.run, r->run.status);
}

static status remove_files(const struct rerun *r, const struct run *run, struct error *error)
{
    struct run_files files;
    OWNED char *folder = run_folder(run);
    status result = run_files_find(&files, folder, r->run.seed, error);
    NEXT(result, run_files_remove(&files, error));
    run_files_close(&files);
    rmdir(r->folder); /* unless another repetition has files there */
    return result;
}

/* An ordinary run, in a database of its own. */
static status repeat(struct rerun *r, int64_t *id, struct error *error)
{
    const struct command_call *call = r->call;
    SCOPED(run_close_at) struct run *run = NULL;
    TRY(store_open(&r->repetition, r->database, STORE_WRITE, error));
    TRY(run_open(&run, r->suite, (uint64_t)r->run.seed, call->log, error));
    struct sequence sequence = {.run = run, .store = r->repetition, .progress = call->progress, .stop = call->stop};
    status result = sequence_run(&sequence, error);
    progress_end(call->progress);
    *id = sequence.id;
    TRY(result);
    TRY(remove_files(r, run, error));
    if (sequence.finished_before)
        return error_set(error, ERROR_ARGUMENT, "%s: already has this run; name another database", r->database);
    return OK;
}

static status compare(struct rerun *r, int64_t run, struct error *error)
{
    struct repeat both = {.first = r->store, .first_run = r->run.run, .second = r->repetition, .second_run = run};
    SCOPED(table_free) struct table table = {0};
    status result = repeat_compare(&both, &table, error);
    SCOPED(text_free) struct text machines = both.machines;
    TRY(result);
    output_table(r->call, &table);
    if (machines.size > 0)
        log_info(r->call->log, "run %" PRId64 " was computed under other conditions: %s", r->run.run, machines.data);
    if (!both.agrees)
        return error_set(error, ERROR_FORMAT, "%s: the rows of run %" PRId64 " differ from those of its repetition",
                         r->call->arguments[0], r->run.run);
    return OK;
}

static status run_rerun(const struct command_call *call, struct error *error)
{
    SCOPED(close_rerun) struct rerun r = {.call = call, .temporary = {.lock = -1}};
    int64_t run = 0;
    TRY(read_run(&r, error));
    TRY(make_folder(&r, error));
    TRY(read_suite(&r, error));
    status result = repeat(&r, &run, error);
    if (result == ERROR_STOPPED && r.temporary.path == NULL)
        error_context(error, "the same command resumes the repetition");
    NEXT(result, compare(&r, run, error));
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
