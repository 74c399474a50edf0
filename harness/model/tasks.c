#include "harness/model/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "datasets/prompts.h"
#include "harness/model/class_features.h"
#include "harness/scenario/data.h"
#include "harness/scenario/label_split.h"

struct opening {
    struct data *data;
    struct model *model;
    const struct suite *suite;
};

static status open_classes(const struct model *model, struct task *task, struct error *error)
{
    return model->head != NULL && model->head->open_task != NULL ? model->head->open_task(model, task, error) : OK;
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
    OWNED bool *seen = xcalloc(classes, sizeof *seen);
    for (int split = from; split < SPLITS; split++)
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++)
            seen[dataset_label(dataset, (enum split)split, i)] = true;
    *count = 0;
    for (size_t c = classes; c-- > 0;)
        if (!seen[c]) {
            *first = c;
            ++*count;
        }
}

/* A class without images is a mistake, unless a part of the dataset is enough (on_missing). */
static status require_images(const struct model *model, const struct suite *suite, const struct task *task,
                             struct error *error)
{
    const struct task_settings *s = &task->settings;
    const struct options *options = suite_entry(suite, "tasks", s->name);
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
    log_warn(model->log, "%s under %s: %zu of %zu classes have no images and only compete by name, the first is \"%s\"",
             s->name, s->root, empty, classes, name);
    return OK;
}

static void report_untested(const struct model *model, const struct task *task)
{
    size_t untested, first = 0;
    count_empty(task->dataset, SPLIT_TEST, &untested, &first);
    if (untested > 0)
        log_info(model->log,
                 "%s under %s: accuracy says nothing of classes without a test image: %zu of %zu, the first is "
                 "\"%s\"",
                 task->settings.name, task->settings.root, untested, dataset_classes(task->dataset),
                 dataset_class_name(task->dataset, first));
}

status tasks_check(const struct model *model, const struct suite *suite, const struct task *task, struct error *error)
{
    TRY(check_dataset(task, error));
    if (task->part_name != NULL)
        return OK;
    TRY(require_images(model, suite, task, error));
    report_untested(model, task);
    return OK;
}

/* A built-in suite has other datasets of these names, which are quickly drawn. */
static bool is_drawn(const struct suite *suite)
{
    return strncmp(suite_name(suite), "mini", strlen("mini")) == 0;
}

static status look(const struct suite *suite, const struct task_settings *s, struct error *error)
{
    if (file_is_directory(s->root))
        return OK;
    bool drawn = is_drawn(suite);
    return error_set(error, ERROR_IO, "data.root: there is no folder %s; name the one that holds the datasets%s%s",
                     s->root, drawn ? ", or write the built-in ones there: mtil data mini " : "", drawn ? s->root : "");
}

status tasks_look(const struct suite *suite, struct error *error)
{
    const struct options *data = suite_options(suite, "data");
    for (size_t k = 0; k < options_list_size(data, "order"); k++) {
        struct task_settings s = task_settings_of(suite, options_list_item(data, "order", k));
        TRY(look(suite, &s, error));
    }
    return OK;
}

status tasks_open_dataset(struct dataset **dataset, const struct suite *suite, const struct task_settings *s,
                          const struct log *log, struct error *error)
{
    TRY(look(suite, s, error));
    TRY(dataset_open(dataset, s->reader, s->root, suite_entry(suite, "tasks", s->name), log, error));
    if (s->template != NULL && dataset_set_template(*dataset, s->template, error) != OK)
        return error_context(error, "data.template, tasks.%s.template", s->name);
    return OK;
}

static void keep_shots(const struct opening *o, struct task *task)
{
    const struct model *model = o->model;
    size_t shots = task_shots(suite_options(o->suite, "data"), task->index);
    task->all_images = dataset_size(task->dataset, SPLIT_TRAIN);
    if (shots > 0)
        dataset_keep_shots(task->dataset, shots, model->settings.repeat_shots, model->seed);
    task_settings_count(&task->settings, dataset_size(task->dataset, SPLIT_TRAIN));
}

static status plan_dataset(const struct opening *o, struct task *task)
{
    const struct options *options = suite_entry(o->suite, "tasks", task->settings.name);
    const struct dataset_published *sizes =
        dataset_published_find(task->settings.reader, options_text(options, "split"));
    task->planned = o->model->planned && sizes != NULL && !is_drawn(o->suite);
    if (!task->planned)
        return ERROR_IO;
    dataset_of_sizes(&task->dataset, sizes);
    return OK;
}

