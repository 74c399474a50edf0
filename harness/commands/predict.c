/* mtil predict: classifies images that belong to no suite. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "datasets/formats/strings.h"
#include "datasets/prompts.h"
#include "harness/commands/inputs/adapter_choice.h"
#include "harness/commands/inputs/image_reader.h"
#include "harness/commands/output.h"
#include "harness/evaluate/predictor.h"
#include "harness/model/head.h"
#include "harness/model/weights.h"
#include "harness/run/settings.h"
#include "models/backend_options.h"
#include "results/query.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    OPTION_NUMBER(INTEGER, "run", 1, 1e15, NULL,
                  "number of a finished run, whose adapters and model are taken (mtil query runs)"),
    OPTION(FILE, "database", SETTINGS_DATABASE, "results database of --run"),
    ADAPTERS_OPTION,
    OPTION(TEXT, "router", NULL,
           "router of all images: name or number; auto: the selector saved with the adapters chooses; none: adapters "
           "off (default auto, if there is a selector)"),
    OPTION_ONE_OF("labels", "task|all", "task",
                  "classes to choose from: of the router's task, or of all tasks; without a router always all"),
    OPTION_NUMBER(INTEGER, "top", 1, 65535, "1", "classes per image"),
    OPTION(TEXT, "list", NULL, "file with one path of an image or folder per line, same as @FILE"),
    OPTION(TEXT, "classes", NULL, "file with one class name per line, in place of the classes of the adapters' tasks"),
    OPTION(TEXT, "template", "a photo of a {}.", "prompt for the classes of --classes"),
    OPTION(TEXT, "weights", "mini", "file of a CLIP or a classifier, or mini"),
    OPTION(TEXT, "vocabulary", "mini", "the model's vocabulary: a file, or mini"),
    MODEL_CHOICE_OPTIONS,
    BACKEND_OPTIONS("auto", "auto", "0"),
    THREADS_OPTION,
    {0},
};

struct work {
    const struct command_call *call;
    struct adapter_choice choice;
    struct classifier_choice classifier;
    struct clip_stated stated;
    struct adapter_metadata given; /* of --classes; empty: the adapters' classes */
    struct strings classes;
    struct image_names names;
    struct predictor *predictor;
    struct image_reader reader;
    struct output_stream output;
    size_t top;
    struct answer *answers;    /* [batch] */
    struct answer_rank *ranks; /* [batch, top] */
};

static void close_work(struct work *work)
{
    image_reader_close(&work->reader);
    output_stream_close(&work->output);
    free(work->ranks);
    free(work->answers);
    predictor_close(work->predictor);
    adapter_metadata_free(&work->given);
    classifier_choice_free(&work->classifier);
    adapter_choice_free(&work->choice);
    strings_free(&work->classes);
}

static const struct adapter_metadata *metadata_of(const struct work *work)
{
    return work->given.task_count > 0 ? &work->given
           : work->classifier.is_one  ? &work->classifier.metadata
                                      : &work->choice.saved.metadata;
}

/* --- Classes of a file --- */

static status give_classes(struct work *work, const char *path, const char *template, struct error *error)
{
    const char *hole = strstr(template, "{}");
    if (hole == NULL || strstr(hole + 2, "{}") != NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: --template: expected one {} for the class name, found \"%s\"", template);
    TRY(strings_read_lines(&work->classes, path, error));
    TRY(strings_check_texts(&work->classes, path, "class name", error));
    adapter_metadata_create(&work->given, 1);
    struct adapter_task *task = &work->given.tasks[0];
    adapter_names_create(&task->classes, work->classes.count);
    adapter_names_create(&task->templates, 1);
    memcpy(task->classes.items, work->classes.items, work->classes.count * sizeof *work->classes.items);
    task->templates.items[0] = template;
    task->name = "";
    return OK;
}

/* A classifier has a score for each of its classes, whatever they are called. */
static status find_own_classes(struct work *work, const char *path, struct error *error)
{
    size_t classes = work->classifier.about.classes;
    const char *weights = options_text(work->call->options, "weights");
    static const char *const texts[] = {"template", "vocabulary"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (options_given(work->call->options, texts[i]))
            return error_set(error, ERROR_ARGUMENT, "command line: --%s: %s is a classifier, which has no prompts",
                             texts[i], weights);
    if (path == NULL && work->classifier.metadata.task_count == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: does not name its classes (another program wrote it); expected --classes FILE with it",
                         weights);
    if (path == NULL)
        return OK;
    TRY(give_classes(work, path, options_text(work->call->options, "template"), error));
    if (work->classes.count == classes)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "%s: expected a name for each of the %zu classes of %s, found %zu", path,
                     classes, weights, work->classes.count);
}

