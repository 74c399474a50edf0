/* mtil data list: what a run of a suite reads, for programs of one's own. */
#include <errno.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/json.h"
#include "core/scope.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/run/identity/surveyor.h"
#include "harness/run/run.h"
#include "harness/scenario/item_list.h"

enum format { FORMAT_JSON, FORMAT_CSV };

static const struct option options[] = {
    OPTION_ONE_OF("format", "json|csv", "json",
                  "json: lines of JSON, a task with its classes and prompts, then its items; csv: the items alone"),
    OPTION(TEXT, "images", NULL,
           "folder for PNG files of images that lie in larger files, as CIFAR's; paths lead there then"),
    OPTION_NUMBER(INTEGER, "seed", 0, 1e15, NULL, "the same as run.seeds=N: its few shots"),
    {0}};

/* As in the inputs of a run. */
static void add_digests(json_t *record, const struct survey *survey)
{
    json_object_set_new(record, "prompts_digest", json_string(survey->prompts));
    json_object_set_new(record, "train_digest", json_string(survey->splits[SPLIT_TRAIN].digest));
    json_object_set_new(record, "test_digest", json_string(survey->splits[SPLIT_TEST].digest));
}

struct listing {
    const struct command_call *call;
    struct run *run;
    struct item_list list;
    struct output_stream items; /* CSV */
};

static void close_listing(struct listing *l)
{
    output_stream_close(&l->items);
}

static status list_item(struct listing *l, const struct item *item, struct error *error)
{
    const struct task *task = &l->run->data.tasks[item->task];
    struct table *table = &l->items.table;
    if (options_choice(l->call->options, "format") == FORMAT_JSON) {
        SCOPED(json_decref_at) json_t *record = item_record(item);
        return record != NULL
                   ? item_list_write_record(record, l->call->out, "standard output", error)
                   : error_set(error, ERROR_FORMAT, "%s: the path is not UTF-8, and JSON can hold no other; rename it",
                               item->path);
    }
    table_add_integer(table, (int64_t)item->task);
    table_add_text(table, task->settings.name);
    table_add_text(table, part_names[item->part]);
    table_add_integer(table, (int64_t)item->index);
    table_add_text(table, item->path);
    if (item->record >= 0)
        table_add_integer(table, item->record);
    else
        table_add_text(table, "");
    table_add_integer(table, item->label);
    table_add_text(table, dataset_class_name(task->dataset, (size_t)item->label));
    return output_stream_print(&l->items, false, error);
}

static status list_part(struct listing *l, size_t k, enum split part, struct error *error)
{
    for (size_t i = 0; i < dataset_size(l->run->data.tasks[k].dataset, part); i++) {
        SCOPED(item_free) struct item item = {0};
        TRY(stop_check(l->call->stop, "items were listed", error));
        TRY(item_list_read(&l->list, k, part, i, &item, error));
        TRY(list_item(l, &item, error));
    }
    return OK;
}

static status list_task(struct listing *l, size_t k, struct error *error)
{
    if (options_choice(l->call->options, "format") == FORMAT_JSON) {
        SCOPED(json_decref_at) json_t *record = NULL;
        TRY(item_list_task(&l->list, k, &record, error));
        add_digests(record, &l->run->data.tasks[k].survey);
        TRY(item_list_write_record(record, l->call->out, "standard output", error));
    }
    TRY(list_part(l, k, SPLIT_TRAIN, error));
    return list_part(l, k, SPLIT_TEST, error);
}

static status list_all(struct listing *l, struct error *error)
{
    static const char *const columns[] = {"task", "name", "part", "item", "path", "record", "label", "class"};
    output_stream_open(&l->items, l->call);
    l->items.format = TABLE_CSV;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(&l->items.table, &(struct table_column){.title = columns[i]});
    for (size_t k = 0; k < l->run->data.task_count; k++)
        TRY(list_task(l, k, error));
    return options_choice(l->call->options, "format") == FORMAT_CSV ? output_stream_print(&l->items, true, error) : OK;
}

/* Images that cannot be decoded are left out, as a run leaves them out, and found by the same survey. */
static status survey(struct run *run, const struct command_call *call, struct error *error)
{
    SCOPED(surveyor_close) struct surveyor surveyor = {0};
    TRY(surveyor_open(&surveyor, &run->model.settings, call->log, call->progress, call->stop, error));
    TRY(surveyor_tasks(run, &surveyor, error));
    progress_end(call->progress);
    return OK;
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(strings_free) struct strings words = {0};
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    suite_words_add(&words, call);
    TRY(suite_words_load(&suite, call, &words, error));
    SCOPED(run_close_at) struct run *opened = NULL;
    TRY(run_open_data(&opened, suite, settings_seed(suite, 0), DATA_READ, call->log, error));
    SCOPED(close_listing)
    struct listing listing = {
        .call = call, .run = opened, .list = {.data = &opened->data, .images = options_text(call->options, "images")}};
    TRY(survey(opened, call, error));
    return list_all(&listing, error);
}

const struct command command_data_list = {
    .name = "data list",
    .arguments = "SUITE [key=value…]",
    .summary = "print exactly what a run reads: tasks, classes, prompts, and every image with its label",
    .details = "SUITE and key=value are those of mtil run. Items come in the order of the run's own lists, after "
               "few-shot choices,\n"
               "parts of a dataset and images that are left out; labels count within their task. No weights are "
               "needed, unless\n"
               "data.split_by is labels. docs/external.md has the fields.\n",
    .example = "  mtil data list mini data.order=mnist,dtd --images=png > items.jsonl\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};
