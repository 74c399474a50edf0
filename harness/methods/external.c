/* A program in any language as the method. It is started once for a run, reads lists of images and lines of JSON, and answers each
 * line that asks for something (docs/external.md). What it computes is its own; order, splits, tests, results, stops and statistics
 * are those of every method. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/coprocess.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/json.h"
#include "datasets/cache/cache_file.h"
#include "datasets/formats/npy.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"
#include "harness/model/weights.h"
#include "harness/scenario/item_list.h"

enum { PROTOCOL = 1, END_SECONDS = 60, EXCERPT = 60 };

struct external {
    struct coprocess *program;
    char *name; /* method.label, or its command */
    const struct stop *stop;
    const struct log *log;
    bool stopped, /* it was asked to */
        planned;  /* nothing is written */
    char *folder; /* of the run */
    double timeout;
};

static struct external *external_of(const struct method_run *run)
{
    return run->state;
}

/* --- Lines --- */

/* Asks it to stop, and waits for its answer behind whatever it has still to say. */
static void stop_politely(struct external *e)
{
    struct error ignored;
    json_t *message = NULL;
    e->stopped = true;
    coprocess_finish(e->program);
    bool stopped = false;
    for (status r = coprocess_send(e->program, json_pack("{s:s}", "type", "stop"), &ignored); r == OK && !stopped;) {
        r = coprocess_receive(e->program, END_SECONDS, &message, &ignored);
        stopped = strcmp(coprocess_text(message, "type"), "stopped") == 0;
        json_decref(message);
    }
    if (!stopped)
        log_warn(e->log, "%s was asked to stop and has not answered with \"stopped\": it is ended", e->name);
}

struct listener {
    own_report *report;
    void *context;
};

static status read_progress(const struct listener *listener, const json_t *message, struct error *error)
{
    const json_t *loss = json_object_get(message, "loss"), *rate = json_object_get(message, "learning_rate");
    json_int_t step = json_integer_value(json_object_get(message, "step")),
               steps = json_integer_value(json_object_get(message, "steps"));
    const struct own_step report = {.step = step > 0 ? (uint64_t)step : 0,
                                    .steps = steps > 0 ? (uint64_t)steps : 0,
                                    .loss = json_is_number(loss) ? json_number_value(loss) : (double)NAN,
                                    .rate = json_is_number(rate) ? json_number_value(rate) : (double)NAN};
    return listener->report(listener->context, &report, error);
}

/* Waits for an answer of this type; listener NULL: there is no progress to report. The caller releases the answer. */
static status wait_for(struct external *e, const char *type, const struct listener *listener, json_t **answer,
                       struct error *error)
{
    for (;;) {
        status result = coprocess_receive(e->program, e->timeout, answer, error);
        if (result == ERROR_STOPPED)
            stop_politely(e);
        TRY(result);
        const char *found = coprocess_text(*answer, "type");
        if (strcmp(found, type) == 0)
            return OK;
        bool progress = listener != NULL && strcmp(found, "progress") == 0;
        if (progress)
            result = read_progress(listener, *answer, error);
        else
            result = error_set(error, ERROR_FORMAT, "%s: expected an answer of type \"%s\", found \"%.*s\"", e->name,
                               type, EXCERPT, found);
        json_decref(*answer);
        *answer = NULL;
        if (result != OK)
            return progress ? result : coprocess_explain(e->program, error);
    }
}

static status ask(struct external *e, json_t *question, const char *type, json_t **answer, struct error *error)
{
    TRY(coprocess_send(e->program, question, error));
    return wait_for(e, type, NULL, answer, error);
}

/* A question whose answer has nothing but its type. */
static status order(struct external *e, json_t *question, const char *type, struct error *error)
{
    SCOPED(json_decref_at) json_t *answer = NULL;
    TRY(ask(e, question, type, &answer, error));
    return OK;
}

/* --- Lists --- */

