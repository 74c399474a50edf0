#include "harness/scenario/task_settings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "datasets/split/split.h"
#include "models/optimizers/optimizer.h"

const struct option training_options[] = {
    OPTION_NUMBER(INTEGER, "iterations", 1, 1e9, "1000", "optimizer steps per task",
                  INTO(struct task_settings, schedule_end), .synonyms = "iters|steps|max_steps|num_iterations|n_iter",
                  .replaces = "epochs", .when = "epochs=0", .written = true),
    OPTION_NUMBER(INTEGER, "epochs", 0, 1e6, "0",
                  "passes over a task's training images, in place of iterations; 0: iterations decide",
                  INTO(struct task_settings, epochs), .synonyms = "epoch|num_epochs|n_epochs|max_epochs",
                  .replaces = "iterations", .incidental = "0"),
    OPTION(BOOLEAN, "reference_iterations", "no", "one more step per task, as in the public code"),
    OPTION_NUMBER(INTEGER, "batch", 1, 65536, "64", "images per iteration", INTO(struct task_settings, batch),
                  .synonyms = "bs|batch_size|batchsize|train_batch_size"),
    OPTION_NUMBER(REAL, "learning_rate", 0, 100, "1e-3", "learning rate at the peak of the schedule",
                  INTO(struct task_settings, rate), .synonyms = "lr|eta|base_lr|step_size"),
    OPTION_NUMBER(INTEGER, "warmup", 0, 1e9, "100", "iterations of linear warm-up", INTO(struct task_settings, warmup),
                  .synonyms = "warmup_steps|warmup_iters|num_warmup_steps|warmup_length", .replaces = "warmup_epochs",
                  .when = "warmup_epochs=0", .written = true),
    OPTION_NUMBER(INTEGER, "warmup_epochs", 0, 1e6, "0",
                  "passes over a task's training images that the warm-up takes, in place of warmup; 0: warmup decides",
                  INTO(struct task_settings, warmup_epochs), .replaces = "warmup", .incidental = "0"),
    OPTION_ONE_OF("loss", "cross_entropy|contrastive", "cross_entropy",
                  "loss of a batch: cross_entropy of its images over the task's classes, or contrastive, CLIP's, over "
                  "its images and the prompts of their labels",
                  INTO(struct task_settings, contrastive), .synonyms = "criterion|loss_fn",
                  .incidental = "cross_entropy"),
    OPTION_NUMBER(REAL, "label_smoothing", 0, 1, "0.2", "label smoothing of the loss",
                  INTO(struct task_settings, smoothing), .synonyms = "ls|smoothing"),
    OPTION_NUMBER(REAL, "weight_decay", 0, 10, "0",
                  "weight decay: decoupled in adamw and lamb, added to the gradient in sgd", .synonyms = "wd|decay"),
    OPTION_ONE_OF("optimizer", OPTIMIZER_CHOICES, "adamw", "optimizer; see mtil list optimizers",
                  .synonyms = "opt|optim", .incidental = "adamw"),
    OPTION_NUMBER(REAL, "momentum", 0, 0.9999, "0.9", "momentum of sgd", .when = "optimizer=sgd", .written = true,
                  .incidental = "0.9"),
    OPTION_ONE_OF("on_nan", "stop|skip", "stop",
                  "response to an iteration whose loss or gradients are not finite: stop, or skip and count it",
                  INTO(struct task_settings, on_nan)),
    AUGMENT_OPTIONS(struct task_settings, augmentation),
    {0}};

const struct option task_options[] = {
    OPTION(TEXT, "reader", NULL, "reader of the dataset; default: the task's own name"),
    OPTION(TEXT, "root", NULL, "root folder of the task, in place of data.root", .incidental = "*"),
    {0}};

size_t task_shots(const struct options *data, size_t k)
{
    int64_t shots = options_integer(data, "shots");
    if (k < options_list_size(data, "task_shots") && !parse_integer(options_list_item(data, "task_shots", k), &shots))
        return 0;
    return shots > 0 ? (size_t)shots : 0;
}