static status find_classes(struct work *work, struct error *error)
{
    const struct options *given = work->call->options;
    const char *path = options_text(given, "classes");
    if (work->classifier.is_one)
        return find_own_classes(work, path, error);
    if (path != NULL) {
        struct same_names same;
        TRY(give_classes(work, path, options_text(given, "template"), error));
        prompts_find_same_names(&same, (const char *const *)work->classes.items, work->classes.count);
        return same.count == 0 ? OK
                               : error_set(error, ERROR_ARGUMENT,
                                           "%s: \"%s\" and \"%s\" are the same text to the model, which would share "
                                           "their confidence; name each class once",
                                           path, work->classes.items[same.first], work->classes.items[same.second]);
    }
    if (options_given(given, "template"))
        return error_set(error, ERROR_ARGUMENT, "command line: --template: expected --classes FILE with it");
    if (work->choice.file == NULL)
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: predict: expected --adapters FILE, --classes FILE or --weights with the file of a "
            "classifier, found none of them");
    if (work->choice.saved.metadata.task_count == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: does not name its tasks and their classes (another program wrote it, or an older mtil); "
                         "expected --classes FILE with it",
                         work->choice.file);
    return OK;
}

/* --- Output --- */

static void add_columns(const struct work *work, struct table *table)
{
    table_add_column(table, &(struct table_column){.title = "image"});
    if (work->top > 1)
        table_add_column(table, &(struct table_column){.title = "rank"});
    table_add_column(table, &(struct table_column){.title = "class"});
    table_add_column(table, &(struct table_column){.title = "task"});
    table_add_column(table, &(struct table_column){.title = "router"});
    table_add_column(table, &(struct table_column){.title = "confidence", .decimals = 3});
    table_add_column(table, &(struct table_column){.title = "error", .decimals = 4});
}

static void add_router(const struct work *work, struct table *table, int router)
{
    const struct adapter_metadata *metadata = &work->choice.saved.metadata;
    char number[16];
    snprintf(number, sizeof number, "%d", router);
    bool named = !metadata->one_router && router >= 0 && (size_t)router < metadata->task_count;
    if (work->classifier.is_one)
        table_add_empty(table);
    else
        table_add_text(table, router < 0 ? "none" : named ? metadata->tasks[router].name : number);
}

static void add_rows(const struct work *work, struct table *table, size_t i)
{
    const struct adapter_metadata *metadata = metadata_of(work);
    const struct answer *answer = &work->answers[i];
    for (size_t k = 0; k < answer->count; k++) {
        const struct answer_rank *rank = &answer->ranks[k];
        const struct adapter_task *task = &metadata->tasks[rank->task];
        table_add_text(table, work->reader.slots[i].path);
        if (work->top > 1)
            table_add_integer(table, (int64_t)k + 1);
        table_add_text(table, task->classes.items[rank->class_index]);
        table_add_text(table, *task->name != 0 ? task->name : NULL);
        add_router(work, table, answer->router);
        table_add_real(table, rank->confidence);
        table_add_real(table, (double)answer->error);
    }
}

/* --- Work --- */

static status open_reader(struct work *work, const struct command_call *call, struct error *error)
{
    return image_reader_open(&work->reader, call, &work->names, predictor_resolution(work->predictor),
                             predictor_squashes(work->predictor), predictor_batch(work->predictor), error);
}

/* Images that cannot be read are reported when all are answered. */
static status see_all(struct work *work, struct error *error)
{
    struct command_call quiet = *work->call;
    quiet.log = NULL;
    TRY(open_reader(work, &quiet, error));
    do {
        TRY(image_reader_next(&work->reader, error));
        if (work->reader.count > 0)
            TRY(predictor_see(work->predictor, work->reader.pixels, work->reader.count, error));
        progress_report(
            work->call->progress,
            &(struct progress_state){.activity = "look", .step = work->reader.read, .images = work->reader.read});
    } while (work->reader.count > 0);
    image_reader_close(&work->reader);
    work->reader = (struct image_reader){0};
    return OK;
}

