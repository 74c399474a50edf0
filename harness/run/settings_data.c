#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/options.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/model/tasks.h"
#include "harness/run/settings_internal.h"
#include "harness/scenario/label_split.h"
#include "harness/scenario/task_settings.h"
#include "harness/selectors/selector.h"
#include "models/optimizers/optimizer.h"
#include "results/store/per_image.h"

const struct option settings_evaluation_options[] = {
    {.name = "per_image",
     .type = OPTION_CHOICE,
     .choices = "none|bits|predictions",
     .fallback = "predictions",
     .help = "record of every test image: none, right or wrong (bits), or its prediction"},
    {.name = "patch_images",
     .type = OPTION_INTEGER,
     .maximum = 64,
     .fallback = "0",
     .help = "test images of each task, evenly spaced in its list, whose patches' experts are recorded in the last "
             "test, for pictures of the report; results do not depend on it"},
    {.name = "label_space",
     .type = OPTION_CHOICE,
     .choices = "task|all|seen|open",
     .fallback = "task",
     .help = "classes that an image is compared with: those of its task, of all tasks (X-TAIL), of the tasks trained "
             "so far (seen: class-incremental), or of these for an image of one of them and else of its task (open: "
             "ODCL-CIL)"},
    {0}};

const struct option settings_data_options[] = {
    {.name = "root",
     .synonyms = "data_dir|data_root|data_path|dataset_root|data_location",
     .type = OPTION_TEXT,
     .fallback = "data/mini",
     .help = "folder that contains the datasets"},
    {.name = "order",
     .synonyms = "tasks|datasets|dataset|dataset_order",
     .type = OPTION_LIST,
     .fallback = ORDER_I,
     .help = "tasks in the order of training: a list, or I or II for MTIL's orders"},
    {.name = "order_name", .type = OPTION_TEXT, .help = "name of the order in the results; default: I, II or the list"},
    OPTION_SPLIT,
    OPTION_ON_MISSING,
    OPTION_ON_UNREADABLE,
    OPTION_CLASS_NAMES,
    {.name = "setting",
     .type = OPTION_CHOICE,
     .choices = "full_shot|few_shot|x_tail|class_incremental|open_domain|domain_incremental",
     .help = "name of the setting in the results; it follows from shots and label_space, and must agree with them if "
             "given"},
    {.name = "shots",
     .synonyms = "num_shots|few_shot|k_shot|nshot",
     .type = OPTION_INTEGER,
     .maximum = 1e9,
     .fallback = "0",
     .help = "training images per class, the first n of a seeded shuffle; 0: all"},
    {.name = "task_shots",
     .type = OPTION_LIST,
     .fallback = "",
     .help = "training images per class, a number for each task, 0: all; in place of shots, which every task has"},
    {.name = "short_classes",
     .type = OPTION_CHOICE,
     .choices = "all|repeat",
     .fallback = "all",
     .help = "images of a class with fewer than shots: all of them, or as many as shots, drawn with replacement"},
    {.name = "template",
     .type = OPTION_TEXT,
     .help = "template with {} for the class, in place of the datasets' own templates"},
    {.name = "shared_classes",
     .type = OPTION_BOOLEAN,
     .fallback = "no",
     .help = "one label space of all tasks, in which classes of the same name are one class: domain-incremental "
             "learning, with evaluation.label_space: task"},
    {.name = "split_by",
     .type = OPTION_CHOICE,
     .choices = "none|labels|order",
     .fallback = "none",
     .help = "rule that cuts the only dataset of order into tasks: labels by the meaning of its class names, order by "
             "a given order of its classes"},
    {0}};

static const struct option label_split_options[] = {
    {.name = "parts",
     .type = OPTION_INTEGER,
     .minimum = 2,
     .maximum = SETTINGS_TASKS,
     .fallback = "10",
     .help = "number of tasks"},
    {.name = "similarity",
     .type = OPTION_CHOICE,
     .choices = "together|apart|random|mixed",
     .fallback = "together",
     .help =
         "place of similar classes: together in one task, apart in different ones, random, or mixed: together in the "
         "first half of the tasks, apart in the others"},
    {.name = "split_seed",
     .type = OPTION_INTEGER,
     .maximum = 4294967295.0,
     .fallback = "42",
     .help = "seed of the cut, the same for all runs"},
    {0}};

static const struct option class_order_options[] = {
    {.name = "class_order",
     .type = OPTION_LIST,
     .fallback = "",
     .help = "class numbers in the order of training: a list, cifar100 or tinyimagenet for the published orders, or "
             "numpy-SEED for NumPy's permutation, as numpy-1993 of PyCIL; empty: by number"},
    {.name = "first",
     .type = OPTION_INTEGER,
     .maximum = UINT16_MAX,
     .fallback = "0",
     .help = "classes of a first, larger task before the tasks of equal size; 0: no such task"},
    {.name = "parts",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = SETTINGS_TASKS - 1,
     .fallback = "10",
     .help = "number of tasks of equal size, or larger by one class where they do not divide; with data.increment, "
             "if not given, as many as that makes of the classes"},
    {.name = "increment",
     .type = OPTION_INTEGER,
     .maximum = UINT16_MAX,
     .fallback = "0",
     .help = "classes of each of the parts, of which the last has what is left; 0: parts of equal size"},
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
    struct dataset *whole;
    if (s->split.cut != CUT_BY_ORDER || !class_order_counts(data) || options_list_size(data, "order") != 1)
        return OK;
    struct task_settings task = task_settings_of(suite, options_list_item(data, "order", 0));
    TRY(tasks_open_dataset(&whole, suite, &task, NULL, error));
    s->split.parts = class_order_parts(data, dataset_classes(whole));
    s->task_count = s->split.parts + (s->split.first > 0 ? 1 : 0);
    dataset_close(whole);
    return OK;
}

