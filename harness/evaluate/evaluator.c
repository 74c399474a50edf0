#include "harness/evaluate/evaluator.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/routers/router.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/scope.h"
#include "harness/evaluate/predictions.h"
#include "harness/model/model.h"
#include "harness/model/routed_encoding.h"
#include "harness/selectors/selector.h"
#include "harness/train/guard.h"
#include "harness/train/image_pass.h"

static const struct scoring plain; /* by the scores of the head */

static void give_router(struct test_set *set, int router)
{
    for (size_t i = 0; i < set->n; i++)
        set->router[i] = (int16_t)router;
}

struct test_set test_set_of(const struct task *task)
{
    size_t images = dataset_size(task->dataset, SPLIT_TEST);
    struct test_set set = {.task = task,
                           .n = images,
                           .labels = xcalloc(images, sizeof *set.labels),
                           .predicted = xcalloc(images, sizeof *set.predicted),
                           .router = xcalloc(images, sizeof *set.router),
                           .right = xcalloc(images, 1)};
    for (size_t i = 0; i < images; i++)
        set.labels[i] = (int32_t)task->first_class + dataset_label(task->dataset, SPLIT_TEST, i);
    give_router(&set, -1);
    return set;
}

void test_set_judge(struct test_set *set)
{
    set->correct = 0;
    for (size_t i = 0; i < set->n; i++) {
        set->right[i] = set->predicted[i] == (uint16_t)set->labels[i];
        set->correct += set->right[i];
    }
}

void test_set_free(struct test_set *set)
{
    free(set->labels);
    free(set->predicted);
    free(set->router);
    free(set->right);
}

static void create_set(const struct evaluator *evaluator, struct test_set *set, const struct task *task)
{
    *set = test_set_of(task);
    set->means = xmalloc(array_size(set->n, evaluator->model->clip->dimensions.image_width * sizeof *set->means));
    set->features = xmalloc(array_size(set->n, model_feature_width(evaluator->model) * sizeof *set->features));
    set->zero_shot = xcalloc(set->n, sizeof *set->zero_shot);
    set->errors = xcalloc(evaluator->coders + 1, sizeof *set->errors);
    set->routed = cached_images_create(evaluator->cache, set->n);
}

status evaluator_create(struct evaluator **result, struct model *model, const struct data *data,
                        struct method_run *method, struct selector *selector, struct error *error)
{
    SCOPED(evaluator_destroy_at) struct evaluator *evaluator = xcalloc(1, sizeof *evaluator);
    *evaluator =
        (struct evaluator){.model = model,
                           .data = data,
                           .method = method,
                           .selector = selector,
                           .coders = selector != NULL ? selector->tasks : 0,
                           .labels.seen = model->settings.label_space == LABEL_SPACE_OPEN ? 0 : data->task_count,
                           .sets = xcalloc(data->task_count, sizeof *evaluator->sets)};
    evaluator->labels.cache = evaluator->cache = feature_cache_create(model, data);
    TRY(evaluator_refresh(evaluator, error));
    TRY(shared_features_open(&evaluator->shared, model, data, error));
    for (size_t j = 0; j < data->task_count; j++)
        create_set(evaluator, &evaluator->sets[j], &data->tasks[j]);
    *result = TAKE(evaluator);
    return OK;
}

void evaluator_destroy(struct evaluator *evaluator)
{
    if (evaluator == NULL)
        return;
    for (size_t j = 0; evaluator->sets != NULL && j < evaluator->data->task_count; j++) {
        struct test_set *set = &evaluator->sets[j];
        for (size_t k = 0; set->errors != NULL && k <= evaluator->coders; k++)
            free(set->errors[k]);
        free(set->errors);
        free(set->means);
        free(set->features);
        free(set->zero_shot);
        test_set_free(set);
        cached_images_free(&set->routed);
        class_experts_free(&set->experts);
        patch_experts_free(&set->patches);
    }
    free(evaluator->sets);
    label_space_refresh(&evaluator->labels);
    feature_cache_destroy(evaluator->cache);
    shared_features_close(&evaluator->shared);
    free(evaluator);
}

