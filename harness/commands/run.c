/* mtil run: a suite from the first task to the last, once per seed; mtil classify: the same for each of its datasets. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "datasets/fetch/fetch.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/config/suite.h"
#include "harness/model/model.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"
#include "harness/run/workload.h"
#include "harness/scenario/label_split.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    BACKEND_OPTIONS(NULL, NULL, NULL),
    GPUS_OPTION(NULL),
    OPTION(LIST, "seed", NULL, "the same as run.seeds=1,2,3"),
    ALLOW_COMMANDS_OPTION,
    OPTION(
        BOOLEAN, "extend", "no",
        "go on from a finished run of the first tasks of data.order, which had run.checkpoints=states, and train the "
        "others alone"),
    OPTION(
        BOOLEAN, "dry-run", "no",
        "print the resolved suite and, where data and weights are there, the tasks, time, memory and disk; do nothing"),
    {0}};

static void show_start(const struct command_call *call, const struct run *run)
{
    log_info(call->log, "%s, seed %llu: %s on %s", suite_name(run->suite), (unsigned long long)run->model.seed,
             run->model.settings.method->name, run->model.backend->description);
    if (run->data.cut == NULL)
        return;
    SCOPED(text_free) struct text means = {0};
    label_split_add_means(&means, run->data.cut);
    log_info(call->log, "%s in %zu tasks: mean cosine of class names %s", run->data.whole.settings.name,
             run->data.task_count, means.data);
}

/* The results, and the files that mtil predict and eval take. */
static status show_end(const struct command_call *call, const struct run *run, const struct sequence *sequence,
                       struct error *error)
{
    unsigned groups = run->model.groups;
    SCOPED(run_row_free) struct run_row row = {0};
    if (sequence->iterations > 0)
        log_info(call->log, "%zu trainable parameters, %.1f MiB, %.3f s per iteration", trained_values(&run->model),
                 (double)trained_values(&run->model) * 4.0 / (1 << 20),
                 sequence->training_seconds / (double)sequence->iterations);
    if (sequence->finished_before)
        log_info(call->log, "seed %llu had already finished; its results:", (unsigned long long)run->model.seed);
    TRY(output_end_of_run(call, sequence->store, sequence->id, error));
    if (groups == GROUPS_NONE || run->model.settings.checkpoints == CHECKPOINTS_NONE)
        return OK;
    TRY(store_read_run(sequence->store, sequence->id, &row, error));
    if (row.folder != NULL)
        log_info(call->log, "the %s lie in %s", groups_beside_towers(groups) ? "adapters" : "weights", row.folder);
    return OK;
}

static status open_store(const struct command_call *call, const struct suite *suite, struct store **store,
                         struct error *error)
{
    const char *database = options_text(suite_options(suite, "run"), "database");
    return *store != NULL ? OK : store_open_stoppable(store, database, STORE_WRITE, call->stop, error);
}

/* *store: opened unless it is, when there is something to write. */
static status run_seed(const struct command_call *call, const struct suite *suite, struct store **store, uint64_t seed,
                       struct error *error)
{
    SCOPED(run_close_at) struct run *run = NULL;
    double start = clock_seconds();
    TRY(run_open(&run, suite, seed, call->log, error));
    if (stop_requested(call->stop))
        return error_set(error, ERROR_STOPPED, "stopped before the run started");
    TRY(open_store(call, suite, store, error));
    show_start(call, run);
    struct sequence sequence = {.run = run,
                                .store = *store,
                                .progress = call->progress,
                                .stop = call->stop,
                                .extends = options_boolean(call->options, "extend"),
                                .opening_seconds = clock_seconds() - start};
    stop_hold(call->stop);
    status result = sequence_run(&sequence, error);
    if (result != ERROR_STOPPED)
        stop_release(call->stop);
    progress_end(call->progress);
    NEXT(result, show_end(call, run, &sequence, error));
    if (result == ERROR_STOPPED)
        error_context(error, "the same command resumes the run");
    return result;
}

/* A database that is there is looked at first; one that is not appears when a run begins. */
static status run_seeds(const struct command_call *call, const struct suite *suite, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    if (file_exists(options_text(suite_options(suite, "run"), "database")))
        TRY(open_store(call, suite, &store, error));
    for (size_t i = 0; i < settings_seeds(suite); i++)
        TRY(run_seed(call, suite, &store, settings_seed(suite, i), error));
    return OK;
}