void settings_read_data(struct settings *s, const struct options *o)
{
    const char *order = options_text(o, "order_name");
    s->data_root = options_text(o, "root");
    s->order = order != NULL ? order : order_name(o, "order");
    s->task_count = options_list_size(o, "order");
    s->split = read_split(o);
    if (s->split.cut != CUT_NONE)
        s->task_count = s->split.parts + (s->split.first > 0 ? 1 : 0);
    s->shots = most_shots(o);
    s->shared_classes = options_boolean(o, "shared_classes");
    s->repeat_shots = strcmp(options_text(o, "short_classes"), "repeat") == 0;
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
    }
    TRY(check_shots(s, data, error));
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

/* A set of training's keys: of all tasks, section "training" and task "", or of one, "tasks." and its name. */
struct scope {
    const struct options *options;
    const char *section, *task;
};

/* Scope 0 is of all tasks; false past the last. */
static bool scope_at(const struct suite *suite, const char *all, size_t index, struct scope *scope)
{
    const struct options *data = suite_options(suite, "data");
    if (index > options_list_size(data, "order"))
        return false;
    const char *task = index > 0 ? options_list_item(data, "order", index - 1) : "";
    *scope = (struct scope){index > 0 ? suite_entry(suite, "tasks", task) : suite_options(suite, all),
                            index > 0 ? "tasks." : all, task};
    return true;
}

/* A method that trains on no batches would ignore the key. */
static status refuse_augmentation(const struct settings *s, const struct scope *at, struct error *error)
{
    struct augmentation augmentation = augmentation_of(at->options);
    const char *key = augmentation_key(&augmentation);
    return key == NULL
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "suite: %s%s.%s augments batches of training images, but method.name: %s trains on none; "
                           "leave the key out, or set it to %s",
                           at->section, at->task, key, s->method->name,
                           options_find(options_table(at->options), key)->fallback);
}

static status check_training(const struct settings *s, const struct suite *suite, struct error *error)
{
    bool trains = method_groups(s->method, s->method_options) != GROUPS_NONE;
    struct scope at;
    for (size_t i = 0; scope_at(suite, "training", i, &at); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s", at.section, at.task);
        if (!trains)
            TRY(refuse_augmentation(s, &at, error));
        else if (i > 0)
            TRY(training_check(name, at.options, s->head->of_texts, s->gpus, error));
    }
    return OK;
}

/* A key, and the one that decides whether anything reads it: one that is above 0, or, of a key that it replaces, one that is 0. */
struct detail {
    const char *key, *of;
    bool replaced;
};

static bool is_read(const struct options *options, const struct detail *detail)
{
    return (strtod(options_as_text(options, detail->of), NULL) > 0) != detail->replaced;
}

static status refuse_detail(const struct scope *at, const struct detail *detail, struct error *error)
{
    const char *value = options_as_text(at->options, detail->key),
               *fallback = options_find(options_table(at->options), detail->key)->fallback;
    if (strcmp(value, fallback) == 0)
        return OK;
    return detail->replaced
               ? error_set(error, ERROR_ARGUMENT,
                           "suite: %s%s.%s is %s, but %s is %s, so that nothing reads it; set %s%s.%s=0, or %s to %s, "
                           "its default",
                           at->section, at->task, detail->key, value, detail->of,
                           options_as_text(at->options, detail->of), at->section, at->task, detail->of, detail->key,
                           fallback)
               : error_set(error, ERROR_ARGUMENT,
                           "suite: %s%s.%s is %s, but %s is 0, so that nothing reads it; set %s%s.%s", at->section,
                           at->task, detail->key, value, detail->of, at->section, at->task, detail->of);
}

/* Tasks may differ; one that reads the detail of all of them is enough. */
static status check_detail(const struct suite *suite, const struct detail *detail, struct error *error)
{
    struct scope all, at;
    scope_at(suite, "training", 0, &all);
    bool read = is_read(all.options, detail);
    for (size_t i = 1; scope_at(suite, "training", i, &at); i++)
        if (is_read(at.options, detail))
            read = true;
        else
            TRY(refuse_detail(&at, detail, error));
    return read ? OK : refuse_detail(&all, detail, error);
}

