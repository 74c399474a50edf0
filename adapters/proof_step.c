#include "adapters/proof_step.h"

#include <stdlib.h>

#include "adapters/adapter.h"
#include "adapters/autoencoder.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "models/class_head.h"
#include "models/clip.h"
#include "models/optimizers/optimizer.h"
#include "models/proof.h"

enum { IMAGES = 5, PROMPTS = 4, CONTEXT = 6, SIDE = 24, WIDTH = 64, CODE = 24, STEPS = 5, RECORDED = 1 };

static const struct clip_dimensions dimensions = {.embed = 32,
                                                  .resolution = SIDE,
                                                  .patch = 8,
                                                  .image_width = WIDTH,
                                                  .image_hidden = 4 * WIDTH,
                                                  .image_heads = 1,
                                                  .image_blocks = 2,
                                                  .context = CONTEXT,
                                                  .vocabulary = 11,
                                                  .text_width = 2 * WIDTH,
                                                  .text_hidden = 8 * WIDTH,
                                                  .text_heads = 2,
                                                  .text_blocks = 2};
static const int32_t tokens[PROMPTS * CONTEXT] = {9, 1, 2, 10, 0,  0, 9, 3, 10, 0,  0, 0,
                                                  9, 4, 4, 5,  10, 0, 9, 7, 1,  10, 0, 0};
/* All experts are chosen, so that rounding decides nothing. */
static const struct adapter_settings experts = {.experts = 3,
                                                .top_k = 3,
                                                .tasks = 2,
                                                .bottleneck = 24,
                                                .scale = 0.5f,
                                                .dropout = 0.25f,
                                                .noise_epsilon = 0.01f,
                                                .activation = ACTIVATION_QUICK_GELU};
static const struct step_state state = {.seed = 3, .task = 1, .step = 2, .learning_rate = 0.05f};

struct side {
    struct backend *backend, *device; /* device: whose precision the operands suit */
    struct arena memory, arenas[TOWERS];
    struct clip *clip;
    struct adapters *adapters;
    struct autoencoder *coder;
    struct tensor images, features[TOWERS], dfeatures[TOWERS];
    struct texts texts;
    struct encoding encoding[TOWERS];
    struct tower_pass pass[TOWERS];
    struct class_head head;
    const int32_t *labels;
    float *loss;
    struct recording recording;
};

static status fill(struct side *s, struct parameters *group, struct error *error)
{
    size_t bytes = group->values_count * sizeof(float);
    OWNED float *values = xmalloc(bytes);
    proof_draw(values, group->values_count, 0, s->device);
    for (size_t i = 0; i < group->values_count; i++)
        values[i] *= 0.125f; /* which rounds nothing */
    return s->backend->ops->upload(s->backend, parameters_write_all(group), values, bytes, error);
}

/* Memory of the model with these values. */
static status put(struct side *s, struct tensor *tensor, enum tensor_type type, size_t n, const void *values,
                  struct error *error)
{
    TRY(tensor_take(tensor, &s->memory, type, "proof", 1, &n, error));
    return s->backend->ops->upload(s->backend, tensor->data, values, tensor_bytes(tensor), error);
}

static status open_inputs(struct side *s, struct error *error)
{
    static const int32_t labels[IMAGES] = {1, 3, 0, 2, 1}, routers[IMAGES] = {1, 1, 1, 1, 1};
    float pixels[IMAGES * 3 * SIDE * SIDE];
    struct tensor given, router, now;
    proof_draw(pixels, sizeof pixels / sizeof *pixels, 0, s->device);
    TRY(put(s, &given, TENSOR_F32, sizeof pixels / sizeof *pixels, pixels, error));
    s->images = (struct tensor){given.data, TENSOR_F32, 4, {IMAGES, 3, SIDE, SIDE}, "images"};
    TRY(put(s, &given, TENSOR_I32, IMAGES, labels, error));
    s->labels = given.data;
    TRY(put(s, &router, TENSOR_I32, IMAGES, routers, error));
    TRY(put(s, &now, TENSOR_U8, sizeof state, &state, error));
    TRY(put(s, &given, TENSOR_F32, 1, &(float){0}, error));
    s->loss = given.data;
    for (int t = 0; t < TOWERS; t++)
        s->encoding[t] = (struct encoding){.arena = &s->arenas[t],
                                           .hooks = adapters_hooks(s->adapters, (enum tower)t),
                                           .router = router.data,
                                           .state = now.data};
    return texts_create(&s->texts, s->clip, &s->memory, tokens, PROMPTS, error);
}