static status open_dataset(const struct opening *o, struct task *task, struct error *error)
{
    const struct task_settings *s = &task->settings;
    status opened = tasks_open_dataset(&task->dataset, o->suite, s, o->model->log, error);
    TRY(opened == ERROR_IO ? plan_dataset(o, task) : opened);
    TRY(tasks_check(o->model, o->suite, task, error));
    if (o->model->settings.split.cut == CUT_NONE)
        keep_shots(o, task);
    return OK;
}

static status open_task(const struct opening *o, struct task *task, size_t index, const char *name, struct error *error)
{
    task->index = index;
    task->settings = task_settings_of(o->suite, name);
    if (o->model->groups == GROUPS_NONE)
        task->settings.iterations = task->settings.epochs = 0;
    TRY(open_dataset(o, task, error));
    return o->data->shared_classes ? OK : open_classes(o->model, task, error);
}

/* Classes of the same name are one class, and every task gets the classes of all, in the order in which they are met. */
static status share_classes(const struct opening *o, struct error *error)
{
    struct data *data = o->data;
    size_t most = 0, widest = 0, count = 0;
    for (size_t k = 0; k < data->task_count; k++) {
        most += dataset_classes(data->tasks[k].dataset);
        widest = dataset_classes(data->tasks[k].dataset) > widest ? dataset_classes(data->tasks[k].dataset) : widest;
    }
    OWNED char **all = xcalloc(most, sizeof *all);
    OWNED int32_t *labels = xcalloc(data->task_count * widest, sizeof *labels);
    for (size_t k = 0; k < data->task_count; k++)
        for (size_t c = 0; c < dataset_classes(data->tasks[k].dataset); c++) {
            const char *name = dataset_class_name(data->tasks[k].dataset, c);
            size_t at = 0;
            while (at < count && strcmp(all[at], name) != 0)
                at++;
            if (at == count)
                all[count++] = xstrdup(name);
            labels[k * widest + c] = (int32_t)at;
        }
    status result = OK;
    for (size_t k = 0; k < data->task_count; k++) {
        dataset_set_classes(data->tasks[k].dataset, (const char *const *)all, count, labels + k * widest);
        NEXT(result, open_classes(o->model, &data->tasks[k], error));
    }
    for (size_t c = 0; c < count; c++)
        free(all[c]);
    return result;
}

/* Task k of a cut: "cifar100-1" for k = 0. */
static status open_part(const struct opening *o, size_t k, size_t *classes, struct error *error)
{
    struct data *data = o->data;
    struct task *task = &data->tasks[k];
    size_t count = 0;
    for (size_t i = 0; i < data->cut->classes; i++)
        if (data->cut->task_of[data->cut->order[i]] == k)
            classes[count++] = data->cut->order[i];
    task->index = k;
    task->settings = data->whole.settings;
    task->part_name = path_format("%s-%zu", data->whole.settings.name, k + 1);
    task->settings.name = task->part_name;
    task->dataset = dataset_select(data->whole.dataset, classes, count);
    TRY(check_dataset(task, error));
    keep_shots(o, task);
    return open_classes(o->model, task, error);
}

static status cut(const struct opening *o, struct error *error)
{
    const struct options *options = suite_options(o->suite, "data");
    const struct settings *s = &o->model->settings;
    struct data *data = o->data;
    OWNED float *features = NULL;
    bool encodes = o->model->clip != NULL && o->model->head->of_texts;
    TRY(label_split_check(&data->whole, s->task_count, error));
    TRY(encodes ? class_features_host(o->model, &data->whole, &features, error) : OK);
    return label_split_create(&data->cut, &s->split, s->task_count, options, &data->whole, features,
                              encodes ? o->model->clip->dimensions.embed : 0, error);
}

static status open_parts(const struct opening *o, struct error *error)
{
    struct data *data = o->data;
    if (o->model->planned) /* the cut needs class names and their features */
        return ERROR_IO;
    TRY(open_task(o, &data->whole, 0, options_list_item(suite_options(o->suite, "data"), "order", 0), error));
    TRY(cut(o, error));
    OWNED size_t *classes = xmalloc(array_size(data->cut->classes, sizeof *classes));
    for (size_t k = 0; k < o->model->settings.task_count; k++) {
        data->task_count = k + 1;
        TRY(open_part(o, k, classes, error));
    }
    return OK;
}

