#include "harness/evaluate/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/evaluate/label_space.h"
#include "harness/model/head.h"
#include "harness/model/image_tower.h"
#include "harness/model/model.h"
#include "harness/model/routed_encoding.h"
#include "harness/model/tasks.h"
#include "harness/selectors/selector.h"

/* --- Encoder --- */

/* An image tower alone, with its experts, is read as a classifier without its head. */
static status choose_head(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    struct vit_file file;
    bool is_vit;
    const char *needs = settings->adapters != NULL ? "adapters" : settings->vocabulary != NULL ? "texts" : NULL;
    TRY(image_tower_look(&file, &is_vit, &encoder->model.settings, error));
    if (is_vit && needs != NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: an image tower without a text tower, as of a classifier; %s need a CLIP",
                         settings->weights, needs);
    encoder->model.settings.head = is_vit ? &head_linear : &head_text;
    encoder->router = is_vit && file.experts ? 0 : settings->adapters != NULL ? settings->router : ROUTER_NONE;
    return OK;
}

static status open_parts(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    struct model *model = &encoder->model;
    model->settings = (struct settings){.weights = settings->weights,
                                        .vocabulary = settings->vocabulary,
                                        .stated = settings->stated,
                                        .backend = settings->backend};
    TRY(choose_head(encoder, settings, error));
    TRY(model_open(model, error));
    if (settings->vocabulary != NULL)
        TRY(model_open_tokenizer(model, error));
    return settings->adapters != NULL ? saved_adapters_load(settings->adapters, model, &encoder->router, 1, error) : OK;
}

status encoder_open(struct encoder *encoder, const struct encoder_settings *settings, struct error *error)
{
    *encoder = (struct encoder){0};
    status result = open_parts(encoder, settings, error);
    if (result != OK)
        encoder_close(encoder);
    return result;
}

void encoder_close(struct encoder *encoder)
{
    tokenizer_close(encoder->model.tokenizer);
    model_close(&encoder->model);
    *encoder = (struct encoder){0};
}

size_t encoder_width(const struct encoder *encoder)
{
    return model_feature_width(&encoder->model);
}

/* The listed images (NULL: 0 … n − 1) of pixels, u8 [n, R, R, 3] in the step's arena. */
static status upload_pixels(struct model *model, const uint8_t *pixels, const uint32_t *items, size_t n,
                            struct tensor *images, struct error *error)
{
    size_t r = model->clip->dimensions.resolution, bytes = r * r * 3;
    TRY(tensor_take(images, &model->step_memory, TENSOR_U8, "images", 4, (size_t[]){n, r, r, 3}, error));
    for (size_t i = 0; i < n; i++)
        TRY(model->backend->ops->upload(model->backend, (uint8_t *)images->data + i * bytes,
                                        pixels + (items != NULL ? items[i] : i) * bytes, bytes, error));
    return OK;
}

/* output [n, width], in the step's arena, which is reset: the features of such images through a router of the model
 * (ROUTER_NONE: none), with weights [n] of what prefixes add (NULL: 1). */
static status encode_pixels(struct model *model, const uint8_t *pixels, const uint32_t *items, size_t n, int router,
                            const float *weights, struct tensor *output, struct error *error)
{
    struct routed_encoding routed;
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor images = {0};
    arena_reset(&model->step_memory);
    TRY(upload_pixels(model, pixels, items, n, &images, error));
    TRY(routed_encoding_begin(&routed, model, TOWER_IMAGE, n, router, &encoding, error));
    status result = weights != NULL ? routed_encoding_weigh(&routed, weights, error) : OK;
    NEXT(result, clip_encode_images(model->clip, &encoding, &images, &pass, output, error));
    routed_encoding_end(&routed);
    return result;
}

