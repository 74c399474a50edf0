#include "harness/evaluator.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/loader.h"
#include "models/contrastive.h"

static status create_set(struct evaluator *evaluator, struct test_set *set, const struct task *task,
                         struct error *error)
{
    const struct clip_dimensions *n = &evaluator->experiment->clip->dimensions;
    size_t images = dataset_size(task->dataset, SPLIT_TEST);
    *set = (struct test_set){.task = task,
                             .n = images,
                             .labels = calloc(images, sizeof *set->labels),
                             .means = malloc(array_size(images, n->image_width * sizeof *set->means)),
                             .features = malloc(array_size(images, n->embed * sizeof *set->features)),
                             .zero_shot = calloc(images, sizeof *set->zero_shot),
                             .errors = calloc(evaluator->experiment->task_count, sizeof *set->errors),
                             .predicted = calloc(images, sizeof *set->predicted),
                             .router = calloc(images, sizeof *set->router),
                             .right = calloc(images, 1)};
    if (set->labels == NULL || set->means == NULL || set->features == NULL || set->zero_shot == NULL ||
        set->errors == NULL || set->predicted == NULL || set->router == NULL || set->right == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu test images", task->settings.name, images);
    for (size_t i = 0; i < images; i++)
        set->labels[i] = dataset_label(task->dataset, SPLIT_TEST, i);
    return OK;
}

status evaluator_create(struct evaluator **result, struct experiment *e, struct selector *selector, struct error *error)
{
    struct evaluator *evaluator = calloc(1, sizeof *evaluator);
    if (evaluator == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for its description");
    *evaluator = (struct evaluator){.experiment = e,
                                    .selector = selector,
                                    .cache_left = e->settings.cache_megabytes << 20,
                                    .sets = calloc(e->task_count, sizeof *evaluator->sets)};
    status made = evaluator->sets != NULL
                      ? OK
                      : error_set(error, ERROR_MEMORY, "evaluation: no memory for %zu tasks", e->task_count);
    for (size_t j = 0; made == OK && j < e->task_count; j++)
        made = create_set(evaluator, &evaluator->sets[j], &e->tasks[j], error);
    if (made != OK) {
        evaluator_destroy(evaluator);
        return made;
    }
    *result = evaluator;
    return OK;
}

void evaluator_destroy(struct evaluator *evaluator)
{
    if (evaluator == NULL)
        return;
    for (size_t j = 0; evaluator->sets != NULL && j < evaluator->experiment->task_count; j++) {
        struct test_set *set = &evaluator->sets[j];
        for (size_t k = 0; set->errors != NULL && k < evaluator->experiment->task_count; k++)
            free(set->errors[k]);
        free(set->errors);
        free(set->labels);
        free(set->means);
        free(set->features);
        free(set->zero_shot);
        free(set->pixels);
        free(set->predicted);
        free(set->router);
        free(set->right);
    }
    free(evaluator->sets);
    free(evaluator);
}

/* --- Class features --- */

/* features [classes, embed] of `classes` classes with `templates` prompts each, tokens class by class */
static status encode_classes(struct experiment *e, const int32_t *tokens, size_t classes, size_t templates, int router,
                             void *features, struct error *error)
{
    struct block_hook hook;
    struct encoding encoding = {.arena = &e->step, .state = e->state};
    struct texts texts;
    struct tower_pass pass;
    struct tensor each, normal, mean;
    size_t embed = e->clip->dimensions.embed;
    arena_reset(&e->step);
    TRY(texts_create(&texts, e->clip, &e->step, tokens, classes * templates, error));
    if (router >= 0) {
        hook = adapters_hook(e->adapters, TOWER_TEXT);
        encoding.hook = &hook;
        TRY(experiment_fill(e, &e->step, classes * templates, router, &encoding.router, error));
    }
    TRY(clip_encode_texts(e->clip, &encoding, &texts, &pass, &each, error));
    TRY(tensor_take(&normal, &e->step, TENSOR_F32, "normalised prompts", 2, each.shape, error));
    TRY(tensor_take(&mean, &e->step, TENSOR_F32, "mean prompts", 2, (size_t[]){classes, embed}, error));
    TRY(e->backend->ops->normalize(e->backend, &(struct normalize){.x = matrix_of(&each), .y = matrix_of(&normal)},
                                   error));
    TRY(e->backend->ops->mean_positions(
        e->backend,
        &(struct mean_positions){
            .batch = classes, .positions = templates, .width = embed, .x = normal.data, .out = mean.data},
        error));
    return e->backend->ops->normalize(
        e->backend, &(struct normalize){.x = matrix_of(&mean), .y = matrix_rows(features, classes, embed)}, error);
}

status class_features(struct experiment *e, const struct task *task, int router, struct arena *arena,
                      struct tensor *features, struct error *error)
{
    enum { PROMPTS = 256 }; /* encoded at a time */
    size_t classes = dataset_classes(task->dataset), templates = dataset_templates(task->dataset),
           context = e->clip->dimensions.context;
    size_t chunk = PROMPTS / templates > 0 ? PROMPTS / templates : 1, embed = e->clip->dimensions.embed;
    TRY(tensor_take(features, arena, TENSOR_F32, "class features", 2, (size_t[]){classes, embed}, error));
    for (size_t first = 0; first < classes; first += chunk) {
        size_t count = classes - first < chunk ? classes - first : chunk;
        TRY(encode_classes(e, task->test_prompts + first * templates * context, count, templates, router,
                           (float *)features->data + first * embed, error));
    }
    return OK;
}

/* --- Predictions --- */

static status predict(struct experiment *e, const struct tensor *images, const struct tensor *classes, int32_t *best,
                      struct error *error)
{
    struct contrastive c;
    struct tensor predicted;
    TRY(contrastive_logits(e->backend, &e->step, images, classes, 100.0f, &c, error));
    TRY(tensor_take(&predicted, &e->step, TENSOR_I32, "predictions", 1, images->shape, error));
    TRY(e->backend->ops->predict(e->backend, &(struct predict){.logits = matrix_of(&c.logits), .best = predicted.data},
                                 error));
    return e->backend->ops->download(e->backend, best, predicted.data, tensor_bytes(&predicted), error);
}

static status predict_pixels(struct experiment *e, const uint8_t *pixels, size_t count, int router,
                             const struct tensor *classes, int32_t *best, struct error *error)
{
    struct block_hook hook;
    struct encoding encoding = {.arena = &e->step, .state = e->state};
    struct image_batch batch = {0};
    struct tower_pass pass;
    struct tensor features;
    size_t r = e->clip->dimensions.resolution;
    arena_reset(&e->step);
    TRY(tensor_take(&batch.images, &e->step, TENSOR_U8, "images", 4, (size_t[]){count, r, r, 3}, error));
    TRY(e->backend->ops->upload(e->backend, batch.images.data, pixels, tensor_bytes(&batch.images), error));
    if (router >= 0) {
        hook = adapters_hook(e->adapters, TOWER_IMAGE);
        encoding.hook = &hook;
        TRY(experiment_fill(e, &e->step, count, router, &encoding.router, error));
    }
    TRY(clip_encode_images(e->clip, &encoding, &batch, &pass, &features, error));
    return predict(e, &features, classes, best, error);
}

/* The pixels of items, batch by batch: from memory, or decoded by a loader. */
struct pixel_source {
    const struct test_set *set;
    const uint32_t *items;
    size_t n, resolution, batch;
    struct loader *loader;
    uint8_t *pixels;
};

static status source_open(struct pixel_source *source, const struct experiment *e, const struct test_set *set,
                          const uint32_t *items, size_t n, struct error *error)
{
    size_t r = e->clip->dimensions.resolution, batch = e->settings.evaluation_batch;
    *source = (struct pixel_source){.set = set,
                                    .items = items,
                                    .n = n,
                                    .resolution = r,
                                    .batch = batch,
                                    .pixels = malloc(array_size(batch, r * r * 3))};
    if (source->pixels == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for a batch of %zu images", batch);
    if (set->pixels != NULL)
        return OK;
    struct loader_settings settings = {.dataset = set->task->dataset,
                                       .split = SPLIT_TEST,
                                       .items = items,
                                       .item_count = n,
                                       .resolution = (int)r,
                                       .batch = batch,
                                       .threads = 1,
                                       .ahead = 4};
    return loader_create(&source->loader, &settings, error);
}

static status source_read(struct pixel_source *source, size_t step, size_t *count, struct error *error)
{
    size_t bytes = source->resolution * source->resolution * 3, first = step * source->batch;
    if (source->loader != NULL)
        return loader_read(source->loader, step, source->pixels, NULL, NULL, count, error);
    *count = source->n - first < source->batch ? source->n - first : source->batch;
    for (size_t i = 0; i < *count; i++)
        memcpy(source->pixels + i * bytes, source->set->pixels + source->items[first + i] * bytes, bytes);
    return OK;
}

static void source_close(struct pixel_source *source)
{
    loader_destroy(source->loader);
    free(source->pixels);
}

/* Predictions of the listed items, all through one router. */
static status predict_items(struct evaluator *evaluator, struct test_set *set, const uint32_t *items, size_t n,
                            int router, const struct stop *stop, struct error *error)
{
    struct experiment *e = evaluator->experiment;
    struct arena_mark mark = arena_mark(&e->per_task);
    struct tensor classes;
    struct pixel_source source = {0};
    int32_t *best = malloc(array_size(e->settings.evaluation_batch, sizeof *best));
    status result = best != NULL ? OK : error_set(error, ERROR_MEMORY, "evaluation: no memory for a batch");
    if (result == OK)
        result = class_features(e, set->task, router, &e->per_task, &classes, error);
    if (result == OK)
        result = source_open(&source, e, set, items, n, error);
    for (size_t done = 0, step = 0; result == OK && done < n; step++) {
        size_t count = 0;
        if (stop_requested(stop))
            result = error_set(error, ERROR_STOPPED, "stopped while %s was evaluated", set->task->settings.name);
        if (result == OK)
            result = source_read(&source, step, &count, error);
        if (result == OK)
            result = predict_pixels(e, source.pixels, count, router, &classes, best, error);
        for (size_t i = 0; result == OK && i < count; i++)
            set->predicted[items[done + i]] = (uint16_t)best[i];
        done += count;
    }
    source_close(&source);
    free(best);
    arena_release(&e->per_task, mark);
    return result;
}

static void count_right(struct test_set *set)
{
    set->correct = 0;
    for (size_t i = 0; i < set->n; i++) {
        set->right[i] = set->predicted[i] == (uint16_t)set->labels[i];
        set->correct += set->right[i];
    }
}

static status zero_shot_predictions(struct experiment *e, struct test_set *set, struct error *error)
{
    enum { ROWS = 1024 };
    struct arena_mark mark = arena_mark(&e->per_task);
    struct tensor classes;
    size_t embed = e->clip->dimensions.embed;
    int32_t best[ROWS];
    TRY(class_features(e, set->task, -1, &e->per_task, &classes, error));
    for (size_t first = 0; first < set->n; first += ROWS) {
        size_t count = set->n - first < ROWS ? set->n - first : ROWS;
        struct tensor features;
        arena_reset(&e->step);
        TRY(tensor_take(&features, &e->step, TENSOR_F32, "features", 2, (size_t[]){count, embed}, error));
        TRY(e->backend->ops->upload(e->backend, features.data, set->features + first * embed, tensor_bytes(&features),
                                    error));
        TRY(predict(e, &features, &classes, best, error));
        for (size_t i = 0; i < count; i++)
            set->zero_shot[first + i] = (uint16_t)best[i];
    }
    arena_release(&e->per_task, mark);
    return OK;
}

static status decode_all(struct loader *loader, struct test_set *set, size_t bytes_each, const struct stop *stop,
                         struct error *error)
{
    for (size_t done = 0, step = 0; done < set->n; step++) {
        size_t count;
        if (stop_requested(stop))
            return error_set(error, ERROR_STOPPED, "stopped while the test images of %s were decoded",
                             set->task->settings.name);
        TRY(loader_read(loader, step, set->pixels + done * bytes_each, NULL, NULL, &count, error));
        done += count;
    }
    return OK;
}

status evaluator_keep_images(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error)
{
    const struct experiment *e = evaluator->experiment;
    struct test_set *set = &evaluator->sets[j];
    size_t r = e->clip->dimensions.resolution, bytes = array_size(set->n, r * r * 3);
    if (set->pixels != NULL || bytes > evaluator->cache_left)
        return OK;
    struct loader_settings settings = {.dataset = set->task->dataset,
                                       .split = SPLIT_TEST,
                                       .resolution = (int)r,
                                       .batch = e->settings.evaluation_batch,
                                       .threads = 1,
                                       .ahead = 4};
    struct loader *loader;
    set->pixels = malloc(bytes);
    if (set->pixels == NULL)
        return OK; /* a cache is a convenience */
    status result = loader_create(&loader, &settings, error);
    if (result == OK) {
        result = decode_all(loader, set, r * r * 3, stop, error);
        loader_destroy(loader);
    }
    if (result != OK) {
        free(set->pixels);
        set->pixels = NULL;
        return result;
    }
    evaluator->cache_left -= bytes;
    return OK;
}

/* Batch by batch from the cache, or decoded on the way. */
static status encode_test_images(struct experiment *e, struct test_set *set, const struct stop *stop,
                                 struct error *error)
{
    size_t r = e->clip->dimensions.resolution, width = e->clip->dimensions.image_width,
           embed = e->clip->dimensions.embed;
    if (set->pixels == NULL)
        return frozen_features(e, set->task->dataset, SPLIT_TEST, NULL, set->n, set->means, set->features, stop, error);
    for (size_t first = 0; first < set->n; first += e->settings.evaluation_batch) {
        size_t left = set->n - first, count = left < e->settings.evaluation_batch ? left : e->settings.evaluation_batch;
        if (stop_requested(stop))
            return error_set(error, ERROR_STOPPED, "stopped while features were computed");
        TRY(frozen_features_of(e, set->pixels + first * r * r * 3, count, set->means + first * width,
                               set->features + first * embed, error));
    }
    return OK;
}

status evaluator_zero_shot(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error)
{
    struct experiment *e = evaluator->experiment;
    struct test_set *set = &evaluator->sets[j];
    TRY(evaluator_keep_images(evaluator, j, stop, error));
    TRY(encode_test_images(e, set, stop, error));
    TRY(zero_shot_predictions(e, set, error));
    memcpy(set->predicted, set->zero_shot, set->n * sizeof *set->predicted);
    for (size_t i = 0; i < set->n; i++)
        set->router[i] = -1;
    count_right(set);
    return OK;
}

/* Which router each image takes, before anything is computed. */
static status choose_routers(struct evaluator *evaluator, size_t checkpoint, size_t j, struct error *error)
{
    struct test_set *set = &evaluator->sets[j];
    if (evaluator->selector ==
        NULL) { /* the data names the task; without a router for it, the untouched model answers */
        for (size_t i = 0; i < set->n; i++)
            set->router[i] = j <= checkpoint ? (int16_t)j : -1;
        return OK;
    }
    for (size_t k = 0; k < evaluator->selector->trained; k++) {
        if (set->errors[k] != NULL)
            continue;
        float *errors = malloc(array_size(set->n, sizeof *errors));
        if (errors == NULL)
            return error_set(error, ERROR_MEMORY, "selector: no memory for %zu errors", set->n);
        status result = selector_errors(evaluator->selector, k, set->means, set->n, errors, error);
        if (result != OK) {
            free(errors);
            return result;
        }
        set->errors[k] = errors;
    }
    selector_choose(evaluator->selector, (const float *const *)set->errors, set->n, set->router);
    return OK;
}

/* Images grouped by router; those of the untouched model have their answer already. */
static status predict_routed(struct evaluator *evaluator, struct test_set *set, const struct stop *stop,
                             struct error *error)
{
    uint32_t *items = malloc(array_size(set->n, sizeof *items));
    if (items == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for %zu images", set->n);
    const struct adapters *adapters = evaluator->experiment->adapters;
    size_t routers = adapters != NULL ? adapters->settings.tasks : 0;
    status result = OK;
    for (size_t i = 0; i < set->n; i++)
        if (set->router[i] < 0)
            set->predicted[i] = set->zero_shot[i];
    for (size_t r = 0; result == OK && r < routers; r++) {
        size_t count = 0;
        for (size_t i = 0; i < set->n; i++)
            if (set->router[i] == (int16_t)r)
                items[count++] = (uint32_t)i;
        if (count > 0)
            result = predict_items(evaluator, set, items, count, (int)r, stop, error);
    }
    free(items);
    count_right(set);
    return result;
}

status evaluator_without_adapters(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error)
{
    struct test_set *set = &evaluator->sets[j];
    uint32_t *items = malloc(array_size(set->n, sizeof *items));
    if (items == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for %zu images", set->n);
    for (size_t i = 0; i < set->n; i++) {
        items[i] = (uint32_t)i;
        set->router[i] = -1;
    }
    status result = predict_items(evaluator, set, items, set->n, -1, stop, error);
    free(items);
    count_right(set);
    return result;
}

status evaluator_task(struct evaluator *evaluator, size_t checkpoint, size_t j, const struct stop *stop,
                      struct error *error)
{
    if (evaluator->experiment->trains == TRAINS_WEIGHTS)
        return evaluator_without_adapters(evaluator, j, stop, error);
    TRY(choose_routers(evaluator, checkpoint, j, error));
    return predict_routed(evaluator, &evaluator->sets[j], stop, error);
}

status evaluator_with_router(struct evaluator *evaluator, size_t j, int router, const struct stop *stop,
                             struct error *error)
{
    struct test_set *set = &evaluator->sets[j];
    for (size_t i = 0; i < set->n; i++)
        set->router[i] = (int16_t)router;
    return predict_routed(evaluator, set, stop, error);
}