/* Predictions are kept in 16 bits (results/store/per_image.h). */
static status number_classes(struct data *data, enum label_space_kind space, struct error *error)
{
    bool joint = space != LABEL_SPACE_TASK;
    for (size_t k = 0; k < data->task_count; k++) {
        data->tasks[k].first_class = joint ? data->class_count : 0;
        data->class_count += k == 0 || !data->shared_classes ? dataset_classes(data->tasks[k].dataset) : 0;
    }
    if (joint && data->class_count > UINT16_MAX)
        return error_set(error, ERROR_ARGUMENT,
                         "evaluation.label_space: the tasks have %zu classes together; expected at most %d",
                         data->class_count, UINT16_MAX);
    return OK;
}

static status open_tasks(const struct opening *o, struct error *error)
{
    const struct settings *s = &o->model->settings;
    struct data *data = o->data;
    data->tasks = xcalloc(s->task_count, sizeof *data->tasks);
    data->shared_classes = s->shared_classes;
    if (s->split.cut != CUT_NONE)
        return open_parts(o, error);
    for (size_t k = 0; k < s->task_count; k++) {
        data->task_count = k + 1;
        TRY(open_task(o, &data->tasks[k], k, options_list_item(suite_options(o->suite, "data"), "order", k), error));
    }
    return data->shared_classes ? share_classes(o, error) : OK;
}

/* Tasks that share a label space, as X-TAIL's, may share names: the published protocol keeps their classes apart. */
static void report_shared_names(const struct data *data, const struct log *log)
{
    size_t count = 0;
    struct same_names same;
    OWNED const char **names = xmalloc(array_size(data->class_count, sizeof *names));
    OWNED const struct task **of = xmalloc(array_size(data->class_count, sizeof(const struct task *)));
    for (size_t k = 0; k < data->task_count; k++)
        for (size_t c = 0; c < dataset_classes(data->tasks[k].dataset); c++) {
            of[count] = &data->tasks[k];
            names[count++] = dataset_class_name(data->tasks[k].dataset, c);
        }
    prompts_find_same_names(&same, names, count);
    if (same.count > 0)
        log_info(log,
                 "%zu of %zu classes have the name of an earlier one, as \"%s\" of %s and %s; they stay separate "
                 "classes, as in the published protocol",
                 same.count, count, names[same.second], of[same.first]->settings.name, of[same.second]->settings.name);
}

status tasks_open(struct data *data, struct model *model, const struct suite *suite, bool joint, struct error *error)
{
    enum label_space_kind space = model->settings.label_space;
    TRY(open_tasks(&(struct opening){data, model, suite}, error));
    TRY(number_classes(data, space, error));
    if (space != LABEL_SPACE_TASK && data->cut == NULL)
        report_shared_names(data, model->log);
    if (!joint)
        return OK;
    TRY(model->head->join_tasks(model, data, error));
    joint_open(data, suite_options(suite, "training"));
    return OK;
}

static status open_named(const struct model *model, struct task *task, const struct adapter_task *named,
                         struct error *error)
{
    task->settings.name = named->name;
    dataset_of_names(&task->dataset, named->classes.items, named->classes.count, named->templates.items,
                     named->templates.count);
    return open_classes(model, task, error);
}

status tasks_open_named(struct data *data, const struct model *model, const struct adapter_metadata *metadata,
                        struct error *error)
{
    data->tasks = xcalloc(metadata->task_count, sizeof *data->tasks);
    for (size_t k = 0; k < metadata->task_count; k++) {
        data->task_count = k + 1;
        data->tasks[k].index = k;
        data->tasks[k].first_class = data->class_count;
        TRY(open_named(model, &data->tasks[k], &metadata->tasks[k], error));
        data->class_count += metadata->tasks[k].classes.count;
    }
    return OK;
}

static void close_task(const struct model *model, struct task *task)
{
    dataset_close(task->dataset);
    if (model->head != NULL && model->head->close_task != NULL)
        model->head->close_task(task);
    free(task->part_name);
}

void tasks_close(struct data *data, const struct model *model)
{
    close_task(model, &data->joint); /* before its parts */
    for (size_t k = 0; k < data->task_count; k++)
        close_task(model, &data->tasks[k]);
    free(data->tasks);
    label_split_destroy(data->cut);
    close_task(model, &data->whole);
}
