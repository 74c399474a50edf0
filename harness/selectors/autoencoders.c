/* Selectors with one autoencoder per task, trained on features of the task's images, whose reconstruction error measures
 * how foreign an image is. They differ in the features: FEATURES_PATCHES are computed once, FEATURES_PIXELS (AlexNet's,
 * which are not kept in memory) from the images every time.
 */
#include "harness/selectors/selector.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/train/batches.h"
#include "harness/train/image_pass.h"
#include "models/alexnet.h"

enum {
    UNRELATED_ITERATIONS = 1000,
    UNRELATED_TASK = SETTINGS_TASKS /* in place of a task's number, for what is drawn */
};

struct state {
    struct autoencoder *learner; /* is trained, then copied to where its task's is kept; NULL: nothing is trained */
    struct alexnet *alexnet;     /* FEATURES_PIXELS */
};

static size_t width_of(const struct selector *selector)
{
    return selector_coder_width(selector->kind, selector->model);
}

static size_t coders_most(const struct selector_settings *s)
{
    return s->iterations * s->batch;
}

/* --- State --- */

static status open_alexnet(struct selector *selector, struct error *error)
{
    struct state *state = selector->state;
    struct model *model = selector->model;
    const char *path = selector->settings.alexnet;
    if (selector->kind->features != FEATURES_PIXELS)
        return OK;
    if (path == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "the adapters' selector looks at images with AlexNet, whose weights are not in their file: "
                         "name a router with --router, or use mtil eval with a suite that has selector.alexnet");
    return alexnet_load(&state->alexnet, model->backend, &model->memory, path, error);
}

static status coders_open(struct selector *selector, enum parameters_mode mode, struct error *error)
{
    struct model *model = selector->model;
    struct state *state = xcalloc(1, sizeof *state);
    selector->state = state;
    selector->coders = xcalloc(selector->tasks + 1, sizeof(struct autoencoder *));
    TRY(open_alexnet(selector, error));
    for (size_t k = 0; k < selector->tasks + selector->unrelated; k++)
        TRY(autoencoder_create(&selector->coders[k], model->backend, &model->memory, width_of(selector), selector->code,
                               PARAMETERS_FROZEN, error));
    return mode == PARAMETERS_TRAINED ? autoencoder_create(&state->learner, model->backend, &model->memory,
                                                           width_of(selector), selector->code, mode, error)
                                      : OK;
}

static void coders_close(struct selector *selector)
{
    struct state *state = selector->state;
    for (size_t k = 0; selector->coders != NULL && k <= selector->tasks; k++)
        autoencoder_destroy(selector->coders[k]);
    free(selector->coders);
    if (state != NULL) {
        autoencoder_destroy(state->learner);
        alexnet_destroy(state->alexnet);
    }
    free(state);
}

/* --- Rows of features --- */

/* The features of listed images, batch after batch. */
struct source {
    const struct selector *selector;
    const struct selector_images *images;
    float *rows;             /* FEATURES_PATCHES: host [batch, width] */
    uint32_t *items;         /* FEATURES_PIXELS: the images of a pass in its order */
    struct batches *batches; /* of that pass */
};

static void close_source(struct source *source)
{
    batches_close(source->batches);
    free(source->items);
    free(source->rows);
}

static void open_source(struct source *source, const struct selector *selector, const struct selector_images *images,
                        size_t batch)
{
    bool pixels = selector->kind->features == FEATURES_PIXELS;
    *source = (struct source){
        .selector = selector,
        .images = images,
        .rows = xmalloc(array_size(pixels ? 1 : batch, width_of(selector) * sizeof *source->rows)),
        .items = xmalloc(array_size(pixels ? images->n : 1, sizeof *source->items)),
    };
}

static size_t place_of(const uint32_t *order, size_t i)
{
    return order != NULL ? order[i] : i;
}

static status begin_pass(struct source *source, const uint32_t *order, size_t n, size_t batch, struct error *error)
{
    const struct selector_images *images = source->images;
    for (size_t i = 0; i < n; i++) {
        size_t place = place_of(order, i);
        source->items[i] = images->items != NULL ? images->items[place] : (uint32_t)place;
    }
    batches_close(source->batches);
    source->batches = NULL;
    return batches_open(&source->batches, source->selector->model, source->selector->data,
                        &(struct loader_settings){.dataset = images->dataset,
                                                  .split = images->split,
                                                  .items = source->items,
                                                  .item_count = n,
                                                  .resolution = ALEXNET_RESOLUTION,
                                                  .batch = batch},
                        0, (n + batch - 1) / batch, error);
}

static status next_of_pass(struct source *source, struct tensor *tensor, struct error *error)
{
    struct model *model = source->selector->model;
    const struct state *state = source->selector->state;
    struct batch batch;
    TRY(batches_take(source->batches, &batch, error));
    TRY(alexnet_features(state->alexnet, &model->step_memory, &batch.images, tensor, error));
    batches_advance(source->batches);
    return OK;
}

/* Images first … first + count − 1 of a pass over n images in the given order (NULL: as they are), in the step's
 * arena, which is reset. count is `batch`, less at the end of a pass. */
