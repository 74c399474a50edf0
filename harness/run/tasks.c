#include "harness/run/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/same_names.h"
#include "harness/methods/methods.h"
#include "harness/scenario/joint.h"
#include "harness/scenario/label_split.h"

static status open_classes(const struct experiment *e, struct task *task, struct error *error)
{
    return e->model.head->open_task != NULL ? e->model.head->open_task(e, task, error) : OK;
}

static status check_dataset(const struct task *task, struct error *error)
{
    const struct task_settings *s = &task->settings;
    size_t training = dataset_size(task->dataset, SPLIT_TRAIN), test = dataset_size(task->dataset, SPLIT_TEST);
    if (training == 0 || test == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s under %s: expected images to train on and to test on, found %zu and %zu", s->name, s->root,
                         training, test);
    if (dataset_classes(task->dataset) > UINT16_MAX) /* predictions are kept in 16 bits (results/store/per_image.h) */
        return error_set(error, ERROR_FORMAT, "%s under %s: expected at most %d classes, found %zu", s->name, s->root,
                         UINT16_MAX, dataset_classes(task->dataset));
    return OK;
}

/* Returns the number of classes without images in the splits from `from` on, and the first of them. */
static void count_empty(const struct dataset *dataset, enum split from, size_t *count, size_t *first)
{
    size_t classes = dataset_classes(dataset);
    bool *seen = xcalloc(classes, sizeof *seen);
    for (int split = from; split < SPLITS; split++)
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++)
            seen[dataset_label(dataset, (enum split)split, i)] = true;
    *count = 0;
    for (size_t c = classes; c-- > 0;)
        if (!seen[c]) {
            *first = c;
            ++*count;
        }
    free(seen);
}

/* A class without images is a mistake, unless a part of the dataset is enough (on_missing). */
static status require_images(const struct experiment *e, const struct task *task, struct error *error)
{
    const struct task_settings *s = &task->settings;
    const struct options *options = suite_entry(e->suite, "tasks", s->name);
    size_t empty, first = 0, classes = dataset_classes(task->dataset);
    count_empty(task->dataset, SPLIT_TRAIN, &empty, &first);
    if (empty == 0)
        return OK;
    const char *name = dataset_class_name(task->dataset, first);
    if (strcmp(options_text(options, "on_missing"), "skip") != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s under %s: the class \"%s\" (label %zu) has no images; add some, take it out of the list "
                         "of classes, or set tasks.%s.on_missing: skip to keep only its name",
                         s->name, s->root, name, first, s->name);
    log_warn(e->log, "%s under %s: %zu of %zu classes have no images and only compete by name, the first is \"%s\"",
             s->name, s->root, empty, classes, name);
    return OK;
}

static void report_untested(const struct experiment *e, const struct task *task)
{
    size_t untested, first = 0;
    count_empty(task->dataset, SPLIT_TEST, &untested, &first);
    if (untested > 0)
        log_info(e->log,
                 "%s under %s: classes without a test image, of which accuracy says nothing: %zu of %zu, the first is "
                 "\"%s\"",
                 task->settings.name, task->settings.root, untested, dataset_classes(task->dataset),
                 dataset_class_name(task->dataset, first));
}

status tasks_check(const struct experiment *e, const struct task *task, struct error *error)
{
    TRY(check_dataset(task, error));
    if (task->part_name != NULL)
        return OK;
    TRY(require_images(e, task, error));
    report_untested(e, task);
    return OK;
}

status tasks_open_dataset(struct dataset **dataset, const struct suite *suite, const struct task_settings *s,
                          const struct log *log, struct error *error)
{
    bool drawn = strncmp(suite_name(suite), "mini", strlen("mini")) == 0;
    if (!file_is_directory(s->root))
        return error_set(error, ERROR_IO, "data.root: there is no folder %s; name the one that holds the datasets%s%s",
                         s->root, drawn ? ", or write the built-in ones there: mtil data mini " : "",
                         drawn ? s->root : "");
    TRY(dataset_open(dataset, s->reader, s->root, suite_entry(suite, "tasks", s->name), log, error));
    if (s->template != NULL && dataset_set_template(*dataset, s->template, error) != OK)
        return error_context(error, "data.template, tasks.%s.template", s->name);
    return OK;
}

static status keep_shots(const struct experiment *e, struct task *task, struct error *error)
{
    task->all_images = dataset_size(task->dataset, SPLIT_TRAIN);
    if (e->settings.shots > 0)
        TRY(dataset_keep_shots(task->dataset, e->settings.shots, e->settings.repeat_shots, e->seed, error));
    task_settings_count(&task->settings, dataset_size(task->dataset, SPLIT_TRAIN));
    return OK;
}

static status open_dataset(const struct experiment *e, struct task *task, struct error *error)
{
    const struct task_settings *s = &task->settings;
    TRY(tasks_open_dataset(&task->dataset, e->suite, s, e->log, error));
    TRY(tasks_check(e, task, error));
    return e->settings.split.cut == CUT_NONE ? keep_shots(e, task, error) : OK;
}

static status open_task(struct experiment *e, struct task *task, size_t index, const char *name, struct error *error)
{
    task->index = index;
    settings_of_task(&task->settings, e->suite, name);
    if (e->model.groups == GROUPS_NONE)
        task->settings.iterations = task->settings.epochs = 0;
    TRY(open_dataset(e, task, error));
    return open_classes(e, task, error);
}

