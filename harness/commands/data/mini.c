/* mtil data mini: writes the built-in suite's datasets. */
#include "datasets/mini/mini.h"
#include "core/threads.h"
#include "harness/commands/command.h"

static const struct option options[] = {
    {.name = "seed", .type = OPTION_INTEGER, .maximum = 1e15, .fallback = "1", .help = "seed of the drawings"},
    THREADS_OPTION,
    {0},
};

static void report(void *context, const char *dataset, size_t done, size_t total)
{
    const struct command_call *call = context;
    progress_report(call->progress,
                    &(struct progress_state){.activity = "write", .subject = dataset, .step = done, .steps = total});
}

static bool is_stopped(void *context)
{
    const struct command_call *call = context;
    return stop_requested(call->stop);
}

static status run(const struct command_call *call, struct error *error)
{
    struct threads *threads;
    struct command_call watched = *call;
    TRY(threads_create(&threads, (size_t)options_integer(call->options, "threads"), error));
    struct mini_settings settings = {.seed = (uint64_t)options_integer(call->options, "seed"),
                                     .threads = threads,
                                     .log = call->log,
                                     .progress = report,
                                     .stopped = is_stopped,
                                     .context = &watched};
    status result = mini_write(call->arguments[0], &settings, error);
    threads_destroy(threads);
    return result;
}

const struct command command_data_mini = {
    .name = "data mini",
    .arguments = "ROOT",
    .summary = "write the built-in suite's datasets to a folder",
    .details = "The layouts are those of the real datasets. A complete folder is left as it is; an interrupted one is\n"
               "completed, to the same bytes.\n",
    .example = "  mtil data mini data/mini\n",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};
