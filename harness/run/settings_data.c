#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/options.h"
#include "core/scope.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/model/tasks.h"
#include "harness/run/settings_internal.h"
#include "harness/scenario/label_split.h"
#include "harness/scenario/task_settings.h"
#include "harness/selectors/selector.h"
#include "harness/train/image_pass.h"
#include "models/optimizers/optimizer.h"
#include "results/store/per_image.h"

const struct option settings_evaluation_options[] = {
    OPTION_ONE_OF("per_image", "none|bits|predictions", "predictions",
                  "record of every test image: none, right or wrong (bits), or its prediction",
                  INTO(struct settings, per_image)),
    OPTION_NUMBER(INTEGER, "patch_images", 0, 64, "0",
                  "test images of each task, evenly spaced in its list, whose patches' experts are recorded in the "
                  "last test, for pictures of the report; results do not depend on it",
                  INTO(struct settings, patch_images), .when = "adapter.routing=per_token and per_image!=none",
                  .incidental = "*"),
    OPTION_ONE_OF(
        "label_space", "task|all|seen|open", "task",
        "classes that an image is compared with: those of its task, of all tasks (X-TAIL), of the tasks trained so far "
        "(seen: class-incremental), or of these for an image of one of them and else of its task (open: ODCL-CIL)",
        INTO(struct settings, label_space)),
    {0}};

const struct option settings_data_options[] = {
    OPTION(TEXT, "root", "data/mini", "folder that contains the datasets", INTO(struct settings, data_root),
           .synonyms = "data_dir|data_root|data_path|dataset_root|data_location", .incidental = "*"),
    OPTION(LIST, "order", ORDER_I,
           "tasks in the order of training: a list, or I or II for MTIL's orders; mnist@2 is a second visit of mnist, "
           "with its settings",
           .synonyms = "tasks|datasets|dataset|dataset_order"),
    OPTION(TEXT, "order_name", NULL, "name of the order in the results; default: I, II or the list", .incidental = "*"),
    OPTION_SPLIT,
    OPTION_ON_MISSING,
    OPTION_ON_UNREADABLE,
    OPTION_CLASS_NAMES,
    OPTION_ONE_OF(
        "setting", "full_shot|few_shot|x_tail|class_incremental|open_domain|domain_incremental", NULL,
        "name of the setting in the results; it follows from shots and label_space, and must agree with them if given",
        .incidental = "*"),
    OPTION_NUMBER(INTEGER, "shots", 0, 1e9, "0", "training images per class, the first n of a seeded shuffle; 0: all",
                  .synonyms = "num_shots|few_shot|k_shot|nshot"),
    OPTION(LIST, "task_shots", "",
           "training images per class, a number for each task, 0: all; in place of shots, which every task has",
           .when = "task_shots=*"),
    OPTION_ONE_OF("short_classes", "all|repeat", "all",
                  "images of a class with fewer than shots: all of them, or as many as shots, drawn with replacement",
                  INTO(struct settings, repeat_shots), .when = "shots!=0 or task_shots=*"),
    OPTION(TEXT, "template", NULL, "template with {} for the class, in place of the datasets' own templates"),
    OPTION(BOOLEAN, "shared_classes", "no",
           "one label space of all tasks, in which classes of the same name are one class: domain-incremental "
           "learning, with evaluation.label_space: task",
           INTO(struct settings, shared_classes), .when = "shared_classes=true"),
    OPTION_ONE_OF("split_by", "none|labels|order", "none",
                  "rule that cuts the only dataset of order into tasks: labels by the meaning of its class names, "
                  "order by a given order of its classes"),
    {0}};

static const struct option label_split_options[] = {
    OPTION_NUMBER(INTEGER, "parts", 2, SETTINGS_TASKS, "10", "number of tasks"),
    OPTION_ONE_OF("similarity", "together|apart|random|mixed", "together",
                  "place of similar classes: together in one task, apart in different ones, random, or mixed: together "
                  "in the first half of the tasks, apart in the others"),
    OPTION_NUMBER(INTEGER, "split_seed", 0, 4294967295.0, "42", "seed of the cut, the same for all runs"),
    {0}};

static const struct option class_order_options[] = {
    OPTION(LIST, "class_order", "",
           "class numbers in the order of training: a list, cifar100 or tinyimagenet for the published orders, or "
           "numpy-SEED for NumPy's permutation, as numpy-1993 of PyCIL; empty: by number"),
    OPTION_NUMBER(INTEGER, "first", 0, UINT16_MAX, "0",
                  "classes of a first, larger task before the tasks of equal size; 0: no such task"),
    OPTION_NUMBER(INTEGER, "parts", 1, SETTINGS_TASKS - 1, "10",
                  "number of tasks of equal size, or larger by one class where they do not divide; with "
                  "data.increment, if not given, as many as that makes of the classes"),
    OPTION(LIST, "increment", "0",
           "classes of each part, the last of which has what is left; a list has the size of each part, "
           "and all classes in sum; 0: parts of equal size",
           .when = "increment=* and increment!=0"),
    {0}};