static status check_details(const struct suite *suite, struct error *error)
{
    static const struct detail details[] = {{"randaugment_magnitude", "randaugment", false},
                                            {"random_erasing_fill", "random_erasing", false},
                                            {"mixup_probability", "mixup", false},
                                            {"iterations", "epochs", true},
                                            {"warmup", "warmup_epochs", true}};
    for (size_t d = 0; d < sizeof details / sizeof *details; d++)
        TRY(check_detail(suite, &details[d], error));
    return OK;
}

/* A head of weights has no prompts. */
static status check_templates(const struct suite *suite, struct error *error)
{
    struct scope at;
    for (size_t i = 0; scope_at(suite, "data", i, &at); i++)
        if (options_text(at.options, "template") != NULL)
            return error_set(error, ERROR_ARGUMENT,
                             "suite: %s%s.template is \"%s\", but head.name: linear has no prompts; leave the "
                             "template out, or set head.name=text",
                             at.section, at.task, options_text(at.options, "template"));
    return OK;
}

static status refuse_momentum(const struct scope *at, struct error *error)
{
    const struct option *momentum = options_find(options_table(at->options), "momentum");
    if (options_real(at->options, "momentum") == strtod(momentum->fallback, NULL))
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: %s%s.momentum is %s, but optimizer %s has no such setting; set %s%s.optimizer=sgd",
                     at->section, at->task, options_as_text(at->options, "momentum"),
                     options_text(at->options, "optimizer"), at->section, at->task);
}

/* Tasks may differ in their optimizers; one that reads the momentum of all of them is enough. */
static status read_optimizers(struct settings *s, const struct suite *suite, struct error *error)
{
    struct scope all, at;
    bool read = false;
    s->one_moment = true;
    for (size_t i = 0; scope_at(suite, "training", i, &at); i++) {
        const struct optimizer *optimizer = optimizer_at(options_choice(at.options, "optimizer"));
        s->one_moment = s->one_moment && optimizer->one_moment;
        read = read || optimizer->has_momentum;
        if (i > 0 && !optimizer->has_momentum)
            TRY(refuse_momentum(&at, error));
    }
    scope_at(suite, "training", 0, &all);
    return read ? OK : refuse_momentum(&all, error);
}

status settings_read_training(struct settings *s, const struct suite *suite, struct error *error)
{
    TRY(read_optimizers(s, suite, error));
    TRY(check_training(s, suite, error));
    TRY(check_details(suite, error));
    return s->head->of_texts ? OK : check_templates(suite, error);
}

/* The head that all runs had before there was a choice is not written down. */
bool settings_uses_head(const struct suite *suite, const char *section, const char *key)
{
    (void)key;
    return strcmp(options_text(suite_options(suite, section), "name"), "text") != 0;
}

static bool method_reads(const struct suite *suite, const char *section)
{
    const struct options *options = suite_options(suite, "method");
    const struct method *method;
    struct error ignored;
    return method_find(&method, options_text(options, "name"), &ignored) != OK || method_uses(method, options, section);
}

/* A key that stands for its absence is not written down. */
bool settings_uses_data(const struct suite *suite, const char *section, const char *key)
{
    const struct options *data = suite_options(suite, section);
    bool list = options_list_size(data, "task_shots") > 0;
    if (strcmp(key, "short_classes") == 0)
        return list || options_integer(data, "shots") > 0;
    if (strcmp(key, "shared_classes") == 0)
        return options_boolean(data, key);
    if (strcmp(key, "increment") == 0)
        return options_integer(data, "increment") > 0;
    if (strcmp(key, "parts") == 0)
        return options_choice(data, "split_by") != CUT_BY_ORDER || !class_order_counts(data);
    return strcmp(key, "task_shots") != 0 || list;
}

bool settings_uses_adapter(const struct suite *suite, const char *section, const char *key)
{
    return method_reads(suite, section) && freeze_reads(suite_options(suite, section), key);
}

/* Which half is trained is for methods without a plan of their own. */
bool settings_uses_delta(const struct suite *suite, const char *section, const char *key)
{
    const struct method *method;
    struct error ignored;
    bool free =
        method_find(&method, options_text(suite_options(suite, "method"), "name"), &ignored) == OK && method->one_delta;
    return method_reads(suite, section) && (free || strcmp(key, "train") != 0);
}

bool settings_uses_merge(const struct suite *suite, const char *section, const char *key)
{
    return method_reads(suite, section) && merge_reads(suite_options(suite, "merge"), section, key);
}

bool settings_uses_training(const struct suite *suite, const char *section, const char *key)
{
    (void)section;
    return options_find(training_options, key) == NULL || method_reads(suite, "training");
}

/* Patches have experts of their own where tokens choose, and are results of single images. */
bool settings_uses_evaluation(const struct suite *suite, const char *section, const char *key)
{
    return strcmp(key, "patch_images") != 0 ||
           (method_reads(suite, "adapter") &&
            options_choice(suite_options(suite, "adapter"), "routing") == ROUTING_PER_TOKEN &&
            options_choice(suite_options(suite, section), "per_image") != PER_IMAGE_NONE);
}

bool settings_uses_selector(const struct suite *suite, const char *section, const char *key)
{
    return method_reads(suite, section) && selector_settings_read(suite_options(suite, section), key);
}