status evaluator_refresh(struct evaluator *evaluator, struct error *error)
{
    label_space_refresh(&evaluator->labels);
    return feature_cache_refresh(evaluator->cache, error);
}

/* --- Experts --- */

/* Prepares counting before an evaluation with routers. */
static void begin_experts(const struct evaluator *evaluator, struct test_set *set)
{
    const struct model *model = evaluator->model;
    const struct adapters *adapters = model->adapters;
    class_experts_free(&set->experts);
    patch_experts_free(&set->patches);
    if (!evaluator->counts_experts || adapters == NULL || !adapters_in_tower(adapters, TOWER_IMAGE) ||
        router_kind_of(&adapters->settings)->averages)
        return;
    const struct patch_experts shape = {.of = set->n,
                                        .images = model->settings.patch_images,
                                        .blocks = adapters->towers[TOWER_IMAGE].decisions,
                                        .top_k = adapters->settings.top_k,
                                        .side = model->clip->dimensions.resolution / model->clip->dimensions.patch};
    if (shape.images > 0 && adapters->settings.routing == ROUTING_PER_TOKEN)
        patch_experts_create(&set->patches, &shape);
    class_experts_create(&set->experts, shape.blocks, dataset_classes(set->task->dataset), adapters->settings.experts);
}

/* Whether experts chosen by tokens are counted; these choices are not cached. */
static bool counts_tokens(const struct evaluator *evaluator, const struct test_set *set)
{
    return set->experts.counts != NULL && evaluator->model->adapters->settings.routing == ROUTING_PER_TOKEN;
}

static void count_experts(struct test_set *set, size_t item, const int32_t *chosen, const float *gates, size_t choices)
{
    size_t class = (size_t)set->labels[item] - set->task->first_class;
    class_experts_add(&set->experts, class, chosen, gates, choices / set->experts.blocks);
}

