#include "harness/scenario/task_settings.h"

#include "core/text.h"
#include "models/optimizers/optimizer.h"

const struct option training_options[] = {
    {.name = "iterations",
     .synonyms = "iters|steps|max_steps|num_iterations|n_iter",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .fallback = "1000",
     .replaces = "epochs",
     .help = "optimizer steps per task"},
    {.name = "epochs",
     .synonyms = "epoch|num_epochs|n_epochs|max_epochs",
     .type = OPTION_INTEGER,
     .maximum = 1e6,
     .fallback = "0",
     .replaces = "iterations",
     .help = "passes over a task's training images, in place of iterations; 0: iterations decide"},
    {.name = "reference_iterations",
     .type = OPTION_BOOLEAN,
     .fallback = "no",
     .help = "one more step per task, as in the public code"},
    {.name = "batch",
     .synonyms = "bs|batch_size|batchsize|train_batch_size",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 65536,
     .fallback = "64",
     .help = "images per iteration"},
    {.name = "learning_rate",
     .synonyms = "lr|eta|base_lr|step_size",
     .type = OPTION_REAL,
     .maximum = 100,
     .fallback = "1e-3",
     .help = "learning rate at the peak of the schedule"},
    {.name = "warmup",
     .synonyms = "warmup_steps|warmup_iters|num_warmup_steps|warmup_length",
     .type = OPTION_INTEGER,
     .maximum = 1e9,
     .fallback = "100",
     .replaces = "warmup_epochs",
     .help = "iterations of linear warm-up"},
    {.name = "warmup_epochs",
     .type = OPTION_INTEGER,
     .maximum = 1e6,
     .fallback = "0",
     .replaces = "warmup",
     .help = "passes over a task's training images that the warm-up takes, in place of warmup; 0: warmup decides"},
    {.name = "loss",
     .synonyms = "criterion|loss_fn",
     .type = OPTION_CHOICE,
     .choices = "cross_entropy|contrastive",
     .fallback = "cross_entropy",
     .help = "loss of a batch: cross_entropy of its images over the task's classes, or contrastive, CLIP's, over its "
             "images and the prompts of their labels"},
    {.name = "label_smoothing",
     .synonyms = "ls|smoothing",
     .type = OPTION_REAL,
     .maximum = 1,
     .fallback = "0.2",
     .help = "label smoothing of the loss"},
    {.name = "weight_decay",
     .synonyms = "wd|decay",
     .type = OPTION_REAL,
     .maximum = 10,
     .fallback = "0",
     .help = "weight decay: decoupled in adamw and lamb, added to the gradient in sgd"},
    {.name = "optimizer",
     .synonyms = "opt|optim",
     .type = OPTION_CHOICE,
     .choices = OPTIMIZER_CHOICES,
     .fallback = "adamw",
     .help = "optimizer; see mtil list optimizers"},
    {.name = "momentum", .type = OPTION_REAL, .maximum = 0.9999, .fallback = "0.9", .help = "momentum of sgd"},
    {.name = "on_nan",
     .type = OPTION_CHOICE,
     .choices = "stop|skip",
     .fallback = "stop",
     .help = "response to an iteration whose loss or gradients are not finite: stop, or skip and count it"},
    AUGMENT_OPTIONS,
    {0}};

const struct option task_options[] = {
    {.name = "reader", .type = OPTION_TEXT, .help = "reader of the dataset; default: the task's own name"},
    {.name = "root", .type = OPTION_TEXT, .help = "root folder of the task, in place of data.root"},
    {0}};

static size_t whole(const struct options *options, const char *name)
{
    return (size_t)options_integer(options, name);
}

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
    return (struct task_settings){.iterations =
                                      whole(o, "iterations") + (options_boolean(o, "reference_iterations") ? 1 : 0),
                                  .schedule_end = whole(o, "iterations"),
                                  .epochs = whole(o, "epochs"),
                                  .warmup = whole(o, "warmup"),
                                  .warmup_epochs = whole(o, "warmup_epochs"),
                                  .batch = whole(o, "batch"),
                                  .rate = options_real(o, "learning_rate"),
                                  .rule = rule_of(o),
                                  .contrastive = options_choice(o, "loss") == 1,
                                  .smoothing = (float)options_real(o, "label_smoothing"),
                                  .on_nan = (enum on_nan)options_choice(o, "on_nan"),
                                  .augmentation = augmentation_of(o)};
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