/* Without data or weights, only the settings are shown. */
static void show_settings_alone(const struct command_call *call, const struct suite *suite, const struct error *missing)
{
    fprintf(call->out, "%s\n# time, memory and disk cannot be estimated: ", suite_text(suite));
    output_words(call, missing->message);
    fputs("\n", call->out);
}

/* What mtil data get has to fetch. */
static void show_archives(const struct run *run, FILE *out)
{
    SCOPED(text_free) struct text by_hand = {0};
    double bytes = 0;
    for (size_t k = 0; k < run->data.task_count; k++)
        for (const struct fetch_source *source = fetch_sources; source->name != NULL; source++) {
            if (!run->data.tasks[k].planned || strcmp(source->name, run->data.tasks[k].settings.reader) != 0)
                continue;
            for (const struct fetch_file *file = source->files; file != NULL && file->name != NULL; file++)
                bytes += (double)file->bytes;
            if (source->by_hand != NULL)
                text_add(&by_hand, "%s %s", by_hand.size > 0 ? "," : "; by hand:", source->name);
        }
    if (bytes > 0 || by_hand.size > 0)
        fprintf(out, "# archives about %.1f GB to fetch (mtil data get)%s\n", bytes / 1e9,
                by_hand.size > 0 ? by_hand.data : "");
}

/* Classes taken from the wrong folders are seen here before they are trained. */
static void show_tasks(const struct run *run, FILE *out)
{
    enum { NAMED = 3 };
    for (size_t k = 0; k < run->data.task_count; k++) {
        const struct dataset *dataset = run->data.tasks[k].dataset;
        size_t classes = dataset_classes(dataset);
        SCOPED(text_free) struct text line = {0};
        text_add(&line, "# ");
        text_add_visible(&line, run->data.tasks[k].settings.name);
        text_add(&line, ": %zu images to train on, %zu to test on, %zu class%s: ", dataset_size(dataset, SPLIT_TRAIN),
                 dataset_size(dataset, SPLIT_TEST), classes, classes == 1 ? "" : "es");
        if (run->data.tasks[k].planned)
            line.size -= strlen(": ");
        for (size_t c = 0; c < classes && c < NAMED && !run->data.tasks[k].planned; c++) {
            text_add(&line, "%s", c > 0 ? ", " : "");
            text_add_visible(&line, dataset_class_name(dataset, c));
        }
        fprintf(out, "%.*s%s\n", (int)line.size, line.data,
                run->data.tasks[k].planned ? " (published sizes)"
                : classes > NAMED          ? ", …"
                                           : "");
    }
}

static void show_planned(const struct command_call *call, const struct run *run, const struct error *missing)
{
    fputs("# estimated by published sizes, since the run lacks files: ", call->out);
    output_words(call, missing->message);
    fputs("\n", call->out);
    if (run->model.head->of_texts && run->model.tokenizer == NULL)
        fprintf(call->out, "# assumed: prompts of %d tokens\n", PLANNED_TOKENS);
    show_archives(run, call->out);
}

/* What another program takes is not known. */
static status show_own(const struct command_call *call, const struct suite *suite, struct run *run, struct error *error)
{
    SCOPED(text_free) struct text text = {0};
    fprintf(call->out, "%s\n", suite_text(suite));
    show_tasks(run, call->out);
    TRY(run->model.settings.method->own->describe(&run->method, &text, error));
    fprintf(call->out,
            "# method.command: %s\n# it would be sent: ", options_as_text(suite_options(suite, "method"), "command"));
    output_words(call, text.data);
    fputs("\n", call->out);
    return OK;
}