void task_settings_count(struct task_settings *s, size_t images)
{
    s->epoch_length = (images + s->batch - 1) / s->batch;
    if (s->warmup_epochs > 0)
        s->warmup = s->warmup_epochs * s->epoch_length;
    if (s->epochs == 0 || s->iterations == 0) /* 0: the method trains nothing */
        return;
    size_t more = s->iterations - s->schedule_end;
    s->schedule_end = s->epochs * s->epoch_length;
    s->iterations = s->schedule_end + more;
}

static struct update_rule rule_of(const struct options *o)
{
    const struct optimizer *optimizer = optimizer_at(options_choice(o, "optimizer"));
    struct update_rule rule = optimizer->rule;
    rule.weight_decay = options_real(o, "weight_decay");
    if (optimizer->has_momentum)
        rule.momentum = options_real(o, "momentum");
    return rule;
}

struct task_settings training_settings_of(const struct options *o)
{
    struct task_settings s = {.rule = rule_of(o)};
    options_fill(o, training_options, &s);
    s.iterations = s.schedule_end + (options_boolean(o, "reference_iterations") ? 1 : 0);
    s.augmentation.unmixed = 1 - options_real(o, "mixup_probability");
    return s;
}

/* Pairs of a whole batch are compared, an image with one prompt each. */
status training_check(const char *section, const struct options *options, bool of_texts, size_t gpus,
                      struct error *error)
{
    struct task_settings s = training_settings_of(options);
    const char *fault = !of_texts ? "head.name: linear has no prompts; set head.name=text"
                        : augmentation_mixes(&s.augmentation)
                            ? "mixup and cutmix give an image two labels; set both to 0"
                        : gpus > 1 ? "several GPUs have a part of it each; set run.gpus=1"
                                   : NULL;
    if (s.augmentation.operations > 0 && s.augmentation.policy != AUGMENT_POLICY_NONE)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: %s.randaugment is %zu and autoaugment %s, but an image gets one of the two; set "
                         "randaugment to 0 or autoaugment to none",
                         section, s.augmentation.operations, options_text(options, "autoaugment"));
    if (fault == NULL || !s.contrastive)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: %s.loss: contrastive compares the images of a batch with the prompts of their labels, but "
                     "%s, or training.loss=cross_entropy",
                     section, fault);
}

struct task_settings task_settings_of(const struct suite *suite, const char *name)
{
    const struct options *o = suite_entry(suite, "tasks", name);
    const char *reader = options_text(o, "reader"), *root = options_text(o, "root");
    struct task_settings settings = training_settings_of(o);
    settings.name = name;
    settings.reader = reader != NULL ? reader : name;
    settings.template = options_text(o, "template");
    settings.root = root != NULL ? root : options_text(suite_options(suite, "data"), "root");
    return settings;
}

/* --- Orders of tasks --- */

static const struct task_order {
    const char *name, *tasks;
} task_orders[] = {{"I", ORDER_I}, {"II", ORDER_II}};

enum { TASK_ORDERS = sizeof task_orders / sizeof *task_orders };

const char *order_tasks(const char *name)
{
    for (size_t i = 0; i < TASK_ORDERS; i++)
        if (strcmp(task_orders[i].name, name) == 0)
            return task_orders[i].tasks;
    return NULL;
}

static bool is_order(const struct options *options, const char *key, const char *tasks)
{
    for (size_t i = 0; i < options_list_size(options, key); i++) {
        const char *name = options_list_item(options, key, i);
        size_t size = strcspn(tasks, " ");
        if (size == 0 || strlen(name) != size || memcmp(name, tasks, size) != 0)
            return false;
        tasks += size + (tasks[size] != 0);
    }
    return *tasks == 0;
}

const char *order_name(const struct options *options, const char *key)
{
    for (size_t i = 0; i < TASK_ORDERS; i++)
        if (is_order(options, key, task_orders[i].tasks))
            return task_orders[i].name;
    return options_as_text(options, key);
}

/* --- Orders of classes --- */

