/* mtil sweep: runs what is missing of every combination of some settings under several seeds. */
#include <math.h>
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/sweep/sweep.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    BACKEND_OPTIONS(NULL, NULL, NULL),
    OPTION(BOOLEAN, "grid", "true", "values are lists (none,most_used) and ranges (1..5); false: each is one value"),
    ALLOW_COMMANDS_OPTION,
    OPTION(BOOLEAN, "dry-run", "no", "show the plan and do nothing"),
    OPTION_NUMBER(INTEGER, "jobs", 1, 1024, NULL,
                  "runs at a time; default: as many as cores and memory allow, or one per GPU"),
    OPTION(BOOLEAN, "slurm", "no", "submit the runs to a Slurm cluster, as a job array"),
    OPTION(BOOLEAN, "collect", "no", "join the runs that a cluster has finished, and run nothing"),
    OPTION(TEXT, "partition", NULL, "with --slurm: partition of the jobs"),
    OPTION(
        TEXT, "time", NULL,
        "with --slurm: time limit of a job, as in 12:00:00; a run that reaches it is resumed by the next submission"),
    OPTION(TEXT, "memory", NULL, "with --slurm: memory of a job, as in 16G"),
    OPTION_NUMBER(INTEGER, "cpus", 1, 1024, NULL, "with --slurm: cores of a job"),
    OPTION(TEXT, "slurm-arg", NULL, "with --slurm: more arguments for sbatch, separated by spaces"),
    {0}};

static bool asked(const struct command_call *call, const char *option)
{
    return options_boolean(call->options, option);
}

static size_t number(const struct command_call *call, const char *option)
{
    return options_given(call->options, option) ? (size_t)options_integer(call->options, option) : 0;
}

/* Options that need --slurm, and options that exclude each other. */
static status check_options(const struct command_call *call, struct error *error)
{
    static const char *const of_jobs[] = {"partition", "time", "memory", "cpus", "slurm-arg"};
    for (size_t i = 0; i < sizeof of_jobs / sizeof *of_jobs; i++)
        if (options_given(call->options, of_jobs[i]) && !asked(call, "slurm"))
            return error_set(error, ERROR_ARGUMENT, "command line: --%s: expected --slurm with it", of_jobs[i]);
    if (asked(call, "collect") && asked(call, "slurm"))
        return error_set(error, ERROR_ARGUMENT, "command line: expected --slurm or --collect, found both");
    return OK;
}

/* --- The plan --- */

/* A cluster is assumed to have room for all runs. */
static struct placement place_on_cluster(const struct command_call *call, const struct sweep *sweep)
{
    size_t cpus = number(call, "cpus") > 0 ? number(call, "cpus") : 1,
           jobs = number(call, "jobs") > 0 ? number(call, "jobs") : sweep_work(sweep);
    struct machine cluster = {.cores = cpus * jobs, .gpus = sweep->gpus > 0 ? jobs : 0}; /* like here */
    struct placement_request request = {.runs = sweep_work(sweep), .jobs = jobs, .threads = cpus};
    return placement_choose(&cluster, &request);
}

/* The largest need of the remaining runs, because all places are equal. */
static size_t most_gpus(const struct sweep *sweep)
{
    size_t most = 1;
    for (size_t i = 0; i < sweep->run_count; i++) {
        size_t gpus = sweep->configurations[sweep->runs[i].configuration].gpus;
        if (sweep_wants(&sweep->runs[i]) && gpus > most)
            most = gpus;
    }
    return most;
}

static struct placement place(const struct command_call *call, const struct sweep *sweep)
{
    struct machine machine = machine_look();
    machine.gpus = sweep->gpus;
    machine.memory = sweep->gpus > 0 ? sweep->gpu_memory : machine.memory;
    struct placement_request request = {.runs = sweep_work(sweep) + sweep_count(sweep, SWEEP_ELSEWHERE),
                                        .jobs = number(call, "jobs"),
                                        .threads = sweep->configurations[0].threads,
                                        .gpus = most_gpus(sweep),
                                        .memory = sweep_cost_memory(sweep)};
    return asked(call, "slurm") ? place_on_cluster(call, sweep) : placement_choose(&machine, &request);
}