static status dry_run(const struct command_call *call, const struct suite *suite, struct error *error)
{
    SCOPED(run_close_at) struct run *run = NULL;
    status opened = run_open(&run, suite, settings_seed(suite, 0), call->log, error);
    const struct error missing = *error;
    bool planned = opened == ERROR_IO;
    if (planned)
        opened = run_open_planned(&run, suite, settings_seed(suite, 0), call->log, error);
    if (opened == ERROR_IO)
        show_settings_alone(call, suite, &missing);
    if (opened != OK)
        return opened == ERROR_IO ? OK : opened;
    if (run->model.settings.method->own != NULL)
        return show_own(call, suite, run, error);
    const struct estimate estimate = workload_estimate(run);
    struct rates rates = {0};
    TRY(rates_measure(&rates, run, error));
    fputs(suite_text(suite), call->out);
    fputs("\n", call->out);
    if (run->data.cut != NULL)
        label_split_print(run->data.cut, run->data.whole.dataset, call->out);
    show_tasks(run, call->out);
    fprintf(call->out, "# %zu trained parameters\n", trained_values(&run->model));
    if (planned)
        show_planned(call, run, &missing);
    rates_print(&rates, &estimate, settings_seeds(suite), call->out);
    return OK;
}

/* A word of the command line that changes nothing, as merge.every=3 with policy=none, is pointed out. */
static status note_unread(const struct command_call *call, const struct suite *suite, const char *word,
                          struct error *error)
{
    OWNED char *key = NULL;
    SCOPED(text_free) struct text needed = {0};
    TRY(suite_word_key(&key, word, error));
    if (!suite_reads(suite, key, &needed))
        log_info(call->log, "%s changes nothing: %s%s", key,
                 needed.size > 0 ? "it is read only with " : "nothing reads it with these settings",
                 needed.size > 0 ? needed.data : "");
    return OK;
}

static status run_suite(const struct command_call *call, const struct strings *words, struct error *error)
{
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    TRY(suite_words_load(&suite, call, words, error));
    struct settings settings;
    TRY(suite_words_consent(call, suite, words, error));
    TRY(settings_read(&settings, suite, error));
    settings_warn(&settings, suite, call->log);
    for (size_t i = 0; i < words->count; i++)
        TRY(note_unread(call, suite, words->items[i], error));
    return options_boolean(call->options, "dry-run") ? dry_run(call, suite, error) : run_seeds(call, suite, error);
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(strings_free) struct strings words = {0};
    suite_words_add(&words, call);
    return run_suite(call, &words, error);
}

const struct command command_run = {
    .name = "run",
    .arguments = "SUITE [key=value…]",
    .summary = "run a suite, or resume it where it stopped",
    .details =
        "SUITE is a name (mtil list suites) or a YAML file; key=value overrides a key of it, as in merge.every=50 or\n"
        "tasks.mnist.learning_rate=1e-4. Ctrl-C stops after the current iteration or batch of images, a second Ctrl-C\n"
        "at once; the same command resumes the run and ends with the same numbers. A finished run is only\n"
        "shown.\n",
    .example = "  mtil run mini run.seeds=1,2,3 merge.policy=none\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};

/* --- mtil classify --- */

/* Defaults, which the command line may replace, and its own words. */
static void add_classifier_words(struct strings *words, const struct command_call *call)
{
    static const char *const own[] = {"head.name=linear", "method.name=supervised"};
    strings_copy(words, own, sizeof own / sizeof *own);
    suite_words_add(words, call);
}

static status classify(const struct command_call *call, struct error *error)
{
    SCOPED(strings_free) struct strings words = {0};
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    add_classifier_words(&words, call);
    TRY(suite_words_load(&suite, call, &words, error));
    const struct options *data = suite_options(suite, "data");
    for (size_t i = 0; i < options_list_size(data, "order"); i++) {
        SCOPED(strings_free) struct strings own = {0};
        add_classifier_words(&own, call);
        strings_format(&own, "data.order=%s", options_list_item(data, "order", i));
        TRY(run_suite(call, &own, error));
    }
    return OK;
}

const struct command command_classify = {
    .name = "classify",
    .arguments = "SUITE [key=value…]",
    .summary = "train an image classifier for each dataset of a suite, or resume it",
    .details =
        "Trains an image tower with a linear head on each dataset of data.order by itself, like mtil run with\n"
        "head.name=linear, method.name=supervised and one dataset. model.weights names the tower: a CLIP, a ViT\n"
        "of timm or Hugging Face, the weights of such a run, or scratch for random weights (sizes: mtil list\n"
        "models -v). method.train=head trains the head alone; method.ffn replaces MLPs by mixtures of experts.\n"
        "Stopping, resuming and databases work as in mtil run.\n",
    .example =
        "  mtil classify mini_classify\n  mtil classify mini data.order=eurosat,dtd training.learning_rate=3e-4\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = classify,
};
