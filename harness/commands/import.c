/* mtil import: results of methods that ran elsewhere, beside those that ran here. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/scope.h"
#include "datasets/formats/json.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/run/imported.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    OPTION(TEXT, "method", NULL, "name of the method, which is the run's row in tables; required"),
    OPTION_NUMBER(INTEGER, "seed", 0, 1e15, NULL, "seed of the run; required"),
    OPTION_ONE_OF("unit", "percent|share", NULL,
                  "what accuracies are: percent (71.2) or shares (0.712); required where there are any"),
    OPTION(LIST, "images", NULL,
           "test images of each task, where the data are not there: they have to be the published numbers"),
    OPTION(FILE, "settings", NULL,
           "file with the method's own settings as an object of JSON, {\"rate\": 0.1}: method.options.rate"),
    OPTION(TEXT, "note", NULL, "purpose of the run, stored with it"),
    {0}};

/* key=value, unless a file is called so. */
static bool is_word(const char *argument)
{
    size_t key = strspn(argument, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return key > 0 && argument[key] == '=' && !file_exists(argument);
}

static status add_settings(struct strings *words, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    SCOPED(json_decref_at) json_t *settings = NULL;
    json_t *value;
    const char *key;
    TRY(file_read(path, FILE_LIMIT, &bytes, error));
    TRY(json_parse(&settings, bytes.data, bytes.size, path, error));
    if (!json_is_object(settings))
        return error_set(error, ERROR_FORMAT, "%s: expected an object of JSON", path);
    json_object_foreach(settings, key, value)
    {
        OWNED char *text = json_is_string(value)
                               ? xstrdup(json_string_value(value))
                               : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
        strings_format(words, "method.options.%s=%s", key, text != NULL ? text : "");
    }
    return OK;
}

static status make_words(const struct command_call *call, struct strings *words, struct error *error)
{
    const char *method = options_text(call->options, "method"), *note = options_text(call->options, "note"),
               *settings = options_text(call->options, "settings");
    for (size_t i = 2; i < call->argument_count; i++)
        if (is_word(call->arguments[i]))
            strings_format(words, "%s", call->arguments[i]);
    strings_format(words, "method.name=external");
    strings_format(words, "method.imported=yes");
    strings_format(words, "method.label=%s", method);
    strings_format(words, "run.seeds=%" PRId64, options_integer(call->options, "seed"));
    strings_format(words, "run.database=%s", call->arguments[0]);
    if (note != NULL)
        strings_format(words, "run.note=%s", note);
    return settings != NULL ? add_settings(words, settings, error) : OK;
}

static status check_options(const struct command_call *call, const struct imported *imported, struct error *error)
{
    static const char *const needed[] = {"method", "seed"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!options_given(call->options, needed[i]))
            return error_set(error, ERROR_ARGUMENT, "command line: --%s: expected one, found none", needed[i]);
    if (!imported->predicts && !options_given(call->options, "unit"))
        return error_set(error, ERROR_ARGUMENT,
                         "command line: --unit: expected percent or share, which %s does not say by itself",
                         imported->files[0].path);
    return OK;
}

static status read_files(const struct command_call *call, struct imported *imported, struct error *error)
{
    for (size_t i = 2; i < call->argument_count; i++)
        if (!is_word(call->arguments[i]))
            TRY(imported_read(imported, call->arguments[i], error));
    if (imported->count == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected a file of results, or - for standard input, found none");
    TRY(check_options(call, imported, error));
    imported->unit = options_given(call->options, "unit") && options_choice(call->options, "unit") == 1 ? 1 : 100;
    return OK;
}

static status record(const struct command_call *call, const struct imported *imported, struct run *run,
                     struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    struct imported_result found;
    if (imported->inexact > 0)
        log_warn(call->log, "%zu accuracies are no multiple of one image (%s); the nearest is stored",
                 imported->inexact, imported->first);
    TRY(store_open_stoppable(&store, call->arguments[0], STORE_WRITE, call->stop, error));
    TRY(imported_record(imported, run, store, call->stop, &found, error));
    if (found.known)
        log_info(call->log, "run %" PRId64 " has these results already: nothing was changed", found.run);
    return output_end_of_run(call, store, found.run, error);
}

/* Without the data, the numbers of images have to be known otherwise. */
static status check_images(const struct command_call *call, const struct run *run, struct error *error)
{
    size_t count = options_list_size(call->options, "images"), tasks = run->data.task_count;
    if (count > 0 && count != tasks)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: --images: expected a number for each of %zu tasks, found %zu", tasks, count);
    for (size_t k = 0; k < count; k++) {
        const char *said = options_list_item(call->options, "images", k);
        size_t images = dataset_size(run->data.tasks[k].dataset, SPLIT_TEST);
        int64_t number;
        if (!parse_integer(said, &number) || number != (int64_t)images)
            return error_set(error, ERROR_ARGUMENT, "command line: --images: %s has %zu test images%s, found %s",
                             run->data.tasks[k].settings.name, images,
                             run->data.tasks[k].planned ? " as published; other lists need the data" : "", said);
    }
    return OK;
}

static status open_data(const struct command_call *call, const struct imported *imported, const struct suite *suite,
                        struct run **run, struct error *error)
{
    struct error ignored;
    uint64_t seed = settings_seed(suite, 0);
    status opened = run_open_data(run, suite, seed, DATA_READ, call->log, error);
    if (opened != ERROR_IO || imported->predicts)
        return opened;
    if (options_list_size(call->options, "images") == 0)
        return error_context(error, "without the data, --images has to say how many test images each task has");
    return run_open_data(run, suite, seed, DATA_COUNTED, call->log, &ignored) == OK ? OK : opened;
}

static status run(const struct command_call *call, struct error *error)
{
    const struct command_call loading = {
        .options = call->options, .arguments = call->arguments + 1, .argument_count = 1};
    SCOPED(imported_free) struct imported imported = {0};
    SCOPED(strings_free) struct strings words = {0};
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    SCOPED(run_close_at) struct run *own = NULL;
    TRY(read_files(call, &imported, error));
    TRY(make_words(call, &words, error));
    TRY(suite_words_load(&suite, &loading, &words, error));
    TRY(open_data(call, &imported, suite, &own, error));
    TRY(check_images(call, own, error));
    TRY(imported_place(&imported, own, error));
    return record(call, &imported, own, error);
}

const struct command command_import = {
    .name = "import",
    .arguments = "DATABASE SUITE [key=value…] FILE…",
    .summary = "store the results of a method that ran elsewhere as a run",
    .details = "FILE has a line for each stage, {\"acc_per_task\": [71.2, null, …]}, or CSV whose header names the "
               "tasks, or a line\n"
               "for each test, {\"after_task\": 0, \"task\": \"dtd\", \"predicted\": [4, 0, …]}, in the order of mtil "
               "data list; - is\n"
               "standard input. SUITE and key=value say what was run. All or nothing is stored, and the same file "
               "twice is stored\n"
               "once. Predictions need the data; for a matrix, --images may stand for them. Such a run has method "
               "external, and its\n"
               "row says (imported).\n",
    .example = "  mtil import results.db mtil order=II matrix.jsonl --method zscl --seed 1 --unit percent\n",
    .options = options,
    .least = 3,
    .most = SIZE_MAX,
    .run = run,
};
