#include "harness/run/settings_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/heads/head.h"
#include "harness/methods/methods.h"
#include "models/optimizers/optimizer.h"

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