static status write_items(const struct external *e, const struct item_list *list, size_t task, enum split part,
                          const char *path, struct error *error)
{
    struct file_writer writer;
    TRY(file_writer_open(&writer, path, error));
    status result = OK;
    for (size_t i = 0; result == OK && i < dataset_size(list->data->tasks[task].dataset, part); i++) {
        SCOPED(item_free) struct item item = {0};
        result = stop_check(e->stop, "lists of images were written", error);
        NEXT(result, item_list_read(list, task, part, i, &item, error));
        if (result != OK)
            break;
        SCOPED(json_decref_at) json_t *record = item_record(&item);
        result = item_list_write_record(record, writer.stream, item.path, error);
    }
    if (result == OK)
        return file_writer_close(&writer, error);
    file_writer_abandon(&writer);
    return result;
}

static status add_task(const struct external *e, const struct item_list *list, size_t task, json_t *tasks,
                       struct error *error)
{
    json_t *record;
    TRY(item_list_task(list, task, &record, error));
    json_array_append_new(tasks, record);
    for (int part = 0; part < SPLITS; part++) {
        OWNED char *path = path_format("%s/lists/task%03zu.%s.jsonl", e->folder, task, part_names[part]);
        json_object_set_new(record, part_names[part], json_string(path));
        TRY(e->planned ? OK : write_items(e, list, task, (enum split)part, path, error));
    }
    return OK;
}

static status add_tasks(const struct method_run *run, json_t *tasks, struct error *error)
{
    const struct external *e = external_of(run);
    const struct settings *s = &run->model->settings;
    OWNED char *usual = s->cache.folder == NULL ? cache_folder_default() : NULL,
               *images = s->cache.folder != NULL || usual != NULL
                             ? path_format("%s/images", s->cache.folder != NULL ? s->cache.folder : usual)
                             : path_format("%s/lists/images", e->folder),
               *lists = path_format("%s/lists", e->folder);
    const struct item_list list = {.data = run->data, .images = images, .keeps = true};
    TRY(e->planned ? OK : directory_create(lists, error));
    for (size_t k = 0; k < run->data->task_count; k++)
        TRY(add_task(e, &list, k, tasks, error));
    return OK;
}

/* --- Start --- */

static char *saved_folder(const struct external *e, size_t task)
{
    return path_format("%s/saved/task%03zu", e->folder, task);
}

static status begin_message(const struct method_run *run, size_t trained, json_t **message, struct error *error)
{
    static const char *const spaces[] = {"task", "all", "seen", "open"};
    const struct external *e = external_of(run);
    const struct settings *s = &run->model->settings;
    SCOPED(json_decref_at) json_t *tasks = json_array();
    json_t *resume = json_null();
    TRY(add_tasks(run, tasks, error));
    bool gpu = strcmp(model_device(run->model), "cuda") == 0;
    OWNED char *folder = path_format("%s/program", e->folder), *weights = weights_path(s->weights),
               *vocabulary = vocabulary_path(s->vocabulary),
               *device = gpu ? path_format("cuda:%zu", s->backend.device) : xstrdup("cpu");
    TRY(e->planned ? OK : directory_create(folder, error));
    if (trained > 0) {
        OWNED char *saved = saved_folder(e, trained - 1);
        resume = json_pack("{s:s, s:i}", "folder", saved, "after_task", (int)trained - 1);
    }
    *message = json_pack("{s:s, s:i, s:s, s:I, s:o, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "type", "begin",
                         "mtil", PROTOCOL, "role", "method", "seed", (json_int_t)run->model->seed, "options",
                         coprocess_options(run->options), "threads",
                         (int)(s->threads > 0 ? s->threads : threads_available()), "device", device, "precision",
                         precision_name(s->backend.precision), "folder", folder, "label_space", spaces[s->label_space],
                         "weights", weights, "vocabulary", vocabulary, "tasks", TAKE(tasks), "resume", resume);
    return OK;
}

static status check_ready(const struct external *e, const json_t *ready, struct own_facts *facts, struct error *error)
{
    const json_t *parameters = json_object_get(ready, "parameters"), *zero_shot = json_object_get(ready, "zero_shot");
    if ((parameters != NULL && (!json_is_integer(parameters) || json_integer_value(parameters) < 0)) ||
        (zero_shot != NULL && !json_is_boolean(zero_shot)))
        return error_set(error, ERROR_FORMAT,
                         "%s: \"ready\" expects a whole number of parameters and zero_shot true or false", e->name);
    *facts = (struct own_facts){(size_t)json_integer_value(parameters), json_is_true(zero_shot)};
    log_info(e->log, "%s is ready: %s %s", e->name, coprocess_text(ready, "name"), coprocess_text(ready, "version"));
    return OK;
}

