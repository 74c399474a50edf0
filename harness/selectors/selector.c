#include "harness/selectors/selector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/train/image_pass.h"
#include "models/alexnet.h"
#include "models/files/weights_file.h"

/* --- Keys --- */

#define CHOICE(name) "|" #name
static const char choices[] = SELECTORS(CHOICE);
#undef CHOICE

const struct option selector_options[] = {
    OPTION_ONE_OF("kind", choices + 1, "clip",
                  "selector that chooses the router of a test image; see mtil list selectors"),
    OPTION_ONE_OF("decision", "per_image|per_batch", "per_image",
                  "unit of a decision: an image, or a batch of one dataset", INTO(struct selector_settings, decision),
                  .when = "kind!=oracle|none"),
    OPTION_NUMBER(INTEGER, "decision_batch", 1, 1e6, "128", "images that decide together, with decision: per_batch",
                  INTO(struct selector_settings, decision_batch), .when = "decision=per_batch"),
    OPTION_NUMBER(INTEGER, "code", 1, 65536, "100", "hidden units of an autoencoder",
                  INTO(struct selector_settings, code), .when = "kind=clip|alexnet"),
    OPTION_NUMBER(INTEGER, "iterations", 1, 1e6, "300", "training steps of an autoencoder",
                  INTO(struct selector_settings, iterations), .when = "kind=clip|alexnet"),
    OPTION_NUMBER(INTEGER, "batch", 1, 65536, "64", "images per training step of an autoencoder",
                  INTO(struct selector_settings, batch), .when = "kind=clip|alexnet"),
    OPTION_NUMBER(REAL, "learning_rate", 0, 10, "0.01",
                  "learning rate of an autoencoder, divided by 10 every 10 epochs",
                  INTO(struct selector_settings, rate), .when = "kind=clip|alexnet"),
    OPTION_NUMBER(REAL, "l2", 0, 1, "1e-4", "L2 penalty of an autoencoder, added to its gradient",
                  INTO(struct selector_settings, l2), .when = "kind=clip|alexnet"),
    OPTION_NUMBER(REAL, "quantile", 0, 1, "0.99", "quantile of a task's held-out losses that becomes its threshold",
                  INTO(struct selector_settings, quantile), .when = "threshold=0"),
    OPTION_NUMBER(REAL, "threshold", -1e9, 1e9, "0",
                  "fixed threshold of all tasks, below 0 for kind: task_gaussian alone; 0: the quantile; with kind: "
                  "alexnet the default is the published 0.0655",
                  INTO(struct selector_settings, threshold), .when = "kind!=oracle|none"),
    OPTION_NUMBER(REAL, "shrinkage", 0, 1, "0.1",
                  "share of the covariance that is replaced by its mean variance, with kind: gaussian",
                  INTO(struct selector_settings, shrinkage), .when = "kind=gaussian", .incidental = "0.1"),
    OPTION(FILE, "alexnet", NULL, "file of AlexNet's weights under torchvision's names, for kind: alexnet",
           INTO(struct selector_settings, alexnet), .when = "kind=alexnet"),
    OPTION(FOLDER, "unrelated", NULL,
           "folder of images that belong to no task; their autoencoder competes as well, and where it wins zero-shot "
           "CLIP answers",
           INTO(struct selector_settings, unrelated), .when = "kind=clip|alexnet"),
    {0}};

struct selector_settings selector_settings_of(const struct options *o)
{
    struct selector_settings s = {.kind = selector_kind_at(options_choice(o, "kind"))};
    options_fill(o, selector_options, &s);
    return s;
}

const char *selector_preset(const char *name, const char *section, const char *key)
{
    const struct selector_kind *kind;
    for (size_t i = 0; (kind = selector_kind_at(i)) != NULL; i++)
        if (strcmp(kind->name, name) == 0 && strcmp(key, "threshold") == 0)
            return kind->threshold;
    return NULL;
}

#define ALEXNET                                                                                                        \
    "AlexNet's weights: torchvision's alexnet-owt-7be5be79.pth, from https://download.pytorch.org/models/; without "   \
    "them leave out rows with kind alexnet, as in row=Park-clip, or set selector.kind=clip"

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