static status fetch_normalised(struct encoder *encoder, const struct tensor *output, float *features,
                               struct error *error)
{
    struct model *model = &encoder->model;
    struct tensor normal;
    TRY(tensor_take(&normal, &model->step_memory, TENSOR_F32, "normalised features", 2, output->shape, error));
    TRY(model->backend->ops->normalize(model->backend,
                                       &(struct normalize){.x = matrix_of(output), .y = matrix_of(&normal)}, error));
    TRY(model->backend->ops->download(model->backend, features, normal.data, tensor_bytes(&normal), error));
    size_t at = not_finite_at(features, tensor_elements(&normal));
    if (at == tensor_elements(&normal))
        return OK;
    encoder->refused = at / normal.shape[1];
    return error_set(
        error, ERROR_FORMAT,
        "its features are not finite: numbers overflow on their way through the model; are these the right "
        "weights?");
}

status encoder_images(struct encoder *encoder, const uint8_t *pixels, size_t count, float *features,
                      struct error *error)
{
    struct tensor output;
    TRY(encode_pixels(&encoder->model, pixels, NULL, count, encoder->router, NULL, &output, error));
    return fetch_normalised(encoder, &output, features, error);
}

status encoder_tokens(struct encoder *encoder, const int32_t *tokens, size_t count, float *features,
                      struct error *error)
{
    struct model *model = &encoder->model;
    struct routed_encoding routed;
    struct encoding encoding;
    struct texts texts;
    struct tower_pass pass;
    struct tensor output;
    arena_reset(&model->step_memory);
    TRY(routed_encoding_begin(&routed, model, TOWER_TEXT, count, encoder->router, &encoding, error));
    status result = texts_create(&texts, model->clip, &model->step_memory, tokens, count, error);
    NEXT(result, clip_encode_texts(model->clip, &encoding, &texts, &pass, &output, error));
    routed_encoding_end(&routed);
    return result == OK ? fetch_normalised(encoder, &output, features, error) : result;
}

/* --- Predictor --- */

struct predictor {
    struct predictor_settings settings;
    struct model model;
    struct data data;
    struct selector *selector;   /* NULL: the router is given */
    struct feature_cache *cache; /* caches nothing */
    struct label_space labels;
    size_t routers;
    struct seen {
        double weight;
        size_t images;
    } * seen;                  /* [routers]: the sum of the weights of the images that take it */
    struct tensor *candidates; /* [routers + 1] class features, none first; data NULL: not computed yet */
};

static status open_adapters(struct predictor *p, struct error *error)
{
    const struct saved_adapters *saved = p->settings.adapters;
    if (saved == NULL) { /* a classifier's file has its own */
        p->routers = model_routers(&p->model);
        p->settings.router = p->routers > 0 ? 0 : ROUTER_NONE;
        return OK;
    }
    TRY(saved_adapters_load(saved, &p->model, &p->settings.router, 1, error));
    p->routers = model_routers(&p->model);
    return p->settings.selects ? selector_open(&p->selector, &p->model, &p->data, saved->file, &saved->metadata, error)
                               : OK;
}

status predictor_open(struct predictor **result, const struct predictor_settings *settings, const struct log *log,
                      struct error *error)
{
    SCOPED(predictor_close_at) struct predictor *p = xcalloc(1, sizeof *p);
    p->settings = *settings;
    p->settings.model.keep_features = false;
    p->model = (struct model){.settings = p->settings.model, .log = log, .stop = p->settings.stop};
    TRY(model_open(&p->model, error));
    model_choose_batch(&p->model);
    TRY(model_open_tokenizer(&p->model, error));
    TRY(open_adapters(p, error));
    TRY(tasks_open_named(&p->data, &p->model, p->settings.metadata, error));
    TRY(model_open_head(&p->model, p->data.class_count, error));
    p->cache = feature_cache_create(&p->model, &p->data);
    p->labels.cache = p->cache;
    p->candidates = xcalloc(p->routers + 1, sizeof *p->candidates);
    p->seen = xcalloc(p->routers + 1, sizeof *p->seen);
    *result = TAKE(p);
    return OK;
}

void predictor_close(struct predictor *p)
{
    if (p == NULL)
        return;
    free(p->candidates);
    free(p->seen);
    label_space_refresh(&p->labels);
    feature_cache_destroy(p->cache);
    selector_destroy(p->selector);
    tasks_close(&p->data, &p->model);
    tokenizer_close(p->model.tokenizer);
    model_close(&p->model);
    free(p);
}