static bool any_measured(const struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->configuration_count; i++)
        if (sweep->configurations[i].cost.measured)
            return true;
    return false;
}

/* Whether runs to be computed share a cache by default, without a setting in their suite. */
static bool any_shares(const struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep_wants(&sweep->runs[i]) && sweep->configurations[sweep->runs[i].configuration].shares)
            return true;
    return false;
}

/* The totals of the plan, one per line. */
static void describe(const struct command_call *call, const struct sweep *sweep, const struct placement *placement,
                     struct text *text)
{
    size_t elsewhere = sweep_count(sweep, SWEEP_ELSEWHERE), threads = placement_threads(placement, 0);
    text_add(text, "%zu configuration%s, %zu run%s: %zu finished, %zu to resume, %zu missing\n",
             sweep->configuration_count, sweep->configuration_count == 1 ? "" : "s", sweep->run_count,
             sweep->run_count == 1 ? "" : "s", sweep_count(sweep, SWEEP_FINISHED), sweep_count(sweep, SWEEP_UNFINISHED),
             sweep_count(sweep, SWEEP_MISSING));
    if (elsewhere > 0)
        text_add(text, "%zu run%s in progress in other processes\n", elsewhere, elsewhere == 1 ? " is" : "s are");
    if (sweep_work(sweep) == 0)
        return;
    double seconds = sweep_cost_left(sweep, placement), memory = sweep_cost_memory(sweep);
    text_add(text, "%zu at a time, %zu thread%s each", placement->jobs, threads, threads == 1 ? "" : "s");
    if (placement->gpus > 0)
        text_add(text, ", on %zu GPU%s", placement->gpus, placement->gpus == 1 ? "" : "s");
    if (!isnan(seconds)) {
        text_add(text, ": about ");
        text_add_duration(text, seconds);
        text_add(text, any_measured(sweep) ? ", as measured in finished runs" : ", as estimated from the operations");
    }
    text_add(text, "\n");
    if (memory > 0 && placement->gpus > 0)
        text_add(text, "memory about %.0f MiB of each GPU\n", memory / (1 << 20));
    else if (memory > 0)
        text_add(text, "memory about %.0f MiB at a time\n", (double)placement->jobs * memory / (1 << 20));
    if (sweep_cost_disk(sweep) > 0)
        text_add(text, "disk about %.0f MiB in checkpoints\n", sweep_cost_disk(sweep) / (1 << 20));
    if (!asked(call, "slurm") && any_shares(sweep))
        text_add(text, "decoded images and zero-shot features are shared, in the files of mtil data cache; "
                       "run.cache=memory: each run has its own\n");
}

static void note_lines(const struct command_call *call, struct text *text)
{
    for (char *rest = text->data, *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != 0)
            log_info(call->log, "%s", line);
}

/* With --dry-run the table is the answer; otherwise it is a note, because standard output is for the results. */
static void show_plan(const struct command_call *call, const struct sweep *sweep, const struct placement *placement)
{
    SCOPED(table_free) struct table table = {0};
    SCOPED(text_free) struct text text = {0};
    sweep_tables_plan(sweep, placement, &table);
    if (asked(call, "dry-run"))
        output_table(call, &table);
    else
        table_render(&table, TABLE_TEXT, false, &text);
    describe(call, sweep, placement, &text);
    note_lines(call, &text);
}

/* --- The runs --- */

static status show_results(const struct command_call *call, struct sweep *sweep, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    SCOPED(table_free) struct table table = {0};
    TRY(store_open_stoppable(&store, sweep->database, STORE_READ, call->stop, error));
    TRY(sweep_look(sweep, store, error));
    TRY(sweep_tables_results(sweep, store, &table, error));
    output_table(call, &table);
    return OK;
}

