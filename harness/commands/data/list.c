/* mtil data list: what a run of a suite reads, for programs of one's own. */
#include <errno.h>
#include <stdlib.h>

#include "core/alloc.h"
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

static status list_item(struct listing *l, const struct item *item, struct error *error)
{
    const struct task *task = &l->run->data.tasks[item->task];
    struct table *table = &l->items.table;
    if (options_choice(l->call->options, "format") == FORMAT_JSON) {
        json_t *record = item_record(item);
        status result = record != NULL
                            ? item_list_write_record(record, l->call->out, "standard output", error)
                            : error_set(error, ERROR_FORMAT,
                                        "%s: the path is not UTF-8, and JSON can hold no other; rename it", item->path);
        json_decref(record);
        return result;
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
        struct item item;
        TRY(stop_check(l->call->stop, "items were listed", error));
        TRY(item_list_read(&l->list, k, part, i, &item, error));
        status result = list_item(l, &item, error);
        item_free(&item);
        TRY(result);
    }
    return OK;
}

static status list_task(struct listing *l, size_t k, struct error *error)
{
    if (options_choice(l->call->options, "format") == FORMAT_JSON) {
        json_t *record;
        TRY(item_list_task(&l->list, k, &record, error));
        add_digests(record, &l->run->data.tasks[k].survey);
        status result = item_list_write_record(record, l->call->out, "standard output", error);
        json_decref(record);
        TRY(result);
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
    status result = OK;
    for (size_t k = 0; result == OK && k < l->run->data.task_count; k++)
        result = list_task(l, k, error);
    if (options_choice(l->call->options, "format") == FORMAT_CSV)
        NEXT(result, output_stream_print(&l->items, true, error));
    output_stream_close(&l->items);
    return result;
}

/* Images that cannot be decoded are left out, as a run leaves them out, and found by the same survey. */
static status survey(struct run *run, const struct command_call *call, struct error *error)
{
    struct surveyor surveyor;
    TRY(surveyor_open(&surveyor, &run->model.settings, call->log, call->progress, call->stop, error));
    status result = surveyor_tasks(run, &surveyor, error);
    surveyor_close(&surveyor);
    progress_end(call->progress);
    return result;
}

static status list_suite(const struct command_call *call, const struct suite *suite, struct error *error)
{
    struct run *run;
    TRY(run_open_data(&run, suite, settings_seed(suite, 0), DATA_READ, call->log, error));
    struct listing listing = {
        .call = call, .run = run, .list = {.data = &run->data, .images = options_text(call->options, "images")}};
    status result = survey(run, call, error);
    NEXT(result, list_all(&listing, error));
    run_close(run);
    return result;
}

static status run(const struct command_call *call, struct error *error)
{
    struct strings words = {0};
    struct suite *suite = NULL;
    suite_words_add(&words, call);
    status result = suite_words_load(&suite, call, &words, error);
    NEXT(result, list_suite(call, suite, error));
    suite_destroy(suite);
    strings_free(&words);
    return result;
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
