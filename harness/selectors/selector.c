#include "harness/selectors/selector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/files/selector_file.h"
#include "harness/train/batches.h"
#include "harness/train/guard.h"

static status create(struct selector **result, struct experiment *e, size_t tasks, size_t code,
                     enum parameters_mode mode, struct error *error)
{
    struct selector *selector = calloc(1, sizeof *selector);
    if (selector == NULL)
        return error_set(error, ERROR_MEMORY, "selector: no memory for its description");
    selector->experiment = e;
    selector->tasks = tasks;
    selector->coders = calloc(tasks, sizeof *selector->coders);
    selector->thresholds = calloc(tasks, sizeof *selector->thresholds);
    status made = selector->coders != NULL && selector->thresholds != NULL
                      ? OK
                      : error_set(error, ERROR_MEMORY, "selector: no memory for %zu tasks", tasks);
    for (size_t k = 0; made == OK && k < tasks; k++)
        made = autoencoder_create(&selector->coders[k], e->model.backend, &e->model.memory,
                                  e->model.clip->dimensions.image_width, code, mode, error);
    if (made != OK) {
        selector_destroy(selector);
        return made;
    }
    *result = selector;
    return OK;
}

status selector_create(struct selector **selector, struct experiment *e, struct error *error)
{
    const struct selector_settings *s = &e->settings.selector;
    TRY(create(selector, e, e->data.task_count, s->code, PARAMETERS_TRAINED, error));
    (*selector)->decision = s->decision;
    (*selector)->decision_batch = s->decision_batch;
    return OK;
}

status selector_open(struct selector **result, struct experiment *e, const struct safetensors *file,
                     const struct adapter_card *card, struct error *error)
{
    struct selector *selector;
    size_t tasks;
    TRY(selector_file_check(file, e->model.clip->dimensions.image_width, card->code, &tasks, error));
    if (tasks == 0 || tasks > card->task_count || !card->tasks[tasks - 1].trained)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected selector.thresholds for the first trained ones of its %zu tasks, found %zu",
                         safetensors_path(file), card->task_count, tasks);
    TRY(create(&selector, e, tasks, card->code, PARAMETERS_FROZEN, error));
    selector->trained = tasks;
    selector->decision = card->per_batch ? DECIDE_PER_BATCH : DECIDE_PER_IMAGE;
    selector->decision_batch = card->decision_batch;
    status read = selector_file_read(file, selector->coders, selector->thresholds, tasks, error);
    if (read != OK) {
        selector_destroy(selector);
        return read;
    }
    *result = selector;
    return OK;
}

void selector_destroy(struct selector *selector)
{
    if (selector == NULL)
        return;
    for (size_t k = 0; selector->coders != NULL && k < selector->tasks; k++)
        autoencoder_destroy(selector->coders[k]);
    free(selector->coders);
    free(selector->thresholds);
    free(selector);
}

/* The next batch: means [count, width] and, unless NULL, features [count, embed]. */
static status encode_next(struct experiment *e, struct batches *batches, float *means, float *features, size_t *count,
                          struct error *error)
{
    struct encoding encoding = {.arena = &e->model.step_memory, .whole = true};
    struct batch batch;
    struct tower_pass pass;
    struct tensor output, mean;
    arena_reset(&e->model.step_memory);
    TRY(batches_take(batches, &batch, error));
    *count = batch.count;
    TRY(clip_encode_images(e->model.clip, &encoding, &(struct image_batch){.images = batch.images}, &pass, &output,
                           error));
    TRY(clip_mean_patches(e->model.clip, &e->model.step_memory, &pass, &mean, error));
    batches_advance(batches);
    if (features != NULL)
        TRY(e->model.backend->ops->download(e->model.backend, features, output.data, tensor_bytes(&output), error));
    return e->model.backend->ops->download(e->model.backend, means, mean.data, tensor_bytes(&mean), error);
}

static status encode_all(struct experiment *e, struct batches *batches, const struct loader_settings *settings,
                         size_t n, float *means, float *features, const struct stop *stop, struct error *error)
{
    size_t width = e->model.clip->dimensions.image_width, embed = e->model.clip->dimensions.embed;
    struct guarded_images images = {.dataset = settings->dataset, .split = settings->split, .items = settings->items};
    for (; images.first < n; images.first += images.n) {
        if (stop_requested(stop))
            return error_set(error, ERROR_STOPPED, "stopped while features were computed");
        float *mean = means + images.first * width,
              *feature = features != NULL ? features + images.first * embed : NULL;
        TRY(encode_next(e, batches, mean, feature, &images.n, error));
        images.width = width;
        images.features = mean;
        TRY(guard_images(&images, error));
        images.width = embed;
        images.features = feature;
        TRY(feature != NULL ? guard_images(&images, error) : OK);
    }
    return OK;
}

