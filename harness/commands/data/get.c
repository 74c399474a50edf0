/* mtil data get: fetches public datasets. mtil data mini: writes those of the built-in suite. */
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "core/threads.h"
#include "datasets/fetch/fetch.h"
#include "datasets/mini/mini.h"
#include "harness/commands/command.h"

static const struct option get_options[] = {
    OPTION(TEXT, "from", NULL, "another mirror, asked alone for DATASET/FILE: http://server/data"),
    {0},
};

static void report_download(void *context, const char *file, uint64_t done, uint64_t bytes)
{
    const struct command_call *call = context;
    progress_report(call->progress,
                    &(struct progress_state){
                        .activity = "download (MiB)", .subject = file, .step = done >> 20, .steps = bytes >> 20});
}

/* A dataset that cannot be had does not keep the others from being fetched. */
static status get_all(const struct command_call *call, const struct fetch_settings *settings, struct error *error)
{
    size_t count = call->argument_count - 1, failed = 0;
    const char *root = call->arguments[count];
    SCOPED(text_free) struct text names = {0};
    status result = OK;
    for (size_t i = 0; i < count && result != ERROR_STOPPED; i++) {
        const struct fetch_source *source;
        result = fetch_find(call->arguments[i], &source, error);
        NEXT(result, fetch_dataset(source, root, settings, error));
        if (result == OK || result == ERROR_STOPPED || count == 1)
            continue;
        log_warn(call->log, "%s", error->message);
        text_add(&names, "%s%s", failed++ > 0 ? ", " : "", source->name);
    }
    if (failed > 0 && result != ERROR_STOPPED)
        result = error_set(error, ERROR_IO, "%zu of %zu datasets were not fetched: %s", failed, count, names.data);
    return result;
}

static status run_get(const struct command_call *call, struct error *error)
{
    struct command_call watched = *call;
    struct fetch_settings settings = {.from = options_text(call->options, "from"),
                                      .log = call->log,
                                      .progress = report_download,
                                      .context = &watched,
                                      .stop = call->stop};
    if (settings.from != NULL && fetch_check_mirror(settings.from, error) != OK)
        return error_context(error, "command line: data get: --from");
    for (size_t i = 0; i + 1 < call->argument_count; i++) {
        const struct fetch_source *source;
        TRY(fetch_find(call->arguments[i], &source, error));
    }
    const struct fetch_source *source;
    const char *root = call->arguments[call->argument_count - 1];
    struct error ignored;
    if (!file_exists(root) && fetch_find(root, &source, &ignored) == OK)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: data get: the last word is the folder for datasets, found %s, which is a "
                         "dataset; write ./%s to make a folder of this name",
                         root, root);
    return get_all(call, &settings, error);
}

const struct command command_data_get = {
    .name = "data get",
    .arguments = "NAME… ROOT",
    .summary = "fetch public datasets from their publishers or mirrors",
    .details =
        "Each dataset is downloaded, compared with its published size and SHA-256, and unpacked to where its reader\n"
        "looks; its folder appears when it is complete. An interrupted download is continued. For datasets that are\n"
        "not public, the message says how to obtain them. Proxies come from the environment (https_proxy).\n",
    .example = "  mtil data get dtd flowers mnist /data\n"
               "  mtil data get sun397 /data --from http://server/data\n",
    .options = get_options,
    .least = 2,
    .most = SIZE_MAX,
    .run = run_get,
};

/* --- mtil data mini --- */

static const struct option mini_options[] = {
    OPTION_NUMBER(INTEGER, "seed", 0, 1e15, "1", "seed of the drawings"),
    THREADS_OPTION,
    {0},
};

static void report_drawing(void *context, const char *dataset, size_t done, size_t total)
{
    const struct command_call *call = context;
    progress_report(call->progress,
                    &(struct progress_state){.activity = "write", .subject = dataset, .step = done, .steps = total});
}

static status run_mini(const struct command_call *call, struct error *error)
{
    SCOPED(threads_destroy_at) struct threads *threads = NULL;
    struct command_call watched = *call;
    TRY(threads_create(&threads, (size_t)options_integer(call->options, "threads"), error));
    struct mini_settings settings = {.seed = (uint64_t)options_integer(call->options, "seed"),
                                     .threads = threads,
                                     .log = call->log,
                                     .progress = report_drawing,
                                     .context = &watched,
                                     .stop = call->stop};
    return mini_write(call->arguments[0], &settings, error);
}

const struct command command_data_mini = {
    .name = "data mini",
    .arguments = "ROOT",
    .summary = "write the built-in suite's datasets to a folder",
    .details = "The layouts are those of the real datasets. A complete folder is left as it is; an interrupted one is\n"
               "completed, to the same bytes.\n",
    .example = "  mtil data mini data/mini\n",
    .options = mini_options,
    .least = 1,
    .most = 1,
    .run = run_mini,
};
