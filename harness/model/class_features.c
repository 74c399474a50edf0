#include "harness/model/class_features.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/model.h"
#include "harness/model/routed_encoding.h"

enum { PROMPTS = 256 }; /* encoded at a time */

size_t class_prompts(const struct task *task)
{
    return dataset_classes(task->dataset) * dataset_templates(task->dataset);
}

static status mean_of_templates(struct model *model, const struct tensor *each, size_t classes, void *features,
                                struct error *error)
{
    const struct backend_ops *ops = model->backend->ops;
    struct tensor normal, mean;
    size_t embed = model->clip->dimensions.embed, templates = each->shape[0] / classes;
    TRY(tensor_take(&normal, &model->step_memory, TENSOR_F32, "normalised prompts", 2, each->shape, error));
    TRY(tensor_take(&mean, &model->step_memory, TENSOR_F32, "mean prompts", 2, (size_t[]){classes, embed}, error));
    TRY(ops->normalize(model->backend, &(struct normalize){.x = matrix_of(each), .y = matrix_of(&normal)}, error));
    TRY(ops->mean_positions(
        model->backend,
        &(struct mean_positions){
            .batch = classes, .positions = templates, .width = embed, .x = normal.data, .out = mean.data},
        error));
    return ops->normalize(
        model->backend, &(struct normalize){.x = matrix_of(&mean), .y = matrix_rows(features, classes, embed)}, error);
}

/* All prompts alike. */
static status weigh(struct routed_encoding *routed, struct error *error)
{
    const struct prefixes *prefixes = routed->model->prefixes;
    if (prefixes == NULL)
        return OK;
    OWNED float *weights = xmalloc(array_size(routed->count, sizeof *weights));
    for (size_t i = 0; i < routed->count; i++)
        weights[i] = prefixes->text_weight;
    return routed_encoding_weigh(routed, weights, error);
}

/* each [prompts, embed] in the step's arena, which is reset */
static status encode_prompts(struct model *model, const int32_t *tokens, size_t prompts, int router, int32_t *chosen,
                             struct tensor *each, struct error *error)
{
    struct routed_encoding routed;
    struct encoding encoding;
    struct texts texts;
    struct tower_pass pass;
    arena_reset(&model->step_memory);
    TRY(texts_create(&texts, model->clip, &model->step_memory, tokens, prompts, error));
    TRY(routed_encoding_begin(&routed, model, TOWER_TEXT, prompts, router, &encoding, error));
    status result = weigh(&routed, error);
    NEXT(result, clip_encode_texts(model->clip, &encoding, &texts, &pass, each, error));
    routed_encoding_end(&routed);
    TRY(result);
    return chosen != NULL ? routed_encoding_chosen(&routed, chosen, error) : OK;
}

/* features [classes, embed] of `classes` classes, tokens class by class */
static status encode_classes(struct model *model, const int32_t *tokens, size_t classes, size_t templates, int router,
                             int32_t *chosen, void *features, struct error *error)
{
    struct tensor each;
    TRY(encode_prompts(model, tokens, classes * templates, router, chosen, &each, error));
    return mean_of_templates(model, &each, classes, features, error);
}

static status not_finite(const struct model *model, const struct task *task, int router, const struct tensor *features,
                         struct error *error)
{
    size_t embed = model->clip->dimensions.embed, n = tensor_elements(features);
    OWNED float *values = xmalloc(tensor_bytes(features));
    TRY(model->backend->ops->download(model->backend, values, features->data, tensor_bytes(features), error));
    size_t at = not_finite_at(values, n);
    return error_set(error, ERROR_FORMAT,
                     "%s: class \"%s\": its text features %s are not finite: numbers overflow on their way through the "
                     "model; are these the right weights?",
                     task->settings.name, dataset_class_name(task->dataset, at < n ? at / embed : 0),
                     router < 0 ? "without adapters" : "with adapters");
}

status class_features(struct model *model, const struct task *task, int router, struct arena *arena, int32_t *chosen,
                      struct tensor *features, struct error *error)
{
    size_t classes = dataset_classes(task->dataset), templates = dataset_templates(task->dataset),
           context = model->clip->dimensions.context, embed = model->clip->dimensions.embed;
    size_t chunk = PROMPTS / templates > 0 ? PROMPTS / templates : 1,
           choices = router < 0 || chosen == NULL ? 0 : adapters_choices(model->adapters, TOWER_TEXT);
    TRY(tensor_take(features, arena, TENSOR_F32, "class features", 2, (size_t[]){classes, embed}, error));
    for (size_t first = 0; first < classes; first += chunk) {
        size_t count = classes - first < chunk ? classes - first : chunk, prompt = first * templates;
        if (stop_requested(model->stop))
            return error_set(error, ERROR_STOPPED, "stopped while class names of %s were encoded", task->settings.name);
        TRY(encode_classes(model, task->test_prompts + prompt * context, count, templates, router,
                           chosen != NULL ? chosen + prompt * choices : NULL, (float *)features->data + first * embed,
                           error));
    }
    bool finite;
    TRY(model_finite(model, features->data, tensor_elements(features), &finite, error));
    return finite ? OK : not_finite(model, task, router, features, error);
}

status text_features_host(struct model *model, const int32_t *tokens, size_t count, float *values, struct error *error)
{
    size_t context = model->clip->dimensions.context, embed = model->clip->dimensions.embed;
    for (size_t first = 0; first < count; first += PROMPTS) {
        size_t n = count - first < PROMPTS ? count - first : PROMPTS;
        struct tensor each;
        TRY(stop_check(model->stop, "texts were encoded", error));
        TRY(encode_prompts(model, tokens + first * context, n, -1, NULL, &each, error));
        TRY(model->backend->ops->download(model->backend, values + first * embed, each.data, tensor_bytes(&each),
                                          error));
    }
    size_t at = not_finite_at(values, count * embed);
    return at == count * embed ? OK
                               : error_set(error, ERROR_FORMAT,
                                           "the features of text %zu of %zu are not finite: numbers overflow on their "
                                           "way through the model; are these the right weights?",
                                           at / embed + 1, count);
}

status class_features_host(struct model *model, const struct task *task, float **values, struct error *error)
{
    struct arena_mark mark = arena_mark(&model->task_memory);
    struct tensor features;
    TRY(class_features(model, task, -1, &model->task_memory, NULL, &features, error));
    *values = xmalloc(tensor_bytes(&features));
    status result =
        model->backend->ops->download(model->backend, *values, features.data, tensor_bytes(&features), error);
    arena_release(&model->task_memory, mark);
    return result;
}