static status take_rows(struct source *source, const uint32_t *order, size_t n, size_t batch, size_t first,
                        size_t count, struct tensor *tensor, struct error *error)
{
    struct model *model = source->selector->model;
    size_t width = width_of(source->selector);
    if (source->selector->kind->features == FEATURES_PIXELS) {
        if (first == 0)
            TRY(begin_pass(source, order, n, batch, error));
        arena_reset(&model->step_memory);
        return next_of_pass(source, tensor, error);
    }
    for (size_t i = 0; i < count; i++)
        memcpy(source->rows + i * width, source->images->means + place_of(order, first + i) * width,
               width * sizeof *source->rows);
    arena_reset(&model->step_memory);
    TRY(tensor_take(tensor, &model->step_memory, TENSOR_F32, "selector features", 2, (size_t[]){count, width}, error));
    return model->backend->ops->upload(model->backend, tensor->data, source->rows, tensor_bytes(tensor), error);
}

static status coders_errors(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                            struct error *error)
{
    enum { ROWS = 4096 };
    struct model *model = selector->model;
    size_t batch = selector->kind->features == FEATURES_PIXELS ? model->evaluation_batch : ROWS;
    SCOPED(close_source) struct source source = {0};
    open_source(&source, selector, images, batch);
    for (size_t first = 0; first < images->n; first += batch) {
        size_t count = images->n - first < batch ? images->n - first : batch;
        struct tensor tensor;
        if (stop_requested(images->stop))
            return error_set(error, ERROR_STOPPED, "stopped while a selector looked at images");
        TRY(take_rows(&source, NULL, images->n, batch, first, count, &tensor, error));
        TRY(autoencoder_errors(selector->coders[k], &model->step_memory, &tensor, errors + first, error));
    }
    return OK;
}

/* --- Training --- */

/* Whose autoencoder it is. */
struct subject {
    const char *name;
    size_t number; /* of the task, for what is drawn */
    size_t coder;  /* which one it becomes */
    size_t iterations;
    size_t images; /* in an epoch of the learning rate's schedule */
};

static status refuse_loss(const struct selector *selector, const struct subject *subject, size_t i, float loss,
                          struct error *error)
{
    return error_set(error, ERROR_ARGUMENT,
                     "%s: iteration %zu of the selector: its loss is %g; lower selector.learning_rate (now at %g)",
                     subject->name, i + 1, (double)loss, selector->settings.rate);
}

/* On the first n images, pass after pass. */
static status learn_steps(struct selector *selector, const struct subject *subject, struct source *source, size_t n,
                          uint32_t *order, struct error *error)
{
    struct model *model = selector->model;
    const struct selector_settings *s = &selector->settings;
    struct state *state = selector->state;
    size_t batch = s->batch < n ? s->batch : n, per_pass = (n + batch - 1) / batch,
           per_epoch = (subject->images + s->batch - 1) / s->batch;
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .l2 = s->l2};
    for (size_t i = 0; i < subject->iterations; i++) {
        size_t pass = i / per_pass, first = i % per_pass * batch, count = n - first < batch ? n - first : batch;
        struct tensor tensor;
        float loss;
        size_t drops = i / per_epoch / 10; /* of the learning rate */
        struct rng rng = rng_make(model->seed, RNG_SELECTOR, (uint32_t)subject->number, 16 + (uint32_t)pass);
        if (stop_requested(model->stop) || stop_requested(source->images->stop))
            return error_set(error, ERROR_STOPPED, "stopped while the selector of %s was trained", subject->name);
        if (first == 0)
            rng_permutation(&rng, n, order);
        TRY(take_rows(source, order, n, batch, first, count, &tensor, error));
        TRY(model_set_step(model, subject->number, i, s->rate * pow(0.1, (double)drops), error));
        TRY(autoencoder_train_step(state->learner, &model->step_memory, &tensor, model->state, &rule, &loss, error));
        selector->steps++;
        if (!isfinite(loss))
            return refuse_loss(selector, subject, i, loss, error);
    }
    return OK;
}

/* The loss after the last step is not computed. */
static status check_learner(const struct selector *selector, const struct subject *subject, struct error *error)
{
    const struct state *state = selector->state;
    const struct parameters *group = state->learner->parameters;
    for (size_t i = 0; i < group->count; i++) {
        bool finite;
        TRY(model_finite(selector->model, group->values + group->list[i].offset, group->list[i].size, &finite, error));
        if (!finite)
            return error_set(
                error, ERROR_FORMAT,
                "%s: the selector's %s is not finite after its training; lower selector.learning_rate (now at "
                "%g)",
                subject->name, group->list[i].name, selector->settings.rate);
    }
    return OK;
}