static status open_side(struct side *s, struct error *error)
{
    struct backend *backend = s->backend;
    struct arena *const arenas[] = {&s->memory, &s->arenas[0], &s->arenas[1]};
    for (size_t i = 0; i < sizeof arenas / sizeof *arenas; i++)
        TRY(backend->ops->arena_create(backend, arenas[i], (size_t)1 << 30, "proof", error));
    TRY(clip_create(&s->clip, backend, &s->memory, &dimensions, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, error));
    TRY(fill(s, s->clip->parameters, error));
    TRY(adapters_create(&s->adapters, backend, &s->memory, &dimensions, &experts, PARAMETERS_TRAINED_ONE_MOMENT,
                        error));
    for (int t = 0; t < TOWERS; t++)
        TRY(fill(s, s->adapters->towers[t].parameters, error));
    TRY(adapters_begin_task(s->adapters, 1, error));
    TRY(autoencoder_create(&s->coder, backend, &s->memory, dimensions.embed, CODE, PARAMETERS_TRAINED, error));
    TRY(fill(s, s->coder->parameters, error));
    return open_inputs(s, error);
}

static void close_side(struct side *s)
{
    s->backend->ops->recording_destroy(s->backend, &s->recording);
    autoencoder_destroy(s->coder);
    adapters_destroy(s->adapters);
    clip_destroy(s->clip);
    for (int t = TOWERS; t-- > 0;)
        s->backend->ops->arena_destroy(s->backend, &s->arenas[t]);
    s->backend->ops->arena_destroy(s->backend, &s->memory);
}

/* --- The step --- */

static status encode_images(void *context, struct error *error)
{
    struct side *s = context;
    return clip_encode_images(s->clip, &s->encoding[TOWER_IMAGE], &s->images, &s->pass[TOWER_IMAGE],
                              &s->features[TOWER_IMAGE], error);
}

static status encode_texts(void *context, struct error *error)
{
    struct side *s = context;
    return clip_encode_texts(s->clip, &s->encoding[TOWER_TEXT], &s->texts, &s->pass[TOWER_TEXT],
                             &s->features[TOWER_TEXT], error);
}

static status images_back(void *context, struct error *error)
{
    struct side *s = context;
    return clip_encode_backward(s->clip, &s->encoding[TOWER_IMAGE], &s->pass[TOWER_IMAGE], &s->dfeatures[TOWER_IMAGE],
                                error);
}

static status texts_back(void *context, struct error *error)
{
    struct side *s = context;
    return clip_encode_backward(s->clip, &s->encoding[TOWER_TEXT], &s->pass[TOWER_TEXT], &s->dfeatures[TOWER_TEXT],
                                error);
}

static status score(struct side *s, bool training, struct error *error)
{
    struct branches encode = {{{encode_images, s}, {encode_texts, s}}};
    for (int t = 0; t < TOWERS; t++) {
        arena_reset(&s->arenas[t]);
        s->encoding[t].training = training;
    }
    TRY(s->backend->ops->branches(s->backend, &encode, error));
    return class_head_logits(s->backend, &s->arenas[0], &s->features[TOWER_IMAGE], &s->features[TOWER_TEXT], 5.0f,
                             &s->head, error);
}