static void count_tokens(struct test_set *set, size_t item, const int32_t *chosen, const float *gates, size_t choices)
{
    count_experts(set, item, chosen, gates, choices);
    if (set->patches.experts != NULL)
        patch_experts_keep(&set->patches, item, chosen);
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

/* The images of a set whose features through a router are computed. */
struct encoded_list {
    struct evaluator *evaluator;
    struct test_set *set;
    int router;
    bool tokens;           /* their choices are counted */
    const float *weights;  /* of what prefixes add, by item; NULL: 1 */
    size_t encoded;        /* images of the list that came so far */
    uint32_t *list;        /* of items */
    size_t blocks, chosen; /* decisions of an image, and choices of each */
    int32_t *choices;      /* of a batch: [batch, blocks, chosen] */
    float *gates;          /* likewise */
};

static void take_list(struct encoded_list *list, struct evaluator *evaluator, struct test_set *set, size_t n,
                      int router)
{
    const struct model *model = evaluator->model;
    const struct adapters *adapters = model->adapters;
    size_t batch = model->evaluation_batch;
    *list = (struct encoded_list){
        .evaluator = evaluator, .set = set, .router = router, .tokens = counts_tokens(evaluator, set)};
    if (router >= 0 && (list->tokens || set->routed.choices > 0)) {
        list->blocks = adapters->towers[TOWER_IMAGE].decisions;
        list->chosen = adapters->settings.top_k * (list->tokens ? clip_image_positions(&model->clip->dimensions) : 1);
    }
    size_t choices = list->blocks * list->chosen;
    list->list = xmalloc(array_size(n, sizeof *list->list));
    list->choices = xmalloc(array_size(batch, choices * sizeof *list->choices + 1));
    list->gates = xmalloc(array_size(batch, choices * sizeof *list->gates + 1));
}

static void free_list(struct encoded_list *list)
{
    free(list->list);
    free(list->choices);
    free(list->gates);
}

static status weigh_batch(struct encoded_list *list, struct routed_encoding *routed, struct error *error)
{
    OWNED float *weights = xmalloc(array_size(routed->count, sizeof *weights));
    for (size_t i = 0; i < routed->count; i++)
        weights[i] = list->weights[list->list[list->encoded + i]];
    list->encoded += routed->count;
    return routed_encoding_weigh(routed, weights, error);
}

static status encode_batch(void *context, const struct batch *batch, struct image_results *results, struct error *error)
{
    struct encoded_list *list = context;
    struct model *model = list->evaluator->model;
    struct routed_encoding routed;
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor encoded;
    TRY(routed_encoding_begin(&routed, model, TOWER_IMAGE, batch->count, list->router, &encoding, error));
    TRY(list->tokens ? routed_encoding_keep_tokens(&routed, clip_image_positions(&model->clip->dimensions), error)
                     : OK);
    status result = list->weights != NULL ? weigh_batch(list, &routed, error) : OK;
    NEXT(result, clip_encode_images(model->clip, &encoding, &batch->images, &pass, &encoded, error));
    routed_encoding_end(&routed);
    TRY(result);
    results->list[results->count++] = encoded;
    if (routed.choices.data != NULL) {
        results->list[results->count++] = routed.choices;
        results->list[results->count++] = routed.gates;
    }
    return OK;
}

static status keep_batch(void *context, size_t first, size_t count, const void *results, struct error *error)
{
    const struct encoded_list *list = context;
    struct test_set *set = list->set;
    size_t embed = set->routed.embed, choices = list->blocks * list->chosen;
    const float *features = results;
    const int32_t *chosen = (const int32_t *)(features + count * embed);
    TRY(guard_images(&(struct guarded_images){.dataset = set->task->dataset,
                                              .split = SPLIT_TEST,
                                              .items = list->list,
                                              .first = first,
                                              .n = count,
                                              .width = embed,
                                              .features = features},
                     error));
    routed_encoding_by_sample(chosen, list->blocks, count, list->chosen * sizeof *chosen, list->choices);
    routed_encoding_by_sample(chosen + count * choices, list->blocks, count, list->chosen * sizeof *list->gates,
                              list->gates);
    for (size_t i = 0; i < count; i++) {
        const int32_t *own = list->choices + i * choices;
        const float *gates = list->gates + i * choices;
        feature_cache_store(list->evaluator->cache, &set->routed, list->list[first + i], list->router, own, gates,
                            features + i * embed);
        if (list->tokens && list->router >= 0)
            count_tokens(set, list->list[first + i], own, gates, choices);
    }
    return OK;
}

static status encode_list(struct encoded_list *list, size_t n, const struct stop *stop, struct error *error)
{
    struct model *model = list->evaluator->model;
    struct feature_cache *cache = list->evaluator->cache;
    const struct task *task = list->set->task;
    size_t choices = list->blocks * list->chosen;
    double start = clock_seconds();
    struct loader_settings images = {.dataset = task->dataset,
                                     .split = SPLIT_TEST,
                                     .items = list->list,
                                     .item_count = n,
                                     .resolution = (int)model->clip->dimensions.resolution,
                                     .squash = clip_squashes(&model->clip->dimensions),
                                     .batch = model->evaluation_batch,
                                     .cache = list->evaluator->data->cache};
    TRY(image_pass_run(&(struct image_pass){.model = model,
                                            .data = list->evaluator->data,
                                            .images = &images,
                                            .count = n,
                                            .bytes = list->set->routed.embed * sizeof(float) +
                                                     choices * (sizeof *list->choices + sizeof *list->gates),
                                            .name = task->settings.name,
                                            .stop = stop,
                                            .plainly = list->weights != NULL,
                                            .encode = encode_batch,
                                            .keep = keep_batch,
                                            .context = list},
                       error));
    cache->images_encoded += n;
    cache->encoding += clock_seconds() - start;
    return OK;
}

/* The weights of what prefixes add to the listed items, by item of the set, and their mean for the prompts, which in the public
 * code is that of a batch. The caller frees them. NULL: 1. */
static float *weights_of(const struct evaluator *evaluator, const struct test_set *set, const uint32_t *items, size_t n,
                         int router)
{
    const struct model *model = evaluator->model;
    const struct selector *selector = evaluator->selector;
    double total = 0;
    if (model->prefixes == NULL)
        return NULL;
    model->prefixes->text_weight = 1;
    if (router < 0 || selector == NULL || selector->kind->weight == NULL || set->errors[router] == NULL)
        return NULL;
    float *weights = xcalloc(set->n, sizeof *weights);
    for (size_t i = 0; i < n; i++)
        total += (double)(weights[items[i]] = selector->kind->weight(selector, set->errors[router][items[i]]));
    model->prefixes->text_weight = (float)(total / (double)n);
    return weights;
}

/* The features of the listed items through one router, unless they are cached. */
static status encode_items(struct evaluator *evaluator, struct test_set *set, const uint32_t *items, size_t n,
                           int router, const struct stop *stop, struct error *error)
{
    SCOPED(free_list) struct encoded_list list = {0};
    take_list(&list, evaluator, set, n, router);
    OWNED float *weights = weights_of(evaluator, set, items, n, router);
    list.weights = weights;
    size_t missing = feature_cache_missing(evaluator->cache, &set->routed, items, n, router, list.list);
    if (list.tokens)
        memcpy(list.list, items, (missing = n) * sizeof *items);
    return encode_list(&list, missing, stop, error);
}

/* Predictions of the listed items, all through one router. */
static status predict_items(struct evaluator *evaluator, struct test_set *set, const uint32_t *items, size_t n,
                            int router, const struct scoring *by, const struct stop *stop, struct error *error)
{
    TRY(encode_items(evaluator, set, items, n, router, stop, error));
    return predict_features(evaluator, set, set->routed.features, items, n, router, by, set->predicted, error);
}

/* A method with scores of its own learns on frozen features. */
static status scored_predictions(struct evaluator *evaluator, struct test_set *set, struct error *error)
{
    give_router(set, -1);
    TRY(predict_features(evaluator, set, set->features, NULL, set->n, -1,
                         &(struct scoring){.method = evaluator->method}, set->predicted, error));
    test_set_judge(set);
    return OK;
}

status evaluator_zero_shot(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error)
{
    struct test_set *set = &evaluator->sets[j];
    TRY(shared_features_take(&evaluator->shared, set->task, set->means, set->features, stop, error));
    TRY(predict_features(evaluator, set, set->features, NULL, set->n, -1, &plain, set->zero_shot, error));
    memcpy(set->predicted, set->zero_shot, set->n * sizeof *set->predicted);
    give_router(set, -1);
    test_set_judge(set);
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
        OWNED float *errors = xmalloc(array_size(set->n, sizeof *errors));
        TRY(selector_errors(selector, k, &images, errors, error));
        free(set->errors[k]);
        set->errors[k] = TAKE(errors);
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
    const struct model *model = evaluator->model;
    if (selector == NULL) { /* the data names the task, or there is one router; without any, zero-shot CLIP */
        bool has = j <= checkpoint || model->settings.selector.kind->route == ROUTE_ONE;
        give_router(set, has ? model_router(model, j) : -1);
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
    if (label_space_grows(evaluator->model->settings.label_space))
        return predict_features(evaluator, set, set->features, items, n, -1, &plain, set->predicted, error);
    for (size_t i = 0; i < n; i++)
        set->predicted[items[i]] = set->zero_shot[items[i]];
    return OK;
}

/* Predicts images grouped by router. Images without one have the features of zero-shot CLIP, unless nothing is
 * cached. */
static status predict_routed(struct evaluator *evaluator, struct test_set *set, const struct stop *stop,
                             struct error *error)
{
    OWNED uint32_t *items = xmalloc(array_size(set->n, sizeof *items));
    const struct model *model = evaluator->model;
    int routers = (int)model_routers(model);
    begin_experts(evaluator, set);
    status result = OK;
    for (int r = -1; result == OK && r < routers; r++) {
        size_t count = 0;
        for (size_t i = 0; i < set->n; i++)
            if (set->router[i] == r)
                items[count++] = (uint32_t)i;
        if (r < 0 && model->settings.keep_features) {
            result = answer_without_router(evaluator, set, items, count, error);
        } else if (count > 0) {
            result = predict_items(evaluator, set, items, count, r, &plain, stop, error);
        }
    }
    test_set_judge(set);
    if (result == OK)
        count_kept_experts(evaluator, set);
    return result;
}

status evaluator_without_adapters(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error)
{
    struct test_set *set = &evaluator->sets[j];
    OWNED uint32_t *items = xmalloc(array_size(set->n, sizeof *items));
    for (size_t i = 0; i < set->n; i++) {
        items[i] = (uint32_t)i;
        set->router[i] = -1;
    }
    status result = predict_items(evaluator, set, items, set->n, -1, &plain, stop, error);
    test_set_judge(set);
    return result;
}

/* --- Several models --- */

/* votes [images of the set, models] of a method; totals [images, classes] */
static status ask_model(struct evaluator *evaluator, struct test_set *set, size_t model, const uint8_t *votes,
                        float *totals, const struct stop *stop, struct error *error)
{
    const struct method *method = evaluator->model->settings.method;
    OWNED uint32_t *items = xmalloc(array_size(set->n, sizeof *items));
    size_t count = 0, models = evaluator->labels.seen + 1;
    for (size_t i = 0; i < set->n; i++)
        if (votes[i * models + model])
            items[count++] = (uint32_t)i;
    TRY(count > 0 ? method->evaluation_model(evaluator->method, model, error) : OK);
    label_space_refresh(&evaluator->labels);
    if (count > 0)
        TRY(predict_items(
            evaluator, set, items, count, -1,
            &(struct scoring){.method = method->scores != NULL ? evaluator->method : NULL, .totals = totals}, stop,
            error));
    return OK;
}

/* The models answer one after another: the sum of their scores decides as the mean does. */
static status voted_predictions(struct evaluator *evaluator, struct test_set *set, const struct stop *stop,
                                struct error *error)
{
    const struct method *method = evaluator->model->settings.method;
    size_t models = evaluator->labels.seen + 1;
    OWNED uint8_t *votes = xcalloc(set->n, models);
    OWNED float *totals = xcalloc(set->n, evaluator->data->class_count * sizeof *totals);
    give_router(set, -1);
    status result = method->vote(evaluator->method, set->task, NULL, set->n, votes, error);
    for (size_t m = 0; result == OK && m < models; m++) {
        result = ask_model(evaluator, set, m, votes, totals, stop, error);
        arena_reset(&evaluator->model->step_memory);
        if (m == 0 && set->n > 0 && votes[0])
            NEXT(result, method->vote(evaluator->method, set->task, set->routed.features, set->n, votes, error));
    }
    NEXT(result, method->evaluation_begin(evaluator->method, error));
    test_set_judge(set);
    return result;
}

/* Whether the run's method trains nothing and has no answers of its own. */
static bool stays_zero_shot(const struct evaluator *evaluator)
{
    const struct model *model = evaluator->model;
    return evaluator->method != NULL && model->groups == GROUPS_NONE && model->head->of_texts &&
           model->settings.keep_features;
}

status evaluator_task(struct evaluator *evaluator, size_t checkpoint, size_t j, const struct stop *stop,
                      struct error *error)
{
    const struct model *model = evaluator->model;
    if (evaluator->method != NULL && model->settings.method->vote != NULL)
        return voted_predictions(evaluator, &evaluator->sets[j], stop, error);
    if (evaluator->method != NULL && model->settings.method->scores != NULL)
        return scored_predictions(evaluator, &evaluator->sets[j], error);
    if (stays_zero_shot(evaluator))
        return evaluator_with_router(evaluator, j, -1, stop, error);
    if (model_routers(model) == 0)
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