static status start_program(struct external *e, const struct options *options, struct error *error)
{
    size_t count;
    OWNED const char **words = options_list_items(options, "command", &count);
    OWNED char *log = path_format("%s/program.log", e->folder);
    return coprocess_start(
        &e->program, &(struct coprocess_settings){.name = e->name, .arguments = words, .log = log, .stop = e->stop},
        error);
}

static status start(struct method_run *run, const struct own_start *start, struct own_facts *facts, struct error *error)
{
    struct external *e = external_of(run);
    SCOPED(json_decref_at) json_t *ready = NULL, *message = NULL;
    if (run->model->settings.imported)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: method.imported: its results were made elsewhere and cannot be computed here; set "
                         "method.command, or import them with mtil import");
    e->folder = path_absolute(start->folder);
    e->stop = start->stop;
    e->log = start->log;
    e->timeout = options_real(run->options, "timeout");
    const char *label = options_text(run->options, "label");
    e->name = label != NULL ? xstrdup(label) : coprocess_command(run->options);
    TRY(begin_message(run, start->trained, &message, error));
    if (start_program(e, run->options, error) != OK)
        return error_context(error, "method.command");
    TRY(ask(e, TAKE(message), "ready", &ready, error));
    return check_ready(e, ready, facts, error);
}

/* --- Tasks --- */

static status train(struct method_run *run, const struct task *task, own_report *report, void *context,
                    struct error *error)
{
    struct external *e = external_of(run);
    const struct listener listener = {report, context};
    SCOPED(json_decref_at) json_t *answer = NULL;
    TRY(coprocess_send(e->program, json_pack("{s:s, s:i}", "type", "train", "task", (int)task->index), error));
    TRY(wait_for(e, "trained", &listener, &answer, error));
    const json_t *of = json_object_get(answer, "task");
    if (of != NULL && (!json_is_integer(of) || json_integer_value(of) != (json_int_t)task->index))
        return error_set(error, ERROR_FORMAT, "%s: expected that task %zu is trained, found another one", e->name,
                         task->index);
    return OK;
}

static status read_label(const struct external *e, const struct task *task, struct label_range range, size_t item,
                         int64_t label, uint16_t *predicted, struct error *error)
{
    if (label < (int64_t)range.first || label >= (int64_t)range.end)
        return error_set(error, ERROR_FORMAT, "%s: test image %zu of %s: expected a label from %zu to %zu, found %lld",
                         e->name, item, task->settings.name, range.first, range.end - 1, (long long)label);
    predicted[item] = (uint16_t)label;
    return OK;
}

static status read_labels(const struct external *e, const struct task *task, struct label_range range,
                          const json_t *labels, uint16_t *predicted, struct error *error)
{
    size_t n = dataset_size(task->dataset, SPLIT_TEST);
    if (!json_is_array(labels) || json_array_size(labels) != n)
        return error_set(error, ERROR_FORMAT, "%s: test of %s: expected %zu labels, one for each image, found %zu",
                         e->name, task->settings.name, n, json_array_size(labels));
    for (size_t i = 0; i < n; i++) {
        const json_t *label = json_array_get(labels, i);
        if (!json_is_integer(label))
            return error_set(error, ERROR_FORMAT, "%s: test image %zu of %s: expected a whole number", e->name, i,
                             task->settings.name);
        TRY(read_label(e, task, range, i, json_integer_value(label), predicted, error));
    }
    return OK;
}

static status read_file(const struct external *e, const struct task *task, struct label_range range, const char *path,
                        uint16_t *predicted, struct error *error)
{
    OWNED int64_t *labels = NULL;
    size_t n = dataset_size(task->dataset, SPLIT_TEST), found;
    TRY(npy_read_integers(path, &labels, &found, error));
    TRY(found == n ? OK
                   : error_set(error, ERROR_FORMAT, "%s: %s: expected %zu labels of %s, found %zu", e->name, path, n,
                               task->settings.name, found));
    for (size_t i = 0; i < n; i++)
        TRY(read_label(e, task, range, i, labels[i], predicted, error));
    return OK;
}