/* SGD: a small gradient changes little, whichever sign rounding gives it. */
static status step(void *context, struct error *error)
{
    struct side *s = context;
    struct branches back = {{{images_back, s}, {texts_back, s}}};
    const struct image_labels labels = {.labels = s->labels};
    TRY(s->backend->ops->zero(s->backend, s->loss, sizeof *s->loss, error));
    TRY(score(s, true, error));
    TRY(class_head_loss(s->backend, &s->head, &labels, 0.2f, 1.0f, s->loss, error));
    TRY(class_head_backward(s->backend, &s->arenas[0], &s->head, &s->dfeatures[TOWER_IMAGE], &s->dfeatures[TOWER_TEXT],
                            error));
    TRY(s->backend->ops->branches(s->backend, &back, error));
    for (int t = 0; t < TOWERS; t++)
        TRY(parameters_step(s->adapters->towers[t].parameters, s->encoding[t].state,
                            &(struct update_rule){.optimizer = &optimizer_sgd, .momentum = 0.9}, error));
    return OK;
}

static status run(struct side *s, size_t number, struct error *error)
{
    if (number > RECORDED && s->recording.owner != NULL)
        return s->backend->ops->replay(s->backend, &s->recording, error);
    if (number != RECORDED || !s->backend->asynchronous)
        return step(s, error);
    TRY(s->backend->ops->record(s->backend, &s->recording, step, s, error));
    return s->recording.owner != NULL ? OK
                                      : error_set(error, ERROR_DEVICE, "a recorded step: it cannot be recorded: %s",
                                                  s->recording.refused.message);
}

/* --- Comparing --- */

static status compare(const struct side sides[2], const char *what, const float *cpu, const float *device, size_t n,
                      double tolerance, struct error *error)
{
    OWNED float *values = xmalloc(2 * n * sizeof *values);
    TRY(sides[0].backend->ops->download(sides[0].backend, values, cpu, n * sizeof *values, error));
    TRY(sides[1].backend->ops->download(sides[1].backend, values + n, device, n * sizeof *values, error));
    return proof_compare(what, values, values + n, n, tolerance, error);
}

static status prove_steps(struct side sides[2], double tolerance, struct error *error)
{
    for (size_t i = 0; i < STEPS; i++) {
        const char *what = i < RECORDED ? "a step" : i == RECORDED ? "a recorded step" : "a replayed step";
        for (size_t k = 0; k < 2; k++)
            TRY(run(&sides[k], i, error));
        TRY(compare(sides, what, sides[0].loss, sides[1].loss, 1, tolerance, error));
        for (int t = 0; t < TOWERS; t++) {
            const struct parameters *a = sides[0].adapters->towers[t].parameters,
                                    *b = sides[1].adapters->towers[t].parameters;
            TRY(compare(sides, what, a->first_moment, b->first_moment, a->values_count, tolerance, error));
        }
    }
    return OK;
}

/* The selector learns from the features, too. */
static status prove_evaluation(struct side sides[2], double tolerance, struct error *error)
{
    float errors[2][IMAGES], loss[2];
    for (size_t k = 0; k < 2; k++) {
        struct side *s = &sides[k];
        TRY(score(s, false, error));
        TRY(autoencoder_train_step(s->coder, &s->arenas[0], &s->features[TOWER_IMAGE], s->encoding[0].state,
                                   &optimizer_adamw.rule, &loss[k], error));
        TRY(autoencoder_errors(s->coder, &s->arenas[0], &s->features[TOWER_IMAGE], errors[k], error));
    }
    TRY(compare(sides, "an evaluation", sides[0].head.logits.data, sides[1].head.logits.data, IMAGES * PROMPTS,
                tolerance, error));
    TRY(proof_compare("a step of the selector", &loss[0], &loss[1], 1, tolerance, error));
    return proof_compare("the selector", errors[0], errors[1], IMAGES, tolerance, error);
}

status proof_of_step(struct backend *cpu, struct backend *device, struct error *error)
{
    /* In bf16 gradients differ by several hundredths; what a step leaves out differs by more than this. */
    double tolerance = device->precision == PRECISION_BF16 ? 0.15 : 1e-4;
    struct side sides[] = {{.backend = cpu, .device = device}, {.backend = device, .device = device}};
    status result = open_side(&sides[0], error);
    NEXT(result, open_side(&sides[1], error));
    NEXT(result, prove_steps(sides, tolerance, error));
    NEXT(result, prove_evaluation(sides, tolerance, error));
    close_side(&sides[1]);
    close_side(&sides[0]);
    return result;
}
