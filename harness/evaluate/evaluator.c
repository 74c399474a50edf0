#include "harness/evaluate/evaluator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/routers/router.h"
#include "harness/evaluate/routing.h"
#include "harness/selectors/selectors.h"
#include "harness/train/batches.h"
#include "harness/train/guard.h"

static status create_set(struct evaluator *evaluator, struct test_set *set, const struct task *task,
                         struct error *error)
{
    const struct clip_dimensions *n = &evaluator->experiment->model.clip->dimensions;
    size_t images = dataset_size(task->dataset, SPLIT_TEST);
    *set = (struct test_set){
        .task = task,
        .n = images,
        .labels = calloc(images, sizeof *set->labels),
        .means = malloc(array_size(images, n->image_width * sizeof *set->means)),
        .features = malloc(array_size(images, experiment_feature_width(evaluator->experiment) * sizeof *set->features)),
        .zero_shot = calloc(images, sizeof *set->zero_shot),
        .errors = calloc(evaluator->coders + 1, sizeof *set->errors),
        .predicted = calloc(images, sizeof *set->predicted),
        .router = calloc(images, sizeof *set->router),
        .right = calloc(images, 1)};
    if (set->labels == NULL || set->means == NULL || set->features == NULL || set->zero_shot == NULL ||
        set->errors == NULL || set->predicted == NULL || set->router == NULL || set->right == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu test images", task->settings.name, images);
    for (size_t i = 0; i < images; i++)
        set->labels[i] = (int32_t)task->first_class + dataset_label(task->dataset, SPLIT_TEST, i);
    return cached_images_create(&set->routed, evaluator->cache, images, error);
}

status evaluator_create(struct evaluator **result, struct experiment *e, struct selector *selector, struct error *error)
{
    struct evaluator *evaluator = calloc(1, sizeof *evaluator);
    if (evaluator == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for its description");
    *evaluator = (struct evaluator){.experiment = e,
                                    .selector = selector,
                                    .coders = selector != NULL ? selector->tasks : 0,
                                    .labels.seen = e->data.task_count,
                                    .sets = calloc(e->data.task_count, sizeof *evaluator->sets)};
    status made = evaluator->sets != NULL
                      ? feature_cache_create(&evaluator->cache, e, error)
                      : error_set(error, ERROR_MEMORY, "evaluation: no memory for %zu tasks", e->data.task_count);
    if (made == OK)
        made = evaluator_refresh(evaluator, error);
    if (made == OK)
        made = shared_features_open(&evaluator->shared, e, error);
    for (size_t j = 0; made == OK && j < e->data.task_count; j++)
        made = create_set(evaluator, &evaluator->sets[j], &e->data.tasks[j], error);
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
    for (size_t j = 0; evaluator->sets != NULL && j < evaluator->experiment->data.task_count; j++) {
        struct test_set *set = &evaluator->sets[j];
        for (size_t k = 0; set->errors != NULL && k <= evaluator->coders; k++)
            free(set->errors[k]);
        free(set->errors);
        free(set->labels);
        free(set->means);
        free(set->features);
        free(set->zero_shot);
        free(set->predicted);
        free(set->router);
        free(set->right);
        cached_images_free(&set->routed);
        class_experts_free(&set->experts);
    }
    free(evaluator->sets);
    label_space_free(&evaluator->labels);
    feature_cache_destroy(evaluator->cache);
    shared_features_close(&evaluator->shared);
    free(evaluator);
}

status evaluator_refresh(struct evaluator *evaluator, struct error *error)
{
    evaluator->labels.cache = evaluator->cache;
    label_space_refresh(&evaluator->labels);
    return feature_cache_refresh(evaluator->cache, error);
}

void evaluator_see(struct evaluator *evaluator, size_t tasks)
{
    evaluator->labels.seen = tasks;
}

void evaluator_count_experts(struct evaluator *evaluator, bool counts)
{
    evaluator->counts_experts = counts;
}

/* --- Experts --- */

/* Prepares counting before an evaluation with routers. */
static status begin_experts(const struct evaluator *evaluator, struct test_set *set, struct error *error)
{
    const struct adapters *adapters = evaluator->experiment->model.adapters;
    class_experts_free(&set->experts);
    if (!evaluator->counts_experts || adapters == NULL || !adapters_in_tower(adapters, TOWER_IMAGE) ||
        router_kind_of(&adapters->settings)->averages)
        return OK;
    return class_experts_create(&set->experts, adapters->towers[TOWER_IMAGE].decisions,
                                dataset_classes(set->task->dataset), adapters->settings.experts, error);
}

/* Whether experts chosen by tokens are counted; these choices are not cached. */
static bool counts_tokens(const struct evaluator *evaluator, const struct test_set *set)
{
    return set->experts.counts != NULL && evaluator->experiment->model.adapters->settings.routing == ROUTING_PER_TOKEN;
}

static void count_experts(struct test_set *set, size_t item, const int32_t *chosen, const float *gates, size_t choices)
{
    size_t class = (size_t)set->labels[item] - set->task->first_class;
    class_experts_add(&set->experts, class, chosen, gates, choices / set->experts.blocks);
}

/* After an evaluation: counts the experts that are cached with the features. */
static void count_kept_experts(const struct evaluator *evaluator, struct test_set *set)
{
    const struct cached_images *routed = &set->routed;
    if (set->experts.counts == NULL || counts_tokens(evaluator, set))
        return;
    for (size_t i = 0; i < set->n; i++)
        if (set->router[i] >= 0)
            count_experts(set, i, routed->chosen + i * routed->choices, routed->gates + i * routed->choices,
                          routed->choices);
}

/* --- Predictions --- */

/* Column of the highest score, the first of equal ones; −1 if a score is not finite. */
static int32_t best_of(const float *scores, size_t classes)
{
    size_t best = 0;
    for (size_t c = 0; c < classes; c++) {
        if (!isfinite(scores[c]))
            return -1;
        best = scores[c] > scores[best] ? c : best;
    }
    return (int32_t)best;
}

/* Predicts by the method's own scores; features: of the same images on the host. */
static status predict_scored(struct experiment *e, const struct task *task, const float *features,
                             const struct tensor *images, const struct tensor *classes, int32_t *best,
                             struct error *error)
{
    struct tensor cosines;
    size_t n = images->shape[0], columns = classes->shape[0];
    TRY(e->model.head->scores(e, images, classes, &cosines, error));
    float *scores = malloc(tensor_bytes(&cosines));
    if (scores == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for the scores of %zu classes", columns);
    status result =
        e->model.backend->ops->download(e->model.backend, scores, cosines.data, tensor_bytes(&cosines), error);
    NEXT(result, e->settings.method->scores(&e->method, task, features, n, columns, scores, error));
    for (size_t i = 0; result == OK && i < n; i++)
        best[i] = best_of(scores + i * columns, columns);
    free(scores);
    return result;
}

static status predict(struct experiment *e, const struct tensor *images, const struct tensor *classes, int32_t *best,
                      struct error *error)
{
    struct tensor scores, predicted;
    TRY(e->model.head->scores(e, images, classes, &scores, error));
    TRY(tensor_take(&predicted, &e->model.step_memory, TENSOR_I32, "predictions", 1, images->shape, error));
    TRY(e->model.backend->ops->argmax(e->model.backend,
                                      &(struct argmax){.x = matrix_of(&scores), .out = predicted.data}, error));
    return e->model.backend->ops->download(e->model.backend, best, predicted.data, tensor_bytes(&predicted), error);
}

static size_t image_positions(const struct experiment *e)
{
    size_t side = e->model.clip->dimensions.resolution / e->model.clip->dimensions.patch;
    return 1 + side * side;
}

/* Features of the images of the next batch, host [count, embed], and the experts that each chose with their gates, [count, decisions, K]
 * or, with tokens, [count, decisions, positions · K]; or NULL. */
static status encode_batch(struct experiment *e, struct batches *batches, int router, bool tokens, float *features,
                           int32_t *chosen, float *gates, size_t *count, struct error *error)
{
    struct routing routing;
    struct encoding encoding;
    struct batch batch;
    struct tower_pass pass;
    struct tensor encoded;
    arena_reset(&e->model.step_memory);
    TRY(batches_take(batches, &batch, error));
    *count = batch.count;
    TRY(routing_begin(&routing, e, TOWER_IMAGE, batch.count, router, &encoding, error));
    TRY(tokens ? routing_see_tokens(&routing, image_positions(e), error) : OK);
    status result = clip_encode_images(e->model.clip, &encoding, &(struct image_batch){.images = batch.images}, &pass,
                                       &encoded, error);
    batches_advance(batches);
    TRY(routing_end(&routing, result == OK ? chosen : NULL, result == OK ? gates : NULL, error));
    TRY(result);
    return e->model.backend->ops->download(e->model.backend, features, encoded.data, tensor_bytes(&encoded), error);
}

/* The memory for encoding a list of images. */
struct encoding_room {
    uint32_t *list;
    float *features; /* of a batch, as above */
    int32_t *chosen; /* likewise */
    float *gates;
    bool tokens;
    size_t choices; /* of an image */
};

static status take_room(struct encoding_room *room, const struct evaluator *evaluator, const struct test_set *set,
                        size_t n, struct error *error)
{
    const struct experiment *e = evaluator->experiment;
    bool tokens = counts_tokens(evaluator, set);
    size_t choices =
        tokens ? set->experts.blocks * image_positions(e) * e->model.adapters->settings.top_k : set->routed.choices;
    size_t batch = experiment_evaluation_batch(e), embed = experiment_feature_width(e);
    *room = (struct encoding_room){.tokens = tokens,
                                   .choices = choices,
                                   .list = malloc(array_size(n, sizeof *room->list)),
                                   .features = malloc(array_size(batch, embed * sizeof *room->features)),
                                   .chosen = malloc(array_size(batch, choices * sizeof *room->chosen + 1)),
                                   .gates = malloc(array_size(batch, choices * sizeof *room->gates + 1))};
    if (room->list == NULL || room->features == NULL || room->chosen == NULL || room->gates == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for a batch of %zu images", batch);
    return OK;
}

static void free_room(struct encoding_room *room)
{
    free(room->list);
    free(room->features);
    free(room->chosen);
    free(room->gates);
}

static status encode_list(struct evaluator *evaluator, struct test_set *set, const struct encoding_room *room, size_t n,
                          int router, const struct stop *stop, struct error *error)
{
    struct experiment *e = evaluator->experiment;
    struct loader_settings settings = {.dataset = set->task->dataset,
                                       .split = SPLIT_TEST,
                                       .items = room->list,
                                       .item_count = n,
                                       .resolution = (int)e->model.clip->dimensions.resolution,
                                       .batch = experiment_evaluation_batch(e),
                                       .cache = e->data.cache};
    struct batches *batches = NULL;
    size_t embed = set->routed.embed, choices = room->choices;
    status result =
        n > 0 ? batches_open(&batches, e, &settings, 0, (n + settings.batch - 1) / settings.batch, error) : OK;
    for (size_t done = 0, count = 0; result == OK && done < n; done += count) {
        if (stop_requested(stop))
            result = error_set(error, ERROR_STOPPED, "stopped while %s was evaluated", set->task->settings.name);
        NEXT(result, encode_batch(e, batches, router, room->tokens, room->features, choices > 0 ? room->chosen : NULL,
                                  choices > 0 ? room->gates : NULL, &count, error));
        NEXT(result, guard_images(&(struct guarded_images){.dataset = set->task->dataset,
                                                           .split = SPLIT_TEST,
                                                           .items = room->list,
                                                           .first = done,
                                                           .n = count,
                                                           .width = embed,
                                                           .features = room->features},
                                  error));
        for (size_t i = 0; result == OK && i < count; i++) {
            feature_cache_store(evaluator->cache, &set->routed, room->list[done + i], router,
                                room->chosen + i * choices, room->gates + i * choices, room->features + i * embed);
            if (room->tokens && router >= 0)
                count_experts(set, room->list[done + i], room->chosen + i * choices, room->gates + i * choices,
                              choices);
        }
    }
    batches_close(batches);
    return result;
}

/* best [count] of items (NULL: from first on); −1 if a logit is not finite. */
static status keep_predictions(struct test_set *set, const int32_t *best, const uint32_t *items, size_t first,
                               size_t count, uint16_t *predicted, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        size_t item = items != NULL ? items[first + i] : first + i;
        if (best[i] < 0) {
            char *name = dataset_item_name(set->task->dataset, SPLIT_TEST, item);
            error_set(
                error, ERROR_FORMAT,
                "%s: image %s: its similarities to the classes are not finite, so it has no answer; are these the "
                "right weights?",
                set->task->settings.name, name != NULL ? name : "?");
            free(name);
            return ERROR_FORMAT;
        }
        predicted[item] = (uint16_t)best[i];
    }
    return OK;
}

/* predicted[item] of n items (NULL: items 0 … n − 1) from features [images of the set, embed]; scored: by the method's
 * own scores */
static status predict_features(struct experiment *e, struct test_set *set, const float *features, const uint32_t *items,
                               size_t n, const struct tensor *classes, bool scored, uint16_t *predicted,
                               struct error *error)
{
    enum { ROWS = 1024 };
    size_t embed = experiment_feature_width(e);
    int32_t best[ROWS];
    float *rows = malloc(array_size(ROWS, embed * sizeof *rows));
    status result = rows != NULL ? OK : error_set(error, ERROR_MEMORY, "evaluation: no memory for %d features", ROWS);
    for (size_t first = 0; result == OK && first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        struct tensor images;
        for (size_t i = 0; i < count; i++)
            memcpy(rows + i * embed, features + (items != NULL ? items[first + i] : first + i) * embed,
                   embed * sizeof *rows);
        arena_reset(&e->model.step_memory);
        result =
            tensor_take(&images, &e->model.step_memory, TENSOR_F32, "features", 2, (size_t[]){count, embed}, error);
        NEXT(result, e->model.backend->ops->upload(e->model.backend, images.data, rows, tensor_bytes(&images), error));
        NEXT(result, scored ? predict_scored(e, set->task, rows, &images, classes, best, error)
                            : predict(e, &images, classes, best, error));
        NEXT(result, keep_predictions(set, best, items, first, count, predicted, error));
    }
    free(rows);
    return result;
}

/* Predictions of the listed items, all through one router. */
static status predict_items(struct evaluator *evaluator, struct test_set *set, const uint32_t *items, size_t n,
                            int router, const struct stop *stop, struct error *error)
{
    struct experiment *e = evaluator->experiment;
    struct arena_mark mark = arena_mark(&e->model.task_memory);
    struct tensor classes;
    struct encoding_room room;
    status result = take_room(&room, evaluator, set, n, error);
    if (result == OK) {
        size_t missing = feature_cache_missing(evaluator->cache, &set->routed, items, n, router, room.list);
        if (room.tokens)
            memcpy(room.list, items, (missing = n) * sizeof *items);
        result = encode_list(evaluator, set, &room, missing, router, stop, error);
    }
    NEXT(result,
         label_space_features(&evaluator->labels, set->task->index, router, &e->model.task_memory, &classes, error));
    NEXT(result, predict_features(e, set, set->routed.features, items, n, &classes, false, set->predicted, error));
    free_room(&room);
    arena_release(&e->model.task_memory, mark);
    return result;
}

static void give_router(struct test_set *set, int router)
{
    for (size_t i = 0; i < set->n; i++)
        set->router[i] = (int16_t)router;
}

static void count_right(struct test_set *set)
{
    set->correct = 0;
    for (size_t i = 0; i < set->n; i++) {
        set->right[i] = set->predicted[i] == (uint16_t)set->labels[i];
        set->correct += set->right[i];
    }
}

/* Predicts n items (NULL: 0 … n − 1) from the features of zero-shot CLIP. */
static status zero_shot_predictions(struct evaluator *evaluator, struct test_set *set, const uint32_t *items, size_t n,
                                    uint16_t *predicted, struct error *error)
{
    struct experiment *e = evaluator->experiment;
    struct arena_mark mark = arena_mark(&e->model.task_memory);
    struct tensor classes;
    TRY(label_space_features(&evaluator->labels, set->task->index, -1, &e->model.task_memory, &classes, error));
    TRY(predict_features(e, set, set->features, items, n, &classes, false, predicted, error));
    arena_release(&e->model.task_memory, mark);
    return OK;
}

/* A method with scores of its own learns on frozen features. */
static status scored_predictions(struct evaluator *evaluator, struct test_set *set, struct error *error)
{
    struct experiment *e = evaluator->experiment;
    struct arena_mark mark = arena_mark(&e->model.task_memory);
    struct tensor classes;
    give_router(set, -1);
    TRY(label_space_features(&evaluator->labels, set->task->index, -1, &e->model.task_memory, &classes, error));
    TRY(predict_features(e, set, set->features, NULL, set->n, &classes, true, set->predicted, error));
    arena_release(&e->model.task_memory, mark);
    count_right(set);
    return OK;
}

status evaluator_zero_shot(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error)
{
    struct test_set *set = &evaluator->sets[j];
    TRY(shared_features_take(&evaluator->shared, set->task, set->means, set->features, stop, error));
    TRY(zero_shot_predictions(evaluator, set, NULL, set->n, set->zero_shot, error));
    memcpy(set->predicted, set->zero_shot, set->n * sizeof *set->predicted);
    give_router(set, -1);
    count_right(set);
    return OK;
}

/* Computes the errors that are missing or out of date. */
static status take_errors(struct selector *selector, struct test_set *set, const struct stop *stop, struct error *error)
{
    struct selector_images images = {.n = set->n,
                                     .means = set->means,
                                     .features = set->features,
                                     .dataset = set->task->dataset,
                                     .split = SPLIT_TEST,
                                     .stop = stop};
    bool changed = selector_errors_changed(selector, set->errors_after);
    for (size_t k = 0; k <= selector->tasks; k++) {
        if (!selector_wants(selector, k) || (set->errors[k] != NULL && !changed))
            continue;
        float *errors = malloc(array_size(set->n, sizeof *errors));
        if (errors == NULL)
            return error_set(error, ERROR_MEMORY, "selector: no memory for %zu errors", set->n);
        status result = selector_errors(selector, k, &images, errors, error);
        if (result != OK) {
            free(errors);
            return result;
        }
        free(set->errors[k]);
        set->errors[k] = errors;
    }
    set->errors_after = selector->trained;
    return OK;
}

/* Chooses the router of every image before anything is computed. */
static status choose_routers(struct evaluator *evaluator, size_t checkpoint, size_t j, const struct stop *stop,
                             struct error *error)
{
    struct test_set *set = &evaluator->sets[j];
    struct selector *selector = evaluator->selector;
    const struct experiment *e = evaluator->experiment;
    if (selector == NULL) { /* the data names the task, or there is one router; without any, zero-shot CLIP */
        bool has = j <= checkpoint || e->settings.selector.kind->route == ROUTE_ONE;
        give_router(set, has ? adapters_router(&e->model.adapters->settings, j) : -1);
        return OK;
    }
    TRY(take_errors(selector, set, stop, error));
    selector_choose(selector, (const float *const *)set->errors, set->n, set->router);
    return OK;
}

/* Predictions of images without a router, which stay the same after every task unless the label space grows. */
static status answer_without_router(struct evaluator *evaluator, struct test_set *set, const uint32_t *items, size_t n,
                                    struct error *error)
{
    evaluator->cache->images_asked += n;
    if (evaluator->experiment->settings.label_space == LABEL_SPACE_SEEN)
        return zero_shot_predictions(evaluator, set, items, n, set->predicted, error);
    for (size_t i = 0; i < n; i++)
        set->predicted[items[i]] = set->zero_shot[items[i]];
    return OK;
}

/* Predicts images grouped by router. Images without one have the features of zero-shot CLIP, unless nothing is
 * cached. */
static status predict_routed(struct evaluator *evaluator, struct test_set *set, const struct stop *stop,
                             struct error *error)
{
    uint32_t *items = malloc(array_size(set->n, sizeof *items));
    if (items == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for %zu images", set->n);
    const struct experiment *e = evaluator->experiment;
    int routers = e->model.adapters != NULL ? (int)e->model.adapters->settings.tasks : 0;
    status result = begin_experts(evaluator, set, error);
    for (int r = -1; result == OK && r < routers; r++) {
        size_t count = 0;
        for (size_t i = 0; i < set->n; i++)
            if (set->router[i] == r)
                items[count++] = (uint32_t)i;
        if (r < 0 && e->settings.keep_features) {
            result = answer_without_router(evaluator, set, items, count, error);
        } else if (count > 0) {
            result = predict_items(evaluator, set, items, count, r, stop, error);
        }
    }
    free(items);
    count_right(set);
    if (result == OK)
        count_kept_experts(evaluator, set);
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
    const struct experiment *e = evaluator->experiment;
    if (e->settings.method->scores != NULL && e->method.state != NULL)
        return scored_predictions(evaluator, &evaluator->sets[j], error);
    if (e->model.adapters == NULL)
        return evaluator_without_adapters(evaluator, j, stop, error);
    TRY(choose_routers(evaluator, checkpoint, j, stop, error));
    return predict_routed(evaluator, &evaluator->sets[j], stop, error);
}

status evaluator_with_router(struct evaluator *evaluator, size_t j, int router, const struct stop *stop,
                             struct error *error)
{
    give_router(&evaluator->sets[j], router);
    return predict_routed(evaluator, &evaluator->sets[j], stop, error);
}