/* Task k of a cut: "cifar100-1" for k = 0. */
static status open_part(struct experiment *e, size_t k, size_t *classes, struct error *error)
{
    struct task *task = &e->data.tasks[k];
    size_t count = 0;
    for (size_t i = 0; i < e->data.cut->classes; i++)
        if (e->data.cut->task_of[e->data.cut->order[i]] == k)
            classes[count++] = e->data.cut->order[i];
    task->index = k;
    task->settings = e->data.whole.settings;
    task->part_name = path_format("%s-%zu", e->data.whole.settings.name, k + 1);
    task->settings.name = task->part_name;
    TRY(dataset_select(&task->dataset, e->data.whole.dataset, classes, count, error));
    TRY(check_dataset(task, error));
    TRY(keep_shots(e, task, error));
    return open_classes(e, task, error);
}

static status open_parts(struct experiment *e, struct error *error)
{
    TRY(open_task(e, &e->data.whole, 0, options_list_item(suite_options(e->suite, "data"), "order", 0), error));
    TRY(label_split_create(&e->data.cut, e, &e->data.whole, error));
    size_t *classes = xmalloc(array_size(e->data.cut->classes, sizeof *classes));
    status result = OK;
    for (size_t k = 0; result == OK && k < e->settings.task_count; k++) {
        e->data.task_count = k + 1;
        result = open_part(e, k, classes, error);
    }
    free(classes);
    return result;
}

/* Predictions are kept in 16 bits (results/store/per_image.h). */
static status number_classes(struct experiment *e, struct error *error)
{
    bool joint = e->settings.label_space != LABEL_SPACE_TASK;
    for (size_t k = 0; k < e->data.task_count; k++) {
        e->data.tasks[k].first_class = joint ? e->data.class_count : 0;
        e->data.class_count += dataset_classes(e->data.tasks[k].dataset);
    }
    if (joint && e->data.class_count > UINT16_MAX)
        return error_set(error, ERROR_ARGUMENT,
                         "evaluation.label_space: the tasks have %zu classes together; expected at most %d",
                         e->data.class_count, UINT16_MAX);
    return OK;
}

static status open_tasks(struct experiment *e, struct error *error)
{
    e->data.tasks = xcalloc(e->settings.task_count, sizeof *e->data.tasks);
    if (e->settings.split.cut != CUT_NONE)
        return open_parts(e, error);
    for (size_t k = 0; k < e->settings.task_count; k++) {
        e->data.task_count = k + 1;
        TRY(open_task(e, &e->data.tasks[k], k, options_list_item(suite_options(e->suite, "data"), "order", k), error));
    }
    return OK;
}

/* Tasks that share a label space, as X-TAIL's, may share names: the published protocol keeps their classes apart. */
static void report_shared_names(const struct experiment *e)
{
    size_t count = 0;
    struct same_names same;
    const char **names = xmalloc(array_size(e->data.class_count, sizeof *names));
    const struct task **of = xmalloc(array_size(e->data.class_count, sizeof(const struct task *)));
    for (size_t k = 0; k < e->data.task_count; k++)
        for (size_t c = 0; c < dataset_classes(e->data.tasks[k].dataset); c++) {
            of[count] = &e->data.tasks[k];
            names[count++] = dataset_class_name(e->data.tasks[k].dataset, c);
        }
    same_names_find(&same, names, count);
    if (same.count > 0)
        log_info(e->log,
                 "%zu of %zu classes have the name of an earlier one, as \"%s\" of %s and %s; they stay separate "
                 "classes, as in the published protocol",
                 same.count, count, names[same.second], of[same.first]->settings.name, of[same.second]->settings.name);
    free(names);
    free(of);
}

status tasks_open(struct experiment *e, struct error *error)
{
    TRY(open_tasks(e, error));
    TRY(number_classes(e, error));
    if (e->settings.label_space != LABEL_SPACE_TASK && e->data.cut == NULL)
        report_shared_names(e);
    return e->settings.method->joint ? joint_open(e, error) : OK;
}

static status open_named(const struct experiment *e, struct task *task, const struct adapter_task *named,
                         struct error *error)
{
    task->settings.name = named->name;
    dataset_of_names(&task->dataset, named->classes.items, named->classes.count, named->templates.items,
                     named->templates.count);
    return open_classes(e, task, error);
}

status tasks_open_named(struct experiment *e, const struct adapter_card *card, struct error *error)
{
    e->data.tasks = xcalloc(card->task_count, sizeof *e->data.tasks);
    for (size_t k = 0; k < card->task_count; k++) {
        e->data.task_count = k + 1;
        e->data.tasks[k].index = k;
        e->data.tasks[k].first_class = e->data.class_count;
        TRY(open_named(e, &e->data.tasks[k], &card->tasks[k], error));
        e->data.class_count += card->tasks[k].classes.count;
    }
    return OK;
}

static void close_task(const struct experiment *e, struct task *task)
{
    dataset_close(task->dataset);
    if (e->model.head != NULL && e->model.head->close_task != NULL)
        e->model.head->close_task(task);
    free(task->part_name);
}

void tasks_close(struct experiment *e)
{
    close_task(e, &e->data.joint); /* before its parts */
    for (size_t k = 0; k < e->data.task_count; k++)
        close_task(e, &e->data.tasks[k]);
    free(e->data.tasks);
    label_split_destroy(e->data.cut);
    close_task(e, &e->data.whole);
}