static status answer_all(struct work *work, struct error *error)
{
    struct image_reader *reader = &work->reader;
    do {
        TRY(image_reader_next(reader, error));
        if (reader->count > 0)
            TRY(predictor_answer(work->predictor, reader->pixels, reader->count, work->answers, error));
        for (size_t i = 0; i < reader->count; i++)
            add_rows(work, &work->output.table, i);
        if (reader->read > 0)
            TRY(output_stream_print(&work->output, reader->count == 0, error));
        progress_report(work->call->progress,
                        &(struct progress_state){.activity = "predict", .step = reader->read, .images = reader->read});
    } while (reader->count > 0);
    progress_end(work->call->progress);
    if (reader->read + reader->failed == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: predict: expected JPEG, PNG, GIF, WebP or BMP images, found none");
    if (reader->failed > 0)
        return error_set(error, ERROR_FORMAT, "%zu of %zu images could not be read", reader->failed,
                         reader->read + reader->failed);
    return OK;
}

static status allocate(struct work *work, struct error *error)
{
    size_t batch = predictor_batch(work->predictor);
    work->answers = xcalloc(batch, sizeof *work->answers);
    work->ranks = xcalloc(array_size(batch, work->top), sizeof *work->ranks);
    for (size_t i = 0; i < batch; i++)
        work->answers[i].ranks = work->ranks + i * work->top;
    output_stream_open(&work->output, work->call);
    add_columns(work, &work->output.table);
    return open_reader(work, work->call, error);
}

static void fill_settings(struct predictor_settings *settings, const struct work *work)
{
    const struct options *given = work->call->options;
    size_t threads = (size_t)options_integer(given, "threads");
    *settings =
        (struct predictor_settings){.model = {.weights = options_text(given, "weights"),
                                              .vocabulary = options_text(given, "vocabulary"),
                                              .threads = threads,
                                              .backend = backend_settings_of(given)},
                                    .metadata = metadata_of(work),
                                    .adapters = work->choice.file != NULL ? &work->choice.saved : NULL,
                                    .selects = work->choice.router == ROUTER_AUTO,
                                    .router = work->choice.router == ROUTER_AUTO ? ROUTER_NONE : work->choice.router,
                                    .all_labels = options_choice(given, "labels") == 1,
                                    .top = work->top,
                                    .stop = work->call->stop};
    settings->model.backend.threads = threads;
    settings->model.stated = work->stated;
    settings->model.head = work->classifier.is_one ? &head_linear : NULL;
}

static status read_classifier(struct work *work, struct error *error)
{
    const struct options *given = work->call->options;
    TRY(model_choice_read(&work->stated, given, "--heads", "--activation", error));
    TRY(classifier_choice_read(&work->classifier, options_text(given, "weights"), &work->stated, error));
    if (!work->classifier.is_one || work->choice.file == NULL)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "command line: --adapters: adapters belong to a CLIP, but --weights %s is a classifier",
                     options_text(given, "weights"));
}

static status predict(struct work *work, struct error *error)
{
    const struct command_call *call = work->call;
    work->names = (struct image_names){call->arguments, call->argument_count, options_text(call->options, "list")};
    if (work->names.count == 0 && work->names.list == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: predict: expected image files, folders or lists, found none; see mtil predict "
                         "--help");
    TRY(image_names_check(&work->names, error)); /* before other mistakes */
    TRY(adapter_choice_read(&work->choice, call->options, ROUTER_WORDS_AUTO, error));
    TRY(read_classifier(work, error));
    TRY(find_classes(work, error));
    struct predictor_settings settings;
    fill_settings(&settings, work);
    TRY(predictor_open(&work->predictor, &settings, call->log, error));
    log_info(call->log, "computing on %s", predictor_device(work->predictor));
    if (predictor_sees_first(work->predictor))
        TRY(see_all(work, error));
    TRY(allocate(work, error));
    return answer_all(work, error);
}

/* --- A run of a database in place of its files --- */

/* Options that a run's rows stand for. A classifier has no texts. */
#define OF_RUN                                                                                                         \
    "WITH saved AS (SELECT kind, path FROM artifacts WHERE run = %lld AND task = -1), "                                \
    "said AS (SELECT key, trim(value, '[]') AS value FROM settings WHERE run = %lld) "                                 \
    "SELECT 'adapters' AS option, path AS value FROM saved WHERE kind = 'adapters' UNION ALL "                         \
    "SELECT 'weights', coalesce((SELECT path FROM saved WHERE kind = 'weights'), value) FROM said "                    \
    "WHERE key = 'model.weights' AND EXISTS (SELECT 1 FROM saved WHERE kind IN ('adapters', 'weights')) UNION ALL "    \
    "SELECT substr(key, 7), value FROM said WHERE key IN ('model.heads', 'model.activation') UNION ALL "               \
    "SELECT 'vocabulary', value FROM said "                                                                            \
    "WHERE key = 'model.vocabulary' AND NOT EXISTS (SELECT 1 FROM said WHERE key = 'head.name' AND value = 'linear')"