static const struct option *const split_options[] = {
    [CUT_NONE] = NULL, [CUT_BY_LABELS] = label_split_options, [CUT_BY_ORDER] = class_order_options};

static const char *const splits[] = {"none", "labels", "order"};

enum { WAYS = sizeof splits / sizeof *splits };

const char *settings_split_name(size_t index)
{
    return index < WAYS ? splits[index] : NULL;
}

status settings_split_keys(const char *name, const struct option **table, struct error *error)
{
    for (size_t i = 0; i < WAYS; i++)
        if (strcmp(name, splits[i]) == 0) {
            *table = split_options[i];
            return OK;
        }
    return error_unknown_word(error, "data.split_by", "way to split", name, splits, WAYS);
}

const char *settings_data_shorthand(const char *key, const char *value)
{
    return strcmp(key, "order") == 0 ? order_tasks(value) : NULL;
}

static struct split_settings read_split(const struct options *o)
{
    struct split_settings split = {.cut = (enum cut_kind)options_choice(o, "split_by")};
    if (split.cut != CUT_NONE)
        split.parts = (size_t)options_integer(o, "parts");
    if (split.cut == CUT_BY_LABELS) {
        split.goal = (enum partition_goal)options_choice(o, "similarity");
        split.seed = (uint64_t)options_integer(o, "split_seed");
    }
    if (split.cut == CUT_BY_ORDER)
        split.first = (size_t)options_integer(o, "first");
    return split;
}

/* The most of all tasks; 0: every task has all its images. A list that is wrong is refused later. */
static size_t most_shots(const struct options *o)
{
    size_t most = task_shots(o, 0);
    for (size_t k = 1; k < options_list_size(o, "task_shots"); k++)
        most = task_shots(o, k) > most ? task_shots(o, k) : most;
    return most;
}

static const char *setting_of(enum label_space_kind label_space, size_t shots, bool shared)
{
    if (shared)
        return "domain_incremental";
    if (label_space == LABEL_SPACE_TASK)
        return shots > 0 ? "few_shot" : "full_shot";
    return label_space == LABEL_SPACE_ALL    ? "x_tail"
           : label_space == LABEL_SPACE_OPEN ? "open_domain"
                                             : "class_incremental";
}

status settings_count_parts(struct settings *s, const struct suite *suite, struct error *error)
{
    const struct options *data = suite_options(suite, "data");
    SCOPED(dataset_close_at) struct dataset *whole = NULL;
    if (s->split.cut != CUT_BY_ORDER || !class_order_counts(data) || options_list_size(data, "order") != 1)
        return OK;
    struct task_settings task = task_settings_of(suite, options_list_item(data, "order", 0));
    TRY(tasks_open_dataset(&whole, suite, &task, NULL, error));
    s->split.parts = class_order_parts(data, dataset_classes(whole));
    s->task_count = s->split.parts + (s->split.first > 0 ? 1 : 0);
    return OK;
}

void settings_read_data(struct settings *s, const struct options *o)
{
    const char *order = options_text(o, "order_name");
    options_fill(o, settings_data_options, s);
    s->order = order != NULL ? order : order_name(o, "order");
    s->task_count = options_list_size(o, "order");
    s->split = read_split(o);
    if (s->split.cut != CUT_NONE)
        s->task_count = s->split.parts + (s->split.first > 0 ? 1 : 0);
    s->shots = most_shots(o);
    s->setting = setting_of(s->label_space, s->shots, s->shared_classes);
}

static status check_shots(const struct settings *s, const struct options *data, struct error *error)
{
    size_t count = options_list_size(data, "task_shots");
    int64_t number;
    if (count != 0 && count != s->task_count)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: data.task_shots: expected a number for each of %zu tasks, found %zu", s->task_count,
                         count);
    for (size_t k = 0; k < count; k++)
        if (!parse_integer(options_list_item(data, "task_shots", k), &number) || number < 0)
            return error_set(error, ERROR_ARGUMENT,
                             "suite: data.task_shots: expected whole numbers from 0, found \"%s\"",
                             options_list_item(data, "task_shots", k));
    return count == 0 || options_integer(data, "shots") == 0
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "suite: data.task_shots takes the place of data.shots, which is %lld; "
                           "leave one of them out",
                           (long long)options_integer(data, "shots"));
}

