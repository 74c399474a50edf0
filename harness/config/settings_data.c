#include "harness/config/settings_data.h"

#include <string.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "harness/scenario/order.h"

const struct option settings_data_options[] = {
    {.name = "root", .type = OPTION_TEXT, .fallback = "data/mini", .help = "folder that contains the datasets"},
    {.name = "order",
     .type = OPTION_LIST,
     .fallback = ORDER_I,
     .help = "the tasks in the order of training: a list, or I or II for MTIL's"},
    {.name = "order_name",
     .type = OPTION_TEXT,
     .help = "name of this order in the results; default: I, II or the list"},
    OPTION_SPLIT,
    OPTION_ON_MISSING,
    OPTION_ON_UNREADABLE,
    {.name = "setting",
     .type = OPTION_CHOICE,
     .choices = "full_shot|few_shot|x_tail",
     .help =
         "name of the setting in the results; follows from shots and label_space, and must agree with them if given"},
    {.name = "shots",
     .type = OPTION_INTEGER,
     .minimum = 0,
     .maximum = 1e9,
     .fallback = "0",
     .help = "training images per class, the first n of a seeded shuffle; 0: all"},
    {.name = "template",
     .type = OPTION_TEXT,
     .help = "one template, with {} for the class, in place of the datasets' own"},
    {.name = "split_by",
     .type = OPTION_CHOICE,
     .choices = "none|labels",
     .fallback = "none",
     .help = "labels: cut the only dataset of order into tasks, by the meaning of its class names"},
    {0}};

static const struct option label_split_options[] = {{.name = "parts",
                                                     .type = OPTION_INTEGER,
                                                     .minimum = 2,
                                                     .maximum = SETTINGS_TASKS,
                                                     .fallback = "10",
                                                     .help = "number of tasks"},
                                                    {.name = "similarity",
                                                     .type = OPTION_CHOICE,
                                                     .choices = "together|apart|random",
                                                     .fallback = "together",
                                                     .help = "similar classes in one task, or in different ones"},
                                                    {.name = "split_seed",
                                                     .type = OPTION_INTEGER,
                                                     .minimum = 0,
                                                     .maximum = 4294967295.0,
                                                     .fallback = "42",
                                                     .help = "seed of the cut, the same for all runs"},
                                                    {0}};

status settings_split_keys(const char *name, const struct option **table, struct error *error)
{
    static const char *const names[] = {"none", "labels"};
    *table = strcmp(name, "labels") == 0 ? label_split_options : NULL;
    if (*table != NULL || strcmp(name, "none") == 0)
        return OK;
    return error_unknown_word(error, "data.split_by", "way to split", name, names, 2);
}

const char *settings_data_shorthand(const char *key, const char *value)
{
    return strcmp(key, "order") == 0 ? order_tasks(value) : NULL;
}

void settings_read_data(struct settings *s, const struct options *o)
{
    const char *order = options_text(o, "order_name");
    s->data_root = options_text(o, "root");
    s->order = order != NULL ? order : order_name(o, "order");
    s->task_count = options_list_size(o, "order");
    s->split.by_labels = strcmp(options_text(o, "split_by"), "labels") == 0;
    if (s->split.by_labels) {
        s->split.parts = (size_t)options_integer(o, "parts");
        s->split.goal = (enum partition_goal)options_choice(o, "similarity");
        s->split.seed = (uint64_t)options_integer(o, "split_seed");
        s->task_count = s->split.parts;
    }
    s->shots = (size_t)options_integer(o, "shots");
    s->setting = s->label_space == LABEL_SPACE_ALL ? "x_tail" : s->shots > 0 ? "few_shot" : "full_shot";
}

status settings_check_data(const struct settings *s, const struct options *data, struct error *error)
{
    size_t listed = options_list_size(data, "order");
    if (s->split.by_labels && listed != 1)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: data.split_by: labels cuts one dataset into tasks, but data.order names %zu; set "
                         "data.order to the one to cut, as in data.order=cifar100",
                         listed);
    const char *given = options_text(data, "setting");
    if (given == NULL || strcmp(given, s->setting) == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: data.setting is %s, but with data.shots %zu (training images per class, 0: all) and "
                     "evaluation.label_space %s it is %s; set these, or leave data.setting out",
                     given, s->shots, s->label_space == LABEL_SPACE_ALL ? "all" : "task", s->setting);
}