static status report_failures(const struct command_call *call, const struct sweep *sweep, struct error *error)
{
    size_t failures = 0;
    for (const struct sweep_run *run = sweep->runs; run < sweep->runs + sweep->run_count; run++)
        if (run->failure != NULL) {
            log_warn(call->log, "%s failed: %s (%s)", run->label, run->failure, run->log);
            failures++;
        }
    size_t unfinished = sweep->run_count - sweep_count(sweep, SWEEP_FINISHED);
    if (failures > 0)
        return error_set(error, ERROR_IO, "%zu of %zu runs failed; the same command tries them again", failures,
                         sweep->run_count);
    if (unfinished > 0)
        return error_set(error, ERROR_IO, "%zu of %zu runs are not finished; the same command goes on with them",
                         unfinished, sweep->run_count);
    return OK;
}

static status run_missing(const struct command_call *call, struct sweep *sweep, const struct placement *placement,
                          struct error *error)
{
    struct sweep_runner runner = {
        .sweep = sweep, .placement = *placement, .log = call->log, .progress = call->progress, .stop = call->stop};
    TRY(sweep_runner_run(&runner, error));
    TRY(show_results(call, sweep, error));
    log_info(call->log, "the adapters or weights of the runs lie below %s", sweep->run_folder);
    return report_failures(call, sweep, error);
}

/* Reads the state of the runs from the sweep's database, if there is one, and from those of the runs. */
static status look(const struct command_call *call, struct sweep *sweep, struct store *store, struct error *error)
{
    bool cluster = asked(call, "slurm") || asked(call, "collect");
    TRY(sweep_look(sweep, store, error));
    return sweep_parts_look(sweep, cluster ? PARTS_GO_ON : PARTS_END, error);
}

/* A plan creates no database (NULL without one), and neither do jobs, which have their own. To run, it is opened for
 * writing at once, which waits for another sweep that is creating it. */
static status open_results(const struct command_call *call, const struct sweep *sweep, struct store **store,
                           struct error *error)
{
    bool runs = !asked(call, "dry-run") && !asked(call, "slurm") && !asked(call, "collect");
    *store = NULL;
    if (!runs && !file_exists(sweep->database))
        return OK;
    return store_open_stoppable(store, sweep->database, runs ? STORE_WRITE : STORE_READ, call->stop, error);
}

/* Joins the cluster's finished runs first, so that nothing is computed twice. */
static status collect(const struct command_call *call, struct sweep *sweep, struct error *error)
{
    {
        SCOPED(store_close_at) struct store *store = NULL;
        TRY(open_results(call, sweep, &store, error));
        TRY(look(call, sweep, store, error));
    }
    return sweep_parts_collect(sweep, call->log, error);
}

static status look_and_estimate(const struct command_call *call, struct sweep *sweep, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    TRY(open_results(call, sweep, &store, error));
    TRY(look(call, sweep, store, error));
    return sweep_cost_estimate(sweep, store, call->log, call->progress, error);
}

/* --- On a cluster --- */

static status submit(const struct command_call *call, const struct sweep *sweep, const struct sweep_request *request,
                     struct error *error)
{
    SCOPED(text_free) struct text jobs = {0};
    const struct options *given = call->options;
    struct slurm_options slurm = {.request = request,
                                  .partition = options_text(given, "partition"),
                                  .time = options_text(given, "time"),
                                  .memory = options_text(given, "memory"),
                                  .arguments = options_text(given, "slurm-arg"),
                                  .cpus = number(call, "cpus"),
                                  .jobs = number(call, "jobs")};
    if (sweep_work(sweep) == 0) {
        log_info(call->log, "nothing is left to submit; the same command with --collect shows the results");
        return OK;
    }
    TRY(slurm_submit(sweep, &slurm, &jobs, error));
    log_info(call->log, "job %s: %s/batch.sh; squeue --jobs %s shows its state", jobs.data, sweep->folder, jobs.data);
    log_info(call->log, "a job after it joins the results into %s; so does the same command with --collect",
             sweep->database);
    return OK;
}