#define ENTRY(name) &selector_##name,
static const struct selector_kind *const kinds[] = {SELECTORS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(selector_kind, struct selector_kind, kinds, "selector", "kind")

/* --- Opening --- */

static status create(struct selector **result, const struct selector *description, enum parameters_mode mode,
                     struct error *error)
{
    SCOPED(selector_destroy_at) struct selector *selector = xcalloc(1, sizeof *selector);
    *selector = *description;
    selector->thresholds = xcalloc(selector->tasks, sizeof *selector->thresholds);
    TRY(selector->kind->open(selector, mode, error));
    *result = TAKE(selector);
    return OK;
}

status selector_create(struct selector **selector, struct model *model, const struct data *data, struct error *error)
{
    const struct selector_settings *s = &model->settings.selector;
    return create(selector,
                  &(struct selector){.kind = s->kind,
                                     .model = model,
                                     .data = data,
                                     .settings = *s,
                                     .tasks = data->task_count,
                                     .decision = s->decision,
                                     .decision_batch = s->decision_batch,
                                     .code = s->code,
                                     .unrelated = s->unrelated != NULL},
                  PARAMETERS_TRAINED, error);
}

size_t selector_coder_width(const struct selector_kind *kind, const struct model *model)
{
    return kind->features == FEATURES_PIXELS ? ALEXNET_WIDTH : model->clip->dimensions.image_width;
}

/* How many tasks the file's selector was trained for. */
static status find_trained(const struct safetensors *file, const struct adapter_metadata *metadata,
                           const float **thresholds, size_t *trained, struct error *error)
{
    TRY(selector_file_thresholds(file, thresholds, trained, error));
    if (*trained == 0 || *trained > metadata->task_count || !metadata->tasks[*trained - 1].trained)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected selector.thresholds for the first trained ones of its %zu tasks, found %zu",
                         safetensors_path(file), metadata->task_count, *trained);
    return OK;
}

status selector_open(struct selector **result, struct model *model, const struct data *data,
                     const struct safetensors *file, const struct adapter_metadata *metadata, struct error *error)
{
    SCOPED(selector_destroy_at) struct selector *selector = NULL;
    const struct selector_kind *kind;
    const float *thresholds;
    size_t tasks;
    if (selector_kind_find(&kind, metadata->selector, error) != OK)
        return error_context(error, "%s", safetensors_path(file));
    if (kind->route != ROUTE_BY_ERRORS || (metadata->code > 0) != (kind->before != NULL))
        return error_set(
            error, ERROR_FORMAT,
            "%s: metadata selector: expected a kind that chooses, with a code if it has autoencoders, found "
            "%s and a code of %zu",
            safetensors_path(file), kind->name, metadata->code);
    TRY(find_trained(file, metadata, &thresholds, &tasks, error));
    if (metadata->code > 0)
        TRY(selector_file_check(file, selector_coder_width(kind, model), metadata->code, metadata->unrelated, &tasks,
                                error));
    TRY(create(&selector,
               &(struct selector){.kind = kind,
                                  .model = model,
                                  .data = data,
                                  .settings = model->settings.selector,
                                  .tasks = tasks,
                                  .trained = tasks,
                                  .decision = metadata->per_batch ? DECIDE_PER_BATCH : DECIDE_PER_IMAGE,
                                  .decision_batch = metadata->decision_batch,
                                  .code = metadata->code,
                                  .unrelated = metadata->unrelated,
                                  .prepared = true},
               PARAMETERS_FROZEN, error));
    memcpy(selector->thresholds, thresholds, tasks * sizeof *thresholds);
    TRY(kind->file(selector, &(struct selector_arrays){.file = file}, error));
    *result = TAKE(selector);
    return OK;
}

void selector_destroy(struct selector *selector)
{
    if (selector == NULL)
        return;
    selector->kind->close(selector);
    free(selector->thresholds);
    free(selector);
}

/* --- Thresholds --- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* A quantile of the values, with linear interpolation between neighbours. */
static float quantile(float *values, size_t n, double share)
{
    qsort(values, n, sizeof *values, compare_floats);
    double position = share * (double)(n - 1);
    size_t low = (size_t)position, high = low + 1 < n ? low + 1 : low;
    return values[low] + (float)(position - (double)low) * (values[high] - values[low]);
}

status selector_set_threshold(struct selector *selector, size_t k, const struct selector_images *held_out,
                              struct error *error)
{
    const struct selector_settings *s = &selector->settings;
    if (s->threshold != 0 || held_out->n == 0) {
        selector->thresholds[k] = s->threshold != 0 ? (float)s->threshold : INFINITY;
        return OK;
    }
    OWNED float *errors = xmalloc(array_size(held_out->n, sizeof *errors));
    TRY(selector_errors(selector, k, held_out, errors, error));
    selector->thresholds[k] = quantile(errors, held_out->n, s->quantile);
    return OK;
}

/* --- Training --- */

size_t selector_most(const struct selector_settings *settings)
{
    return settings->kind->most != NULL ? settings->kind->most(settings) : SIZE_MAX;
}

/* Of a task's shuffled training images: items [n] become those that the iterations can reach, `used`, and a held-out
 * tenth. Returns how many both are. */
