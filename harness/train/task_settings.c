#include "harness/train/task_settings.h"

#include "models/optimizers/optimizer.h"

const struct option training_options[] = {
    {.name = "iterations",
     .synonyms = "iters|steps|max_steps|num_iterations|n_iter",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .fallback = "1000",
     .help = "optimizer steps per task"},
    {.name = "epochs",
     .synonyms = "epoch|num_epochs|n_epochs|max_epochs",
     .type = OPTION_INTEGER,
     .minimum = 0,
     .maximum = 1e6,
     .fallback = "0",
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
     .minimum = 0,
     .maximum = 100,
     .fallback = "1e-3",
     .help = "learning rate at the peak of the schedule"},
    {.name = "warmup",
     .synonyms = "warmup_steps|warmup_iters|num_warmup_steps",
     .type = OPTION_INTEGER,
     .minimum = 0,
     .maximum = 1e9,
     .fallback = "100",
     .help = "iterations of linear warm-up"},
    {.name = "warmup_epochs",
     .type = OPTION_INTEGER,
     .minimum = 0,
     .maximum = 1e6,
     .fallback = "0",
     .help = "passes over a task's training images that the warm-up takes, in place of warmup; 0: warmup decides"},
    {.name = "label_smoothing",
     .synonyms = "ls|smoothing",
     .type = OPTION_REAL,
     .minimum = 0,
     .maximum = 1,
     .fallback = "0.2",
     .help = "label smoothing of the cross-entropy"},
    {.name = "weight_decay",
     .synonyms = "wd|decay",
     .type = OPTION_REAL,
     .minimum = 0,
     .maximum = 10,
     .fallback = "0",
     .help = "weight decay: decoupled in adamw and lamb, added to the gradient in sgd"},
    {.name = "optimizer",
     .synonyms = "opt|optim",
     .type = OPTION_CHOICE,
     .choices = OPTIMIZER_CHOICES,
     .fallback = "adamw",
     .help = "optimizer; see mtil list optimizers"},
    {.name = "momentum",
     .type = OPTION_REAL,
     .minimum = 0,
     .maximum = 0.9999,
     .fallback = "0.9",
     .help = "momentum of sgd"},
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
                                  .smoothing = (float)options_real(o, "label_smoothing"),
                                  .on_nan = (enum on_nan)options_choice(o, "on_nan"),
                                  .augmentation = augmentation_of(o)};
}

struct task_settings task_settings_of(const char *name, const char *data_root, const struct options *o)
{
    const char *reader = options_text(o, "reader"), *root = options_text(o, "root");
    struct task_settings settings = training_settings_of(o);
    settings.name = name;
    settings.reader = reader != NULL ? reader : name;
    settings.template = options_text(o, "template");
    settings.root = root != NULL ? root : data_root;
    return settings;
}