static const struct class_order {
    const char *name, *numbers;
} class_orders[] = {
    {"cifar100", "87 0 52 58 44 91 68 97 51 15 94 92 10 72 49 78 61 14 8 86 84 96 18 24 32 45 88 11 4 67 69 66 77 47 "
                 "79 93 29 50 57 83 17 81 41 12 37 59 25 20 80 73 1 28 6 46 62 82 53 9 31 75 38 63 33 74 27 22 36 3 "
                 "16 21 60 19 70 90 89 43 5 42 65 76 40 30 23 85 2 95 56 48 71 64 98 13 99 7 34 55 54 26 35 39"},
    {"tinyimagenet",
     "131 181 22 172 144 92 97 187 58 93 6 70 106 68 153 168 179 199 29 46 9 142 134 88 193 110 26 32 117 "
     "112 17 39 166 13 94 138 109 147 51 101 59 188 116 5 170 99 100 167 180 146 65 1 104 43 38 184 123 "
     "171 137 162 71 44 95 174 12 7 54 152 21 47 28 176 34 2 132 118 42 189 150 14 165 41 192 45 82 128 "
     "63 57 197 160 53 75 108 135 121 159 183 67 169 50 87 69 89 196 115 19 148 96 86 11 8 60 33 173 78 4 "
     "119 105 182 127 177 30 186 40 49 178 76 157 161 73 164 151 31 74 191 27 125 198 81 20 155 114 139 "
     "36 61 56 145 48 16 83 62 85 126 0 102 23 3 140 15 195 133 113 190 141 52 163 156 80 111 90 175 143 "
     "120 84 18 25 79 37 154 136 64 158 24 185 72 35 129 55 149 91 122 77 103 124 130 66 10 107 194 98"},
};

const char *class_order_numbers(const char *name)
{
    for (size_t i = 0; i < sizeof class_orders / sizeof *class_orders; i++)
        if (strcmp(class_orders[i].name, name) == 0)
            return class_orders[i].numbers;
    return NULL;
}

static const char seeded[] = "numpy-"; /* "numpy-1993" */

static bool read_seed(const char *word, uint32_t *seed)
{
    int64_t number;
    if (strncmp(word, seeded, strlen(seeded)) != 0 || !parse_integer(word + strlen(seeded), &number) || number < 0 ||
        number > UINT32_MAX)
        return false;
    *seed = (uint32_t)number;
    return true;
}

/* Published numbers; how many there are. order [classes] */
static size_t read_published(const char *numbers, size_t classes, uint32_t *order)
{
    size_t count = 0;
    for (char *end; *numbers != 0; numbers = end) {
        unsigned long number = strtoul(numbers, &end, 10);
        if (count < classes)
            order[count] = (uint32_t)number;
        count++;
    }
    return count;
}

/* seen [classes] is scratch space. An empty list means ascending numbers. */
static status read_order(const struct options *data, const char *dataset, size_t classes, uint32_t *order,
                         uint32_t *seen, struct error *error)
{
    size_t listed = options_list_size(data, "class_order");
    const char *only = listed == 1 ? options_list_item(data, "class_order", 0) : "",
               *published = class_order_numbers(only);
    uint32_t seed;
    if (read_seed(only, &seed)) {
        split_numpy_permutation(seed, classes, order);
        return OK;
    }
    if (strncmp(only, seeded, strlen(seeded)) == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "data.class_order: expected %sSEED with a whole number below 2^32, found %s", seeded, only);
    listed = published != NULL ? read_published(published, classes, order) : listed;
    if (listed != 0 && listed != classes)
        return error_set(error, ERROR_ARGUMENT, "data.class_order: %s has %zu classes, but the order names %zu",
                         dataset, classes, listed);
    if (published != NULL)
        return OK;
    memset(seen, 0, classes * sizeof *seen);
    for (size_t i = 0; i < classes; i++) {
        int64_t number = (int64_t)i;
        const char *word = listed > 0 ? options_list_item(data, "class_order", i) : "";
        if (listed > 0 && (!parse_integer(word, &number) || number < 0 || (size_t)number >= classes || seen[number]++))
            return error_set(error, ERROR_ARGUMENT,
                             "data.class_order: expected each number from 0 to %zu once, found \"%s\" as number %zu",
                             classes - 1, word, i + 1);
        order[i] = (uint32_t)number;
    }
    return OK;
}

