#include <string.h>

#include "core/file.h"
#include "core/text.h"
#include "harness/selectors/selectors.h"
#include "models/files/weights_file.h"

#define CHOICE(name) "|" #name
static const char choices[] = SELECTORS(CHOICE);
#undef CHOICE

const struct option selector_options[] = {
    {.name = "kind",
     .type = OPTION_CHOICE,
     .choices = choices + 1,
     .fallback = "clip",
     .help = "selector that chooses the router of a test image; see mtil list selectors"},
    {.name = "decision",
     .type = OPTION_CHOICE,
     .choices = "per_image|per_batch",
     .fallback = "per_image",
     .help = "unit of a decision: an image, or a batch of one dataset"},
    {.name = "decision_batch",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 1e6,
     .fallback = "128",
     .help = "images that decide together, with decision: per_batch"},
    {.name = "code",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 65536,
     .fallback = "100",
     .help = "hidden units of an autoencoder"},
    {.name = "iterations",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 1e6,
     .fallback = "300",
     .help = "training steps of an autoencoder"},
    {.name = "batch",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 65536,
     .fallback = "64",
     .help = "images per training step of an autoencoder"},
    {.name = "learning_rate",
     .type = OPTION_REAL,
     .maximum = 10,
     .fallback = "0.01",
     .help = "learning rate of an autoencoder, divided by 10 every 10 epochs"},
    {.name = "l2",
     .type = OPTION_REAL,
     .maximum = 1,
     .fallback = "1e-4",
     .help = "L2 penalty of an autoencoder, added to its gradient"},
    {.name = "quantile",
     .type = OPTION_REAL,
     .maximum = 1,
     .fallback = "0.99",
     .help = "quantile of a task's held-out losses that becomes its threshold"},
    {.name = "threshold",
     .type = OPTION_REAL,
     .minimum = -1e9,
     .maximum = 1e9,
     .fallback = "0",
     .help =
         "fixed threshold of all tasks, below 0 for kind: task_gaussian alone; 0: the quantile; with kind: alexnet the "
         "default is the published 0.0655"},
    {.name = "shrinkage",
     .type = OPTION_REAL,
     .maximum = 1,
     .fallback = "0.1",
     .help = "share of the covariance that is replaced by its mean variance, with kind: gaussian"},
    {.name = "alexnet",
     .type = OPTION_FILE,
     .help = "file of AlexNet's weights under torchvision's names, for kind: alexnet"},
    {.name = "unrelated",
     .type = OPTION_FOLDER,
     .help = "folder of images that belong to no task; their autoencoder competes as well, and where it wins zero-shot "
             "CLIP answers"},
    {0}};

static size_t whole(const struct options *options, const char *name)
{
    return (size_t)options_integer(options, name);
}

struct selector_settings selector_settings_of(const struct options *o)
{
    return (struct selector_settings){.kind = selector_kind_at(options_choice(o, "kind")),
                                      .decision = (enum selector_decision)options_choice(o, "decision"),
                                      .decision_batch = whole(o, "decision_batch"),
                                      .code = whole(o, "code"),
                                      .iterations = whole(o, "iterations"),
                                      .batch = whole(o, "batch"),
                                      .rate = options_real(o, "learning_rate"),
                                      .l2 = options_real(o, "l2"),
                                      .quantile = options_real(o, "quantile"),
                                      .threshold = options_real(o, "threshold"),
                                      .shrinkage = options_real(o, "shrinkage"),
                                      .alexnet = options_text(o, "alexnet"),
                                      .unrelated = options_text(o, "unrelated")};
}

const char *selector_preset(const char *name, const char *section, const char *key)
{
    const struct selector_kind *kind;
    (void)section;
    for (size_t i = 0; (kind = selector_kind_at(i)) != NULL; i++)
        if (strcmp(kind->name, name) == 0 && strcmp(key, "threshold") == 0)
            return kind->threshold;
    return NULL;
}

#define ALEXNET                                                                                                        \
    "AlexNet's weights: torchvision's alexnet-owt-7be5be79.pth, from https://download.pytorch.org/models/; without "   \
    "them leave out rows with kind alexnet, as in row=Park-clip, or set selector.kind=clip"

bool selector_settings_read(const struct options *o, const char *key)
{
    const struct selector_settings s = selector_settings_of(o);
    if (strcmp(key, "kind") == 0)
        return true;
    if (s.kind->route != ROUTE_BY_ERRORS)
        return false;
    if (strcmp(key, "decision") == 0 || strcmp(key, "threshold") == 0)
        return true;
    if (strcmp(key, "decision_batch") == 0)
        return s.decision == DECIDE_PER_BATCH;
    if (strcmp(key, "quantile") == 0)
        return s.threshold == 0;
    return s.kind->reads != NULL && text_has_word(s.kind->reads, key);
}

status selector_settings_check(const struct selector_settings *s, struct error *error)
{
    if (s->kind->features == FEATURES_PIXELS && s->alexnet == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: selector.kind %s: expected in selector.alexnet a file of " ALEXNET, s->kind->name);
    if (s->kind->features == FEATURES_PIXELS && weights_shards_is_index(s->alexnet)) /* one file has the digest */
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: selector.alexnet: expected one file, found the index of shards %s; join them by mtil convert "
            "weights",
            s->alexnet);
    if (s->unrelated != NULL && s->kind->before == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: selector.unrelated is for selectors of autoencoders (clip, alexnet), found kind %s",
                         s->kind->name);
    if (s->threshold < 0 && s->kind != &selector_task_gaussian)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: selector.threshold is %g, but errors of selector.kind %s are never below 0; expected 0, "
            "which takes selector.quantile, or a number above it",
            s->threshold, s->kind->name);
    return OK;
}

status selector_settings_look(const struct selector_settings *s, struct error *error)
{
    if (s->kind->features != FEATURES_PIXELS || file_exists(s->alexnet))
        return OK;
    return error_set(error, ERROR_IO, "selector.alexnet: there is no file %s; expected " ALEXNET, s->alexnet);
}