/* From the first n images. */
static status learn(struct selector *selector, const struct subject *subject, const struct selector_images *images,
                    size_t n, struct error *error)
{
    struct state *state = selector->state;
    struct backend *backend = selector->model->backend;
    struct parameters *learner = state->learner->parameters, *kept = selector->coders[subject->coder]->parameters;
    SCOPED(close_source) struct source source = {0};
    OWNED uint32_t *order = xmalloc(array_size(n + 1, sizeof *order));
    open_source(&source, selector, images, selector->settings.batch);
    TRY(autoencoder_initialize(state->learner, selector->model->seed, (uint32_t)subject->number, error));
    TRY(parameters_reset(learner, error));
    TRY(learn_steps(selector, subject, &source, n, order, error));
    TRY(check_learner(selector, subject, error));
    return backend->ops->copy(backend, parameters_write_all(kept), learner->values,
                              learner->values_count * sizeof(float), error);
}

static status coders_fit(struct selector *selector, const struct task *task, const struct selector_images *images,
                         size_t used, struct error *error)
{
    struct selector_images held_out = *images;
    bool few = dataset_size(task->dataset, SPLIT_TRAIN) < task->all_images;
    TRY(learn(selector,
              &(struct subject){.name = task->settings.name,
                                .number = task->index,
                                .coder = task->index,
                                .iterations = selector->settings.iterations,
                                .images = few ? task->all_images : used},
              images, used, error));
    held_out.n -= used;
    held_out.means = images->means != NULL ? images->means + used * width_of(selector) : NULL;
    held_out.items = images->items != NULL ? images->items + used : NULL;
    return selector_set_threshold(selector, task->index, &held_out, error);
}

/* --- Images of no task --- */

static status coders_before(struct selector *selector, struct error *error)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    struct model *model = selector->model;
    if (!selector->unrelated)
        return OK;
    TRY(dataset_of_images(&dataset, selector->settings.unrelated, error));
    size_t all = dataset_size(dataset, SPLIT_TRAIN), most = UNRELATED_ITERATIONS * selector->settings.batch,
           n = all < most ? all : most;
    OWNED uint32_t *items = xmalloc(array_size(all + 1, sizeof *items));
    OWNED float *means = xmalloc(array_size(n + 1, model->clip->dimensions.image_width * sizeof *means));
    struct selector_images images = {
        .n = n, .means = means, .dataset = dataset, .split = SPLIT_TRAIN, .items = items, .stop = model->stop};
    struct rng rng = rng_make(model->seed, RNG_SELECTOR, UNRELATED_TASK, 15);
    rng_permutation(&rng, all, items);
    if (selector->kind->features == FEATURES_PATCHES)
        TRY(frozen_features(model, selector->data, dataset, SPLIT_TRAIN, items, n, means, NULL, model->stop, error));
    return learn(selector,
                 &(struct subject){.name = "selector.unrelated",
                                   .number = UNRELATED_TASK,
                                   .coder = selector->tasks,
                                   .iterations = UNRELATED_ITERATIONS,
                                   .images = n},
                 &images, n, error);
}

/* --- Files --- */

static status coders_keep(struct selector *selector, const struct serializer *p, size_t trained, struct error *error)
{
    for (size_t k = 0; k <= selector->tasks; k++) {
        char name[48];
        if (k >= trained && (k < selector->tasks || trained == 0 || !selector->unrelated))
            continue;
        snprintf(name, sizeof name, "selector.%zu.values", k);
        if (k == selector->tasks) /* whose number differs in a longer run */
            snprintf(name, sizeof name, "selector.unrelated.values");
        TRY(serializer_weights(p, name, selector->coders[k]->parameters, error));
    }
    return OK;
}

static status coders_file(const struct selector *selector, const struct selector_arrays *arrays, struct error *error)
{
    size_t count = selector->trained + selector->unrelated;
    OWNED struct autoencoder **coders = xmalloc((selector->trained + 1) * sizeof *coders);
    memcpy(coders, selector->coders, selector->trained * sizeof *coders);
    coders[selector->trained] = selector->coders[selector->tasks];
    return arrays->file != NULL ? selector_file_read(arrays->file, coders, count, error)
                                : selector_tensors_add_coders(arrays->tensors, coders, count, error);
}

/* --- Kinds --- */

#define CODER_FORMULA "x = sigmoid(features), r = sigmoid(W2 ReLU(W1 x + b1) + b2), error = mean (r - x)^2"
#define CODER_FUNCTIONS                                                                                                \
    .most = coders_most, .open = coders_open, .close = coders_close, .before = coders_before, .fit = coders_fit,       \
    .errors = coders_errors, .keep = coders_keep, .file = coders_file

/* Autoencoders on the mean patch features of the frozen image tower: no weights but CLIP's. */
const struct selector_kind selector_clip = {
    .name = "clip",
    .source = "autoencoders on CLIP's patch features, after MoE-Adapters (Yu et al., CVPR 2024)",
    .formula = CODER_FORMULA,
    .route = ROUTE_BY_ERRORS,
    .features = FEATURES_PATCHES,
    CODER_FUNCTIONS};

/* Autoencoders on AlexNet's features, as published. */
const struct selector_kind selector_alexnet = {
    .name = "alexnet",
    .source = "autoencoders on AlexNet's features, MoE-Adapters (Yu et al., CVPR 2024)",
    .formula = CODER_FORMULA,
    .route = ROUTE_BY_ERRORS,
    .features = FEATURES_PIXELS,
    .threshold = "0.0655",
    CODER_FUNCTIONS};