static status show_collected(const struct command_call *call, struct sweep *sweep, struct error *error)
{
    size_t left = sweep->run_count;
    if (file_exists(sweep->database)) {
        TRY(show_results(call, sweep, error));
        left -= sweep_count(sweep, SWEEP_FINISHED);
        TRY(sweep_parts_look(sweep, PARTS_GO_ON, error));
    }
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep_wants(&sweep->runs[i]))
            log_warn(call->log, "%s is not finished: %s", sweep->runs[i].label,
                     sweep->runs[i].failure != NULL ? sweep->runs[i].failure : "it has not begun");
    if (left == 0)
        return OK;
    return error_set(error, ERROR_IO,
                     "%zu of %zu runs are not finished; the same command with --slurm submits them again", left,
                     sweep->run_count);
}

/* Of the first configuration that has something to warn about. Refuses programs without consent. */
static status warn(const struct command_call *call, const struct sweep *sweep, const struct strings *words,
                   struct error *error)
{
    bool warned = false;
    for (size_t i = 0; i < sweep->configuration_count; i++) {
        SCOPED(suite_destroy_at) struct suite *suite = NULL;
        struct settings settings;
        TRY(sweep_suite(sweep, i, &suite, error));
        TRY(suite_words_consent(call, suite, words, error));
        TRY(settings_read(&settings, suite, error));
        warned = warned || settings_warn(&settings, suite, call->log);
    }
    return OK;
}

static status run_sweep(const struct command_call *call, struct sweep *sweep, const struct sweep_request *request,
                        const struct strings *words, struct error *error)
{
    if (!asked(call, "dry-run") && !asked(call, "slurm"))
        TRY(collect(call, sweep, error));
    if (asked(call, "collect"))
        return show_collected(call, sweep, error);
    TRY(warn(call, sweep, words, error));
    if (sweep->left_out != NULL)
        log_info(call->log, "%s", sweep->left_out);
    TRY(look_and_estimate(call, sweep, error));
    struct placement placement = place(call, sweep);
    show_plan(call, sweep, &placement);
    if (asked(call, "dry-run"))
        return OK;
    return asked(call, "slurm") ? submit(call, sweep, request, error) : run_missing(call, sweep, &placement, error);
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(sweep_close_at) struct sweep *sweep = NULL;
    SCOPED(strings_free) struct strings words = {0};
    TRY(check_options(call, error));
    suite_words_add(&words, call);
    struct sweep_request request = {.suite = call->arguments[0],
                                    .words = (const char *const *)words.items,
                                    .count = words.count,
                                    .allows_commands = asked(call, "allow-commands"),
                                    .values = asked(call, "grid") ? GRID_EXPAND : GRID_LITERAL,
                                    .progress = call->progress,
                                    .stop = call->stop};
    TRY(sweep_open(&sweep, &request, error));
    return run_sweep(call, sweep, &request, &words, error);
}

const struct command command_sweep = {
    .name = "sweep",
    .arguments = "SUITE --grid KEY=VALUE,VALUE… [KEY=FIRST..LAST…]",
    .summary = "run every combination of some settings under several seeds",
    .details =
        "Every key of the suite can be an axis, by its full name (merge.policy) or a short one (policy, seed).\n"
        "The items of a value that is itself a list are separated by spaces: \"data.order=mnist dtd,dtd mnist\" are\n"
        "two orders. Runs finished in the database are not repeated, unfinished ones are resumed, and each run is a\n"
        "process with a log of its own. Ctrl-C stops all of them where it is safe; the same command resumes them.\n"
        "Failed runs are reported at the end and do not stop the others; runs of other processes are waited for.\n"
        "With --slurm the runs are tasks of a job array, and a job after it joins their databases.\n",
    .example = "  mtil sweep mini --grid policy=none,most_used merge.every=20,40 seed=1..5 --dry-run\n"
               "  mtil sweep mtil --grid seed=1..5 --slurm --partition gpu --cpus 8 --slurm-arg --gres=gpu:1\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};