size_t predictor_resolution(const struct predictor *p)
{
    return p->model.clip->dimensions.resolution;
}

bool predictor_squashes(const struct predictor *p)
{
    return clip_squashes(&p->model.clip->dimensions);
}

bool predictor_sees_first(const struct predictor *p)
{
    return p->model.prefixes != NULL && p->selector != NULL && p->selector->kind->weight != NULL;
}

size_t predictor_batch(const struct predictor *p)
{
    size_t batch = p->model.evaluation_batch, together = p->selector != NULL ? selector_together(p->selector) : 1;
    return together < batch ? batch / together * together : together;
}

const char *predictor_device(const struct predictor *p)
{
    return p->model.backend->description;
}

/* --- Features --- */

/* The features of n images on the host. */
struct features {
    float *frozen, *means; /* [n, embed], [n, image_width] of the zero-shot tower; means: for the selector only */
    float *routed;         /* [n, embed] through one router, of the images that take it */
    float *weights;        /* [n] of what prefixes add to these */
    int16_t *router;
    uint32_t *items; /* the images that take one router */
    float **errors;  /* [trained][n] */
    float *least;
};

static status stopped(const struct predictor *p, struct error *error)
{
    return stop_requested(p->settings.stop) ? error_set(error, ERROR_STOPPED, "stopped while images were answered")
                                            : OK;
}

/* Computes frozen features as harness/train/image_pass.c does for a run. */
static status encode_frozen(struct predictor *p, const uint8_t *pixels, size_t n, float *frozen, float *means,
                            struct error *error)
{
    struct model *model = &p->model;
    struct encoding encoding = {.arena = &model->step_memory, .whole = means != NULL};
    struct tower_pass pass;
    struct tensor images, output, mean;
    arena_reset(&model->step_memory);
    TRY(upload_pixels(model, pixels, NULL, n, &images, error));
    TRY(clip_encode_images(model->clip, &encoding, &images, &pass, &output, error));
    TRY(model->backend->ops->download(model->backend, frozen, output.data, tensor_bytes(&output), error));
    if (means == NULL)
        return OK;
    TRY(clip_mean_patches(model->clip, &model->step_memory, &pass, &mean, error));
    return model->backend->ops->download(model->backend, means, mean.data, tensor_bytes(&mean), error);
}

/* --- Routers --- */

static status select_routers(struct predictor *p, const uint8_t *pixels, size_t n, struct features *f,
                             struct error *error)
{
    const struct clip_dimensions *d = &p->model.clip->dimensions;
    size_t batch = p->model.evaluation_batch, embed = model_feature_width(&p->model),
           bytes = d->resolution * d->resolution * 3;
    for (size_t first = 0, count; first < n; first += count) {
        count = n - first < batch ? n - first : batch;
        TRY(stopped(p, error));
        TRY(encode_frozen(p, pixels + first * bytes, count, f->frozen + first * embed,
                          p->selector != NULL ? f->means + first * d->image_width : NULL, error));
    }
    if (p->selector == NULL)
        return OK;
    struct selector_images images = {.n = n, .means = f->means, .features = f->frozen, .stop = p->settings.stop};
    for (size_t k = 0; k <= p->selector->tasks; k++)
        if (selector_wants(p->selector, k))
            TRY(selector_errors(p->selector, k, &images, f->errors[k], error));
    selector_choose(p->selector, (const float *const *)f->errors, n, f->router);
    selector_least_errors(p->selector, (const float *const *)f->errors, n, f->least);
    return OK;
}

static status choose_routers(struct predictor *p, const uint8_t *pixels, size_t n, struct features *f,
                             struct error *error)
{
    for (size_t i = 0; i < n; i++) {
        f->router[i] = (int16_t)p->settings.router;
        f->least[i] = NAN;
    }
    bool frozen = p->selector != NULL || p->settings.router < 0;
    return frozen ? select_routers(p, pixels, n, f, error) : OK;
}

