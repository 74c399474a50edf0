/* mtil runs delete: removes a run's rows in all tables, and its files. A new subcommand of `mtil runs`: its struct command here, and
 * its address in `subcommands`. `mtil query DATABASE runs` lists the runs. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "harness/commands/inputs/run_list.h"
#include "harness/commands/output.h"
#include "harness/run/run.h"
#include "results/store.h"

static const struct option delete_options[] = {OPTION(BOOLEAN, "yes", "no", "do not ask"), {0}};

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

static status run_delete(const struct command_call *call, struct error *error)
{
    SCOPED(release) struct removal removal = {0};
    bool agreed;
    if (!file_exists(call->arguments[0]))
        return error_set(error, ERROR_IO, "%s: there is no such file", call->arguments[0]);
    TRY(store_open(&removal.store, call->arguments[0], STORE_WRITE, error));
    TRY(run_list_read(&removal.list, call->arguments + 1, call->argument_count - 1, error));
    TRY(prepare(call, &removal, error));
    TRY(ask(call, &removal, &agreed, error));
    if (!agreed)
        log_info(call->log, "nothing was removed");
    for (size_t i = 0; agreed && i < removal.prepared; i++) {
        if (stop_requested(call->stop))
            return error_set(error, ERROR_STOPPED, "stopped after %zu of %zu runs; the same command removes the others",
                             i, removal.prepared);
        TRY(delete_run(call, removal.store, &removal.doomed[i], error));
    }
    return OK;
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

static const struct command *const subcommands[] = {&command_runs_delete, NULL};

const struct command command_runs = {
    .name = "runs",
    .arguments = "SUBCOMMAND",
    .summary = "remove runs from a results database",
    .example = "  mtil runs delete results.db 3\n",
    .subcommands = subcommands,
};