static status read_option(struct options *own, const struct table *rows, size_t row, struct error *error)
{
    const char *name = table_cell_at(rows, row, 0)->text, *value = table_cell_at(rows, row, 1)->text;
    bool is_file = text_has_word("adapters|weights", name), told = options_given(own, name);
    if (told && is_file)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: predict: --run names the weights; expected it or --%s, found both", name);
    if (is_file && strcmp(value, "mini") != 0 && !file_exists(value))
        return error_set(error, ERROR_IO,
                         "%s: not found; run %lld names it as seen from the folder where it ran, so go there, or name "
                         "the file with --%s instead of --run",
                         value, (long long)options_integer(own, "run"), name);
    return told ? OK : options_set(own, name, value, "run", error);
}

static status read_options(struct options *own, struct store *store, int64_t run, struct error *error)
{
    SCOPED(table_free) struct table rows = {0};
    SCOPED(run_row_free) struct run_row about = {0};
    bool files = false;
    TRY(store_read_run(store, run, &about, error));
    OWNED char *sql = path_format(OF_RUN, (long long)run, (long long)run);
    TRY(query_sql(store, sql, &rows, error));
    for (size_t row = 0; row < table_rows(&rows); row++) {
        files |= strcmp(table_cell_at(&rows, row, 0)->text, "weights") == 0;
        TRY(read_option(own, &rows, row, error));
    }
    if (!files)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: run %lld (%s, %s) has saved no weights; mtil query runs lists others", store_path(store),
                         (long long)run, about.suite, about.status);
    return OK;
}

/* The options of the call, with those that a run stands for. */
static status of_run(struct options **own, const struct options *given, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    const struct option *table = options_table(given);
    TRY(options_create(own, table, error));
    for (; table->name != NULL; table++)
        if (options_given(given, table->name))
            TRY(options_set(*own, table->name, options_as_text(given, table->name), "command line", error));
    TRY(store_open(&store, options_text(given, "database"), STORE_READ, error));
    return read_options(*own, store, options_integer(given, "run"), error);
}

static status run(const struct command_call *given, struct error *error)
{
    struct command_call own = *given;
    SCOPED(options_destroy_at) struct options *taken = NULL;
    if (options_given(given->options, "run"))
        TRY(of_run(&taken, given->options, error));
    own.options = taken != NULL ? taken : given->options;
    SCOPED(close_work) struct work work = {.call = &own, .top = (size_t)options_integer(own.options, "top")};
    return predict(&work, error);
}

const struct command command_predict = {
    .name = "predict",
    .arguments = "IMAGES…",
    .summary = "classify images that belong to no suite, with a run's adapters or classifier",
    .details =
        "IMAGES are files, folders (searched at all depths; images are recognised by content or extension), or\n"
        "@FILE, a list with one path per line. An unreadable image is reported, the others are classified, and\n"
        "the exit status is 1.\n"
        "\n"
        "  class       the most likely class of the router's task, and its task\n"
        "  router      the task whose router was used; none: no autoencoder recognised the image, and CLIP without\n"
        "              adapters chose from the classes of all tasks\n"
        "  confidence  softmax over these classes, with the scale of the evaluation (100)\n"
        "  error       the smallest reconstruction error of the selector's autoencoders\n"
        "\n"
        "--run takes adapters, weights, vocabulary, heads and activation of a run, as its rows name them. A "
        "classifier\n"
        "of mtil classify, also given by --weights, needs no texts and no router.\n"
        "\n"
        "A selector that decides per batch decides once for that many consecutive images. CSV and JSON are\n"
        "written while images are classified, the other forms as tables of 10,000 rows.\n",
    .example = "  mtil predict --run 6 photos\n"
               "  mtil predict --adapters adapters.safetensors --top 5 --format csv @photos.txt >answers.csv\n"
               "  mtil predict --weights classifier.safetensors photos\n"
               "  mtil predict --classes animals.txt --template \"a drawing of a {}.\" drawings\n",
    .options = options,
    .most = SIZE_MAX,
    .run = run,
};