/* --- Classes --- */

/* The classes of all tasks, unless the router belongs to one task. */
static bool all_labels(const struct predictor *p, int router)
{
    bool shared = p->settings.adapters != NULL && p->settings.adapters->metadata.one_router;
    return p->settings.all_labels || router < 0 || (size_t)router >= p->data.task_count || p->data.task_count == 1 ||
           shared;
}

static status take_candidates(struct predictor *p, int router, struct tensor **classes, struct error *error)
{
    *classes = &p->candidates[router + 1];
    if ((*classes)->data != NULL)
        return OK;
    if (router >= 0 && p->seen[router].images > 0)
        p->model.prefixes->text_weight = (float)(p->seen[router].weight / (double)p->seen[router].images);
    struct tensor features;
    if (all_labels(p, router))
        TRY(label_space_all(&p->labels, router, &p->model.memory, &features, error));
    else
        TRY(feature_cache_classes(p->cache, (size_t)router, router, &p->model.memory, &features, error));
    **classes = features;
    return OK;
}

static void name_class(const struct predictor *p, int router, size_t class_index, struct answer_rank *rank)
{
    size_t task = all_labels(p, router) ? 0 : (size_t)router;
    rank->task = task;
    rank->class_index = class_index;
    while (all_labels(p, router) && rank->task + 1 < p->data.task_count &&
           class_index >= p->data.tasks[rank->task + 1].first_class)
        rank->task++;
    if (all_labels(p, router))
        rank->class_index -= p->data.tasks[rank->task].first_class;
}

/* Finds the `top` highest logits, of equal ones the first, as in evaluation. Overwrites logits. */
static void rank_classes(const struct predictor *p, int router, float *logits, size_t classes, struct answer *answer)
{
    double total = 0, highest = (double)logits[0];
    for (size_t c = 0; c < classes; c++)
        highest = (double)logits[c] > highest ? (double)logits[c] : highest;
    for (size_t c = 0; c < classes; c++)
        total += exp((double)logits[c] - highest);
    answer->count = p->settings.top < classes ? p->settings.top : classes;
    for (size_t k = 0; k < answer->count; k++) {
        size_t best = 0;
        for (size_t c = 1; c < classes; c++)
            if (logits[c] > logits[best])
                best = c;
        answer->ranks[k].confidence = exp((double)logits[best] - highest) / total;
        name_class(p, router, best, &answer->ranks[k]);
        logits[best] = -INFINITY;
    }
}

/* features [n, embed] of the listed images on the host */
static status compare(struct predictor *p, int router, const struct tensor *classes, const float *features,
                      const uint32_t *items, size_t n, struct answer *answers, struct error *error)
{
    struct model *model = &p->model;
    struct tensor images, scores;
    size_t count = classes->shape[0];
    arena_reset(&model->step_memory);
    TRY(tensor_take(&images, &model->step_memory, TENSOR_F32, "features", 2, (size_t[]){n, model_feature_width(model)},
                    error));
    TRY(model->backend->ops->upload(model->backend, images.data, features, tensor_bytes(&images), error));
    TRY(model->head->scores(model, &images, classes, &scores, error));
    OWNED float *logits = xmalloc(tensor_bytes(&scores));
    TRY(model->backend->ops->download(model->backend, logits, scores.data, tensor_bytes(&scores), error));
    for (size_t i = 0; i < n * count; i++)
        if (!isfinite(logits[i]))
            return error_set(
                error, ERROR_FORMAT,
                "prediction: an image and class %zu give %f through router %d, expected a finite number; the "
                "weights or adapters are damaged or overflow",
                i % count, (double)logits[i], router);
    for (size_t i = 0; i < n; i++)
        rank_classes(p, router, logits + i * count, count, &answers[items[i]]);
    return OK;
}

/* --- Answers --- */

static size_t list_items(const struct features *f, size_t n, int router)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (f->router[i] == router)
            f->items[count++] = (uint32_t)i;
    return count;
}

static float weight_of(const struct predictor *p, const struct features *f, size_t item)
{
    return p->selector->kind->weight(p->selector, f->errors[f->router[item]][item]);
}