static status test(struct method_run *run, int64_t after, const struct task *task, uint16_t *predicted,
                   struct error *error)
{
    struct external *e = external_of(run);
    SCOPED(json_decref_at) json_t *answer = NULL;
    struct label_range range = data_labels(run->data, run->model->settings.label_space, after, task);
    TRY(ask(e, json_pack("{s:s, s:I, s:i}", "type", "test", "after_task", (json_int_t)after, "task", (int)task->index),
            "predicted", &answer, error));
    const json_t *of = json_object_get(answer, "task"), *file = json_object_get(answer, "file");
    status result = OK;
    if (!json_is_integer(of) || json_integer_value(of) != (json_int_t)task->index)
        result = error_set(error, ERROR_FORMAT, "%s: expected predictions of task %zu, found those of another one",
                           e->name, task->index);
    else if (json_is_string(file))
        result = read_file(e, task, range, json_string_value(file), predicted, error);
    else
        result = read_labels(e, task, range, json_object_get(answer, "labels"), predicted, error);
    return result == OK ? OK : coprocess_explain(e->program, error);
}

/* What was saved two tasks ago is no longer needed: the resume file names this task or the one before. */
static status save(struct method_run *run, const struct task *task, struct error *error)
{
    struct external *e = external_of(run);
    OWNED char *folder = saved_folder(e, task->index);
    TRY(directory_create(folder, error));
    TRY(order(e, json_pack("{s:s, s:s}", "type", "save", "folder", folder), "saved", error));
    if (task->index > 1) {
        OWNED char *old = saved_folder(e, task->index - 2);
        directory_remove(old);
    }
    return OK;
}

static status end(struct method_run *run, struct error *error)
{
    struct external *e = external_of(run);
    TRY(coprocess_send(e->program, json_pack("{s:s}", "type", "end"), error));
    return coprocess_end(e->program, END_SECONDS, error);
}

static status describe(struct method_run *run, struct text *text, struct error *error)
{
    struct external *e = external_of(run);
    SCOPED(json_decref_at) json_t *message = NULL;
    e->planned = true;
    e->folder = path_format("%s/RUN", run->model->settings.folder);
    TRY(begin_message(run, 0, &message, error));
    OWNED char *line = json_dumps(message, JSON_COMPACT);
    text_add(text, "%s", line != NULL ? line : "");
    return OK;
}

static void close_external(struct method_run *run)
{
    struct external *e = external_of(run);
    if (e->program != NULL && stop_requested(e->stop) && !e->stopped)
        stop_politely(e);
    coprocess_close(e->program);
    free(e->folder);
    free(e->name);
}

static status check(const struct settings *settings, struct error *error)
{
    if (options_list_size(settings->method_options, "command") == 0 && !settings->imported)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: method.command is empty; expected the program's words, as in "
                         "method.command=\"python3 my_method.py\"");
    if (settings->gpus > 1)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: run.gpus: an external program decides by itself how many GPUs it uses; leave it out");
    return OK;
}

static const struct option options[] = {
    COPROCESS_OPTIONS("3600", "method.options.rate=0.1"),
    OPTION(TEXT, "label", NULL, "name of the program in tables, where the suite has no rows"),
    OPTION(BOOLEAN, "imported", "no", "results come from files, by mtil import, which sets this"),
    {0}};

static uint64_t peak(const struct method_run *run)
{
    return coprocess_peak(external_of(run)->program);
}

static const struct method_own own = {
    .start = start, .train = train, .test = test, .save = save, .end = end, .peak = peak, .describe = describe};

const struct method method_external = {.name = "external",
                                       .source = "a program of one's own (docs/external.md)",
                                       .formula = "predictions of method.command",
                                       .options = options,
                                       .state_size = sizeof(struct external),
                                       .check = check,
                                       .close = close_external,
                                       .own = &own};