status frozen_features(struct experiment *e, const struct dataset *dataset, enum split split, const uint32_t *items,
                       size_t n, float *means, float *features, const struct stop *stop, struct error *error)
{
    size_t batch = experiment_evaluation_batch(e);
    struct loader_settings settings = {.dataset = dataset,
                                       .split = split,
                                       .items = items,
                                       .item_count = n,
                                       .resolution = (int)e->model.clip->dimensions.resolution,
                                       .batch = batch,
                                       /* Training images are read once, test images for every row of the accuracy
                                        * matrix. */
                                       .cache = split == SPLIT_TEST ? e->data.cache : NULL};
    struct batches *batches;
    TRY(batches_open(&batches, e, &settings, 0, (n + batch - 1) / batch, error));
    status result = encode_all(e, batches, &settings, n, means, features, stop, error);
    batches_close(batches);
    return result;
}

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

static status upload_rows(struct experiment *e, const float *rows, size_t n, struct tensor *tensor, struct error *error)
{
    TRY(tensor_take(tensor, &e->model.step_memory, TENSOR_F32, "selector features", 2,
                    (size_t[]){n, e->model.clip->dimensions.image_width}, error));
    return e->model.backend->ops->upload(e->model.backend, tensor->data, rows, tensor_bytes(tensor), error);
}

/* n rows of features, drawn epoch by epoch. */
static status train_coder(struct experiment *e, struct autoencoder *coder, const struct task *task,
                          const float *features, size_t n, struct error *error)
{
    const struct selector_settings *s = &e->settings.selector;
    size_t width = e->model.clip->dimensions.image_width, batch = s->batch < n ? s->batch : n,
           per_epoch = (n + batch - 1) / batch;
    uint32_t *order = malloc(array_size(n, sizeof *order));
    float *rows = malloc(array_size(batch * width, sizeof *rows));
    status result =
        order != NULL && rows != NULL ? OK : error_set(error, ERROR_MEMORY, "selector: no memory for a batch");
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .l2 = s->l2};
    for (size_t i = 0; result == OK && i < s->iterations; i++) {
        if (stop_requested(e->stop)) {
            result =
                error_set(error, ERROR_STOPPED, "stopped while the selector of %s was trained", task->settings.name);
            break;
        }
        size_t epoch = i / per_epoch, first = i % per_epoch * batch, count = n - first < batch ? n - first : batch,
               drops = epoch / 10;
        struct tensor tensor;
        float loss;
        struct rng rng = rng_make(e->seed, RNG_SELECTOR, (uint32_t)task->index, 16 + (uint32_t)epoch);
        if (first == 0)
            rng_permutation(&rng, n, order);
        for (size_t k = 0; k < count; k++)
            memcpy(rows + k * width, features + order[first + k] * width, width * sizeof *rows);
        arena_reset(&e->model.step_memory);
        result = upload_rows(e, rows, count, &tensor, error);
        NEXT(result, experiment_set_step(e, task->index, i, s->rate * pow(0.1, (double)drops), error));
        NEXT(result,
             autoencoder_train_step(coder, &e->model.step_memory, &tensor, e->model.state, &rule, &loss, error));
        if (result == OK && !isfinite(loss))
            result =
                error_set(error, ERROR_ARGUMENT,
                          "%s: iteration %zu of the selector: its loss is %g; lower selector.learning_rate (now at %g)",
                          task->settings.name, i + 1, (double)loss, s->rate);
    }
    free(rows);
    free(order);
    return result;
}

/* The loss after the last step is not computed. */
static status check_coder(const struct experiment *e, const struct autoencoder *coder, const struct task *task,
                          struct error *error)
{
    const struct parameters *group = coder->parameters;
    for (size_t i = 0; i < group->count; i++) {
        bool finite;
        TRY(guard_finite(e, group->values + group->list[i].offset, group->list[i].size, &finite, error));
        if (!finite)
            return error_set(
                error, ERROR_ARGUMENT,
                "%s: the selector's %s is not finite after its training; lower selector.learning_rate (now at "
                "%g)",
                task->settings.name, group->list[i].name, e->settings.selector.rate);
    }
    return OK;
}

/* Of a task's shuffled training images: those that the iterations can reach, and a held-out tenth. */
struct selector_items {
    uint32_t *items;
    size_t used, held_out;
};