/* routed [n, embed] of the listed images */
static status encode_routed(struct predictor *p, const uint8_t *pixels, const uint32_t *items, size_t n, int router,
                            struct features *f, struct error *error)
{
    bool weighed = predictor_sees_first(p);
    struct tensor output;
    for (size_t i = 0; weighed && i < n; i++)
        f->weights[i] = weight_of(p, f, items[i]);
    TRY(encode_pixels(&p->model, pixels, items, n, router, weighed ? f->weights : NULL, &output, error));
    return p->model.backend->ops->download(p->model.backend, f->routed, output.data, tensor_bytes(&output), error);
}

static status answer_routed(struct predictor *p, const uint8_t *pixels, size_t n, int router, struct features *f,
                            struct answer *answers, struct error *error)
{
    size_t embed = model_feature_width(&p->model), batch = p->model.evaluation_batch, all = list_items(f, n, router);
    struct tensor *classes;
    if (all == 0)
        return OK;
    TRY(take_candidates(p, router, &classes, error));
    for (size_t first = 0, count; first < all; first += count) {
        const uint32_t *items = f->items + first;
        count = all - first < batch ? all - first : batch;
        TRY(stopped(p, error));
        if (router >= 0)
            TRY(encode_routed(p, pixels, items, count, router, f, error));
        for (size_t i = 0; router < 0 && i < count; i++)
            memcpy(f->routed + i * embed, f->frozen + items[i] * embed, embed * sizeof *f->routed);
        TRY(compare(p, router, classes, f->routed, items, count, answers, error));
    }
    return OK;
}

static struct features take_features(const struct predictor *p, size_t n)
{
    const struct clip_dimensions *d = &p->model.clip->dimensions;
    size_t coders = p->selector != NULL ? p->selector->tasks + 1 : 0, embed = model_feature_width(&p->model);
    struct features f = {.frozen = xmalloc(array_size(n, embed * sizeof *f.frozen)),
                         .means = xmalloc(array_size(n, d->image_width * sizeof *f.means)),
                         .routed = xmalloc(array_size(n, embed * sizeof *f.routed)),
                         .weights = xmalloc(array_size(n, sizeof *f.weights)),
                         .router = xmalloc(array_size(n, sizeof *f.router)),
                         .items = xmalloc(array_size(n, sizeof *f.items)),
                         .errors = xcalloc(coders + 1, sizeof *f.errors),
                         .least = xmalloc(array_size(n, sizeof *f.least))};
    for (size_t k = 0; k < coders; k++)
        f.errors[k] = xmalloc(array_size(n, sizeof **f.errors));
    return f;
}

static void free_features(struct features *f, const struct predictor *p)
{
    for (size_t k = 0; p->selector != NULL && k <= p->selector->tasks; k++)
        free(f->errors[k]);
    free(f->errors);
    free(f->frozen);
    free(f->means);
    free(f->routed);
    free(f->weights);
    free(f->router);
    free(f->items);
    free(f->least);
}

status predictor_see(struct predictor *p, const uint8_t *pixels, size_t n, struct error *error)
{
    struct features f = take_features(p, n);
    status result = choose_routers(p, pixels, n, &f, error);
    for (size_t i = 0; result == OK && i < n; i++)
        if (f.router[i] >= 0) {
            p->seen[f.router[i]].weight += (double)weight_of(p, &f, i);
            p->seen[f.router[i]].images++;
        }
    free_features(&f, p);
    return result;
}

status predictor_answer(struct predictor *p, const uint8_t *pixels, size_t n, struct answer *answers,
                        struct error *error)
{
    struct features f = take_features(p, n);
    status result = choose_routers(p, pixels, n, &f, error);
    for (size_t i = 0; result == OK && i < n; i++) {
        answers[i].router = f.router[i];
        answers[i].error = f.least[i];
    }
    for (int router = -1; result == OK && router < (int)p->routers; router++)
        result = answer_routed(p, pixels, n, router, &f, answers, error);
    free_features(&f, p);
    return result;
}