/* "mnist@2", a second visit of mnist. */
static bool is_visit(const char *task)
{
    OWNED char *first = suite_first_visit(task);
    return strcmp(first, task) != 0;
}

status settings_check_data(const struct settings *s, const struct options *data, struct error *error)
{
    static const char *const label_spaces[] = {"task", "all", "seen", "open"};
    size_t listed = options_list_size(data, "order");
    if (s->split.cut != CUT_NONE && listed != 1)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: data.split_by: %s cuts one dataset into tasks, but data.order names %zu; set "
                         "data.order to the one to cut, as in data.order=cifar100",
                         options_text(data, "split_by"), listed);
    if (s->split.cut == CUT_BY_LABELS && s->split.goal == PARTITION_MIXED && s->split.parts < PARTITION_MIXED_PARTS)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: data.similarity: mixed cuts half of the tasks together and half apart, but data.parts is "
            "%zu; expected at least %d",
            s->split.parts, PARTITION_MIXED_PARTS);
    for (size_t k = 0; k < listed; k++) {
        const char *name = options_list_item(data, "order", k);
        if (strpbrk(name, "\"\\[]") != NULL)
            return error_set(
                error, ERROR_ARGUMENT,
                "suite: data.order: expected names of tasks without quotes, backslashes and brackets, found %s", name);
        if (is_visit(name) && s->label_space != LABEL_SPACE_TASK)
            return error_set(
                error, ERROR_ARGUMENT,
                "suite: data.order: %s has the classes of an earlier task, which would compete with one another; "
                "set evaluation.label_space=task",
                name);
    }
    TRY(check_shots(s, data, error));
    TRY(s->split.cut == CUT_BY_ORDER ? class_order_check(data, error) : OK);
    if (s->shared_classes && (s->split.cut != CUT_NONE || s->label_space != LABEL_SPACE_TASK))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: data.shared_classes makes one label space of all tasks, but %s; leave it out",
                         s->split.cut != CUT_NONE ? "data.split_by cuts one dataset, whose classes differ"
                                                  : "evaluation.label_space asks for another one");
    const char *given = options_text(data, "setting");
    if (given == NULL || strcmp(given, s->setting) == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: data.setting is %s, but with data.shots %zu (training images per class, 0: all) and "
                     "evaluation.label_space %s it is %s; set these, or leave data.setting out",
                     given, s->shots, label_spaces[s->label_space], s->setting);
}

static status check_visit(const struct settings *s, const char *task, struct error *error)
{
    bool once = s->method->check == frozen_classes_once;
    if (!is_visit(task) || (!once && !s->method->joint))
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: data.order: %s has the classes of an earlier task, but method.name: %s %s; leave it out, "
                     "or choose another method",
                     task, s->method->name, once ? "learns every class once" : "trains on all tasks together");
}

status settings_read_training(struct settings *s, const struct suite *suite, struct error *error)
{
    const struct options *data = suite_options(suite, "data"), *options = suite_options(suite, "training");
    bool trains = method_groups(s->method, s->method_options) != GROUPS_NONE;
    s->one_moment = optimizer_at(options_choice(options, "optimizer"))->one_moment;
    for (size_t k = 0; k < options_list_size(data, "order"); k++) {
        char name[128];
        const char *task = options_list_item(data, "order", k);
        TRY(check_visit(s, task, error));
        snprintf(name, sizeof name, "tasks.%s", task);
        options = suite_entry(suite, "tasks", task);
        s->one_moment = s->one_moment && optimizer_at(options_choice(options, "optimizer"))->one_moment;
        if (trains)
            TRY(training_check(name, options, s->head->of_texts, s->gpus, error));
    }
    return OK;
}

/* What a method and a head declare, and a number of tasks that follows from the dataset. */
bool settings_reads(const struct suite *suite, const char *section, const char *key)
{
    const struct options *data = suite_options(suite, "data"), *options = suite_options(suite, "method");
    const struct method *method;
    const struct head *head;
    struct error ignored;
    if (strcmp(key, "parts") == 0)
        return options_choice(data, "split_by") != CUT_BY_ORDER || !class_order_counts(data);
    if (strcmp(key, "template") == 0)
        return head_find(&head, options_text(suite_options(suite, "head"), "name"), &ignored) != OK || head->of_texts;
    if (method_find(&method, options_text(options, "name"), &ignored) != OK)
        return true;
    bool planned = strcmp(section, "delta") == 0 && strcmp(key, "train") == 0 && !method->one_delta;
    return method_uses(method, options, section) && !planned;
}