static status choose_items(const struct experiment *e, const struct task *task, struct selector_items *chosen,
                           struct error *error)
{
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), held_out = n / 10 > 0 ? n / 10 : 1,
           most = e->settings.selector.iterations * e->settings.selector.batch;
    chosen->items = malloc(array_size(n, sizeof *chosen->items));
    if (chosen->items == NULL)
        return error_set(error, ERROR_MEMORY, "selector: no memory for %zu items", n);
    struct rng rng = rng_make(e->seed, RNG_SELECTOR, (uint32_t)task->index, 15);
    rng_permutation(&rng, n, chosen->items);
    chosen->held_out = n > 1 ? held_out : 0;
    chosen->used = n - chosen->held_out < most ? n - chosen->held_out : most;
    memmove(chosen->items + chosen->used, chosen->items + n - chosen->held_out,
            chosen->held_out * sizeof *chosen->items);
    return OK;
}

static status set_threshold(struct selector *selector, const struct task *task, const float *held_out, size_t n,
                            struct error *error)
{
    const struct selector_settings *s = &selector->experiment->settings.selector;
    if (s->threshold > 0 || n == 0) {
        selector->thresholds[task->index] = s->threshold > 0 ? (float)s->threshold : INFINITY;
        return OK;
    }
    float *errors = malloc(array_size(n, sizeof *errors));
    if (errors == NULL)
        return error_set(error, ERROR_MEMORY, "selector: no memory for %zu errors", n);
    status result = selector_errors(selector, task->index, held_out, n, errors, error);
    if (result == OK)
        selector->thresholds[task->index] = quantile(errors, n, s->quantile);
    free(errors);
    return result;
}

status selector_fit(struct selector *selector, const struct task *task, const float *features, size_t used,
                    size_t held_out, struct error *error)
{
    struct experiment *e = selector->experiment;
    struct autoencoder *coder = selector->coders[task->index];
    TRY(autoencoder_initialize(coder, e->seed, (uint32_t)task->index, error));
    TRY(parameters_reset(coder->parameters, error));
    TRY(train_coder(e, coder, task, features, used, error));
    TRY(check_coder(e, coder, task, error));
    TRY(set_threshold(selector, task, features + used * e->model.clip->dimensions.image_width, held_out, error));
    selector->trained = task->index + 1;
    return OK;
}

status selector_train(struct selector *selector, const struct task *task, const struct stop *stop, struct error *error)
{
    struct experiment *e = selector->experiment;
    struct selector_items chosen = {0};
    TRY(choose_items(e, task, &chosen, error));
    size_t n = chosen.used + chosen.held_out;
    float *means = malloc(array_size(n, e->model.clip->dimensions.image_width * sizeof *means));
    status result = means != NULL ? OK : error_set(error, ERROR_MEMORY, "selector: no memory for %zu features", n);
    NEXT(result, frozen_features(e, task->dataset, SPLIT_TRAIN, chosen.items, n, means, NULL, stop, error));
    NEXT(result, selector_fit(selector, task, means, chosen.used, chosen.held_out, error));
    free(means);
    free(chosen.items);
    return result;
}

status selector_errors(struct selector *selector, size_t k, const float *features, size_t n, float *errors,
                       struct error *error)
{
    enum { ROWS = 4096 };
    struct experiment *e = selector->experiment;
    size_t width = e->model.clip->dimensions.image_width;
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        struct tensor tensor;
        arena_reset(&e->model.step_memory);
        TRY(upload_rows(e, features + first * width, count, &tensor, error));
        TRY(autoencoder_errors(selector->coders[k], &e->model.step_memory, &tensor, errors + first, error));
    }
    if (not_finite_at(errors, n) < n)
        return error_set(error, ERROR_FORMAT, "selector: the errors of the autoencoder of %s are not finite",
                         e->data.tasks[k].settings.name);
    return OK;
}

size_t selector_together(const struct selector *selector)
{
    return selector->decision == DECIDE_PER_BATCH ? selector->decision_batch : 1;
}

/* Of images first … last − 1, under every trained autoencoder. */
static void mean_errors(const struct selector *selector, const float *const *errors, size_t first, size_t last,
                        float means[SETTINGS_TASKS])
{
    for (size_t k = 0; k < selector->trained; k++) {
        double total = 0;
        for (size_t i = first; i < last; i++)
            total += (double)errors[k][i];
        means[k] = (float)(total / (double)(last - first));
    }
}

void selector_choose(const struct selector *selector, const float *const *errors, size_t n, int16_t *routers)
{
    size_t together = selector_together(selector);
    for (size_t first = 0; first < n; first += together) {
        size_t last = first + together < n ? first + together : n;
        float means[SETTINGS_TASKS];
        mean_errors(selector, errors, first, last, means);
        int choice = autoencoder_choice(means, selector->thresholds, selector->trained);
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