static size_t choose_items(const struct selector *selector, const struct task *task, uint32_t *items, size_t *used)
{
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), tenth = n / 10 > 0 ? n / 10 : 1, held_out = n > 1 ? tenth : 0,
           most = selector_most(&selector->settings);
    struct rng rng = rng_make(selector->model->seed, RNG_SELECTOR, (uint32_t)task->index, 15);
    rng_permutation(&rng, n, items);
    *used = n - held_out < most ? n - held_out : most;
    memmove(items + *used, items + n - held_out, held_out * sizeof *items);
    return *used + held_out;
}

status selector_fit(struct selector *selector, const struct task *task, const struct selector_images *images,
                    size_t used, struct error *error)
{
    if (!selector->prepared && selector->kind->before != NULL)
        TRY(selector->kind->before(selector, error));
    selector->prepared = true;
    TRY(selector->kind->fit(selector, task, images, used, error));
    selector->trained = task->index + 1;
    return OK;
}

status selector_train(struct selector *selector, const struct task *task, const struct stop *stop, struct error *error)
{
    struct model *model = selector->model;
    const struct clip_dimensions *d = &model->clip->dimensions;
    bool frozen = selector->kind->features != FEATURES_PIXELS, whole = selector->kind->features == FEATURES_IMAGE;
    OWNED uint32_t *items = xmalloc(array_size(dataset_size(task->dataset, SPLIT_TRAIN), sizeof *items));
    size_t used, n = choose_items(selector, task, items, &used);
    OWNED float *means = xmalloc(array_size(frozen ? n : 1, d->image_width * sizeof *means)),
                *features = xmalloc(array_size(whole ? n : 1, d->embed * sizeof *features));
    OWNED int32_t *labels = xmalloc(array_size(n, sizeof *labels));
    for (size_t i = 0; i < n; i++)
        labels[i] = dataset_label(task->dataset, SPLIT_TRAIN, items[i]);
    if (frozen)
        TRY(frozen_features(model, selector->data, task->dataset, SPLIT_TRAIN, items, n, means, whole ? features : NULL,
                            stop, error));
    struct selector_images images = {.n = n,
                                     .means = means,
                                     .features = features,
                                     .labels = labels,
                                     .dataset = task->dataset,
                                     .split = SPLIT_TRAIN,
                                     .items = items,
                                     .stop = stop};
    return selector_fit(selector, task, &images, used, error);
}

/* --- Errors and the choice --- */

bool selector_errors_changed(const struct selector *selector, size_t trained)
{
    return selector->kind->shared && trained != selector->trained;
}

bool selector_wants(const struct selector *selector, size_t k)
{
    return k < selector->trained || (k == selector->tasks && selector->unrelated);
}

status selector_errors(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                       struct error *error)
{
    TRY(selector->kind->errors(selector, k, images, errors, error));
    if (not_finite_at(errors, images->n) == images->n)
        return OK;
    const struct data *data = selector->data;
    return error_set(error, ERROR_FORMAT, "selector: the errors of %s are not finite",
                     k < data->task_count ? data->tasks[k].settings.name : "unrelated images");
}

size_t selector_together(const struct selector *selector)
{
    return selector->decision == DECIDE_PER_BATCH ? selector->decision_batch : 1;
}

static float mean_of(const float *errors, size_t first, size_t last)
{
    double total = 0;
    for (size_t i = first; i < last; i++)
        total += (double)errors[i];
    return (float)(total / (double)(last - first));
}

/* Mean errors of images first … last − 1 under every task that competes. */
static void mean_errors(const struct selector *selector, const float *const *errors, size_t first, size_t last,
                        float means[SETTINGS_TASKS])
{
    for (size_t k = 0; k < selector->trained; k++)
        means[k] = mean_of(errors[k], first, last);
}

void selector_choose(const struct selector *selector, const float *const *errors, size_t n, int16_t *routers)
{
    size_t together = selector_together(selector);
    for (size_t first = 0; first < n; first += together) {
        size_t last = first + together < n ? first + together : n;
        float means[SETTINGS_TASKS];
        mean_errors(selector, errors, first, last, means);
        int choice = autoencoder_choice(means, selector->thresholds, selector->trained);
        if (choice >= 0 && selector->unrelated && mean_of(errors[selector->tasks], first, last) <= means[choice])
            choice = -1;
        for (size_t i = first; i < last; i++)
            routers[i] = (int16_t)choice;
    }
}

void selector_least_errors(const struct selector *selector, const float *const *errors, size_t n, float *least)
{
    size_t together = selector_together(selector);
    for (size_t first = 0; first < n; first += together) {
        size_t last = first + together < n ? first + together : n;
        float means[SETTINGS_TASKS], smallest = INFINITY;
        mean_errors(selector, errors, first, last, means);
        for (size_t k = 0; k < selector->trained; k++)
            smallest = means[k] < smallest ? means[k] : smallest;
        for (size_t i = first; i < last; i++)
            least[i] = smallest;
    }
}