/* The classes of part k: item k of increment; a single one stands for all; 0: parts are of equal size. */
static size_t size_of_part(const struct options *data, size_t k)
{
    size_t listed = options_list_size(data, "increment");
    int64_t size = 0;
    bool number = k < listed || listed == 1
                      ? parse_integer(options_list_item(data, "increment", listed == 1 ? 0 : k), &size)
                      : false;
    return number && size > 0 ? (size_t)size : 0;
}

status class_order_check(const struct options *data, struct error *error)
{
    size_t listed = options_list_size(data, "increment");
    int64_t size;
    for (size_t k = 0; k < listed; k++)
        if (!parse_integer(options_list_item(data, "increment", k), &size) || size < (listed > 1) || size > UINT16_MAX)
            return error_set(error, ERROR_ARGUMENT,
                             "suite: data.increment: expected whole numbers from %d to %d, found \"%s\"", listed > 1,
                             UINT16_MAX, options_list_item(data, "increment", k));
    return OK;
}

bool class_order_counts(const struct options *data)
{
    return !options_given(data, "parts") && (size_of_part(data, 0) > 0 || options_integer(data, "first") > 0);
}

/* Parts that increment makes of the classes after the first task. */
static size_t parts_of_size(const struct options *data, size_t rest)
{
    size_t listed = options_list_size(data, "increment"), size = size_of_part(data, 0);
    return listed > 1 ? listed : size > 0 ? (rest + size - 1) / size : 0;
}

size_t class_order_parts(const struct options *data, size_t classes)
{
    size_t first = (size_t)options_integer(data, "first"), rest = classes > first ? classes - first : 0;
    bool counted = class_order_counts(data) && (size_of_part(data, 0) > 0 || first == classes);
    return counted ? parts_of_size(data, rest) : (size_t)options_integer(data, "parts");
}

static status check_cut(const struct options *data, const char *dataset, size_t classes, struct error *error)
{
    size_t first = (size_t)options_integer(data, "first"), parts = class_order_parts(data, classes),
           rest = classes > first ? classes - first : 0, listed = options_list_size(data, "increment"), sum = 0;
    if (rest < parts || first > classes)
        return error_set(error, ERROR_ARGUMENT,
                         "data.parts: %s has %zu classes; after a first task of %zu (data.first) they cannot be cut "
                         "into %zu tasks",
                         dataset, classes, first, parts);
    if (size_of_part(data, 0) > 0 && parts_of_size(data, rest) != parts)
        return error_set(error, ERROR_ARGUMENT,
                         "data.increment: %s has %zu classes; after a first task of %zu (data.first) tasks of %s "
                         "classes are %zu, but data.parts is %zu",
                         dataset, classes, first, options_as_text(data, "increment"), parts_of_size(data, rest), parts);
    for (size_t k = 0; k < listed; k++)
        sum += size_of_part(data, k);
    return listed < 2 || sum == rest
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "data.increment: %s has %zu classes; after a first task of %zu (data.first) %zu are left, "
                           "but the sizes %s sum to %zu",
                           dataset, classes, first, rest, options_as_text(data, "increment"), sum);
}

status class_order_cut(const struct options *data, const char *dataset, size_t classes, uint32_t *order,
                       uint32_t *task_of, struct error *error)
{
    size_t first = (size_t)options_integer(data, "first"), parts = class_order_parts(data, classes), place = first;
    TRY(read_order(data, dataset, classes, order, task_of, error));
    TRY(check_cut(data, dataset, classes, error));
    for (size_t i = 0; i < first; i++)
        task_of[order[i]] = 0;
    for (size_t k = 0; k < parts; k++) {
        size_t equal = (classes - first) / parts + (k < (classes - first) % parts ? 1 : 0),
               given = size_of_part(data, k), size = given == 0 ? equal : given,
               end = place + size < classes ? place + size : classes;
        for (; place < end; place++)
            task_of[order[place]] = (uint32_t)(k + (first > 0 ? 1 : 0));
    }
    return OK;
}
