#include "harness/run/settings_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/heads/heads.h"
#include "harness/methods/methods.h"
#include "models/optimizers/optimizer.h"

/* A method that trains on no batches would ignore the key. */
static status refuse_augmentation(const struct settings *s, const char *section, const struct options *options,
                                  struct error *error)
{
    struct augmentation augmentation = augmentation_of(options);
    const char *key = augmentation_key(&augmentation);
    return key == NULL
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "suite: %s.%s augments batches of training images, but method.name: %s trains on none; "
                           "leave the key out, or set it to %s",
                           section, key, s->method->name, options_find(options_table(options), key)->fallback);
}

static status check_training(const struct settings *s, const struct suite *suite, struct error *error)
{
    const struct options *data = suite_options(suite, "data");
    bool trains = method_groups(s->method, s->method_options) != GROUPS_NONE;
    if (!trains)
        TRY(refuse_augmentation(s, "training", suite_options(suite, "training"), error));
    for (size_t k = 0; k < options_list_size(data, "order"); k++) {
        const char *name = options_list_item(data, "order", k);
        const struct options *task = suite_entry(suite, "tasks", name);
        char section[128];
        snprintf(section, sizeof section, "tasks.%s", name);
        TRY(trains ? training_check(section, task, s->head->of_texts, s->gpus, error)
                   : refuse_augmentation(s, section, task, error));
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

/* Of a task, or of all tasks: section "training". */
static status check_detail(const struct options *options, const struct detail *detail, const char *section,
                           const char *task, struct error *error)
{
    const char *value = options_as_text(options, detail->key),
               *fallback = options_find(options_table(options), detail->key)->fallback;
    if (strcmp(value, fallback) == 0)
        return OK;
    return detail->replaced
               ? error_set(error, ERROR_ARGUMENT,
                           "suite: %s%s.%s is %s, but %s is %s, so that nothing reads it; set %s%s.%s=0, or %s to %s, "
                           "its default",
                           section, task, detail->key, value, detail->of, options_as_text(options, detail->of), section,
                           task, detail->of, detail->key, fallback)
               : error_set(error, ERROR_ARGUMENT,
                           "suite: %s%s.%s is %s, but %s is 0, so that nothing reads it; set %s%s.%s", section, task,
                           detail->key, value, detail->of, section, task, detail->of);
}

/* Tasks may differ; one that reads the detail of all of them is enough. */
static status check_details(const struct suite *suite, struct error *error)
{
    static const struct detail details[] = {{"randaugment_magnitude", "randaugment", false},
                                            {"random_erasing_fill", "random_erasing", false},
                                            {"mixup_probability", "mixup", false},
                                            {"iterations", "epochs", true},
                                            {"warmup", "warmup_epochs", true}};
    const struct options *training = suite_options(suite, "training"), *data = suite_options(suite, "data");
    for (size_t d = 0; d < sizeof details / sizeof *details; d++) {
        bool read = is_read(training, &details[d]);
        for (size_t k = 0; k < options_list_size(data, "order"); k++) {
            const char *name = options_list_item(data, "order", k);
            const struct options *task = suite_entry(suite, "tasks", name);
            if (is_read(task, &details[d]))
                read = true;
            else
                TRY(check_detail(task, &details[d], "tasks.", name, error));
        }
        if (!read)
            TRY(check_detail(training, &details[d], "training", "", error));
    }
    return OK;
}

/* A head of weights has no prompts. */
static status check_template(const struct options *options, const char *section, const char *task, struct error *error)
{
    const char *template = options_text(options, "template");
    return template == NULL
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "suite: %s%s.template is \"%s\", but head.name: linear has no prompts; leave the "
                           "template out, or set head.name=text",
                           section, task, template);
}

static status check_templates(const struct suite *suite, struct error *error)
{
    const struct options *data = suite_options(suite, "data");
    TRY(check_template(data, "data", "", error));
    for (size_t k = 0; k < options_list_size(data, "order"); k++) {
        const char *name = options_list_item(data, "order", k);
        TRY(check_template(suite_entry(suite, "tasks", name), "tasks.", name, error));
    }
    return OK;
}

/* Of a task, or of all tasks: section "training". */
static status check_momentum(const struct options *options, const char *section, const char *task, struct error *error)
{
    const struct option *momentum = options_find(options_table(options), "momentum");
    if (options_real(options, "momentum") == strtod(momentum->fallback, NULL))
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: %s%s.momentum is %s, but optimizer %s has no such setting; set %s%s.optimizer=sgd",
                     section, task, options_as_text(options, "momentum"), options_text(options, "optimizer"), section,
                     task);
}

/* Tasks may differ in their optimizers; one that reads the momentum of all of them is enough. */
static status read_optimizers(struct settings *s, const struct suite *suite, struct error *error)
{
    const struct options *training = suite_options(suite, "training"), *data = suite_options(suite, "data");
    const struct optimizer *optimizer = optimizer_at(options_choice(training, "optimizer"));
    bool read = optimizer->has_momentum;
    s->one_moment = optimizer->one_moment;
    for (size_t i = 0; i < options_list_size(data, "order"); i++) {
        const char *name = options_list_item(data, "order", i);
        const struct options *task = suite_entry(suite, "tasks", name);
        optimizer = optimizer_at(options_choice(task, "optimizer"));
        s->one_moment = s->one_moment && optimizer->one_moment;
        read = read || optimizer->has_momentum;
        if (!optimizer->has_momentum)
            TRY(check_momentum(task, "tasks.", name, error));
    }
    return read ? OK : check_momentum(training, "training", "", error);
}

status settings_read_training(struct settings *s, const struct suite *suite, struct error *error)
{
    TRY(read_optimizers(s, suite, error));
    TRY(check_training(s, suite, error));
    TRY(check_details(suite, error));
    return s->head->of_texts ? OK : check_templates(suite, error);
}
