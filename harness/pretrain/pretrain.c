#include "harness/pretrain/pretrain.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/rng.h"
#include "core/threads.h"
#include "harness/pretrain/captions.h"
#include "harness/pretrain/tokenizer_learn.h"
#include "models/class_head.h"
#include "models/clip.h"
#include "models/schedule.h"
#include "models/tokenizer.h"

enum { HELD_OUT_BATCHES = 8 };
static const uint64_t held_out_first = (uint64_t)1 << 40; /* drawings that training never reaches */

struct pretraining {
    const struct pretrain_settings *settings;
    struct threads *threads; /* threads that draw; the backend has its own */
    struct tokenizer *tokenizer;
    struct backend *backend;
    struct arena model, step;
    struct clip *clip;
    struct step_state *state; /* device */
    float *loss;              /* device */
    float logit_scale_gradient;
    /* a batch on the host */
    uint8_t *pixels;
    char *captions; /* [batch][CAPTION_CAPACITY] */
    int32_t *tokens, *kept, *labels;
};

struct pretrain_settings pretrain_defaults(void)
{
    return (struct pretrain_settings){.seed = 1,
                                      .backend = {.name = "cpu"},
                                      .batch = 128,
                                      .plain_steps = 2400,
                                      .harder_steps = 1000,
                                      .captions = 8000,
                                      .merges = 400,
                                      .plain_rate = 1.5e-3,
                                      .harder_rate = 8e-4,
                                      .weight_decay = 0.02,
                                      .dimensions = {.embed = 128,
                                                     .resolution = 64,
                                                     .patch = 8,
                                                     .image_width = 128,
                                                     .image_hidden = 512,
                                                     .image_heads = 2,
                                                     .image_blocks = 4,
                                                     .context = 32,
                                                     .text_width = 128,
                                                     .text_hidden = 512,
                                                     .text_heads = 2,
                                                     .text_blocks = 3}};
}

struct drawing_jobs {
    struct pretraining *p;
    uint64_t first;
    enum captioned_level level;
    struct error error; /* error of any drawing that failed */
};

static void draw(void *context, size_t job, size_t worker)
{
    (void)worker;
    struct drawing_jobs *jobs = context;
    struct pretraining *p = jobs->p;
    struct error error;
    char *caption = p->captions + job * CAPTION_CAPACITY;
    if (captioned_drawing(p->settings->seed, jobs->first + job, jobs->level, p->pixels + job * CAPTIONED_PIXELS,
                          caption, CAPTION_CAPACITY, &error) != OK)
        jobs->error = error; /* the only possible error: a caption that does not fit */
}

static status draw_batch(struct pretraining *p, uint64_t first, enum captioned_level level, struct error *error)
{
    struct drawing_jobs jobs = {.p = p, .first = first, .level = level};
    size_t context = p->settings->dimensions.context;
    threads_run(p->threads, p->settings->batch, draw, &jobs);
    if (jobs.error.code != OK) {
        *error = jobs.error;
        return error->code;
    }
    for (size_t i = 0; i < p->settings->batch; i++) {
        size_t tokens;
        TRY(tokenizer_encode(p->tokenizer, p->captions + i * CAPTION_CAPACITY, p->tokens + i * context, context,
                             &tokens, error));
    }
    return OK;
}

/* The half of the patches that each image of this step keeps. */
static void choose_patches(struct pretraining *p, size_t step, size_t patches, size_t kept)
{
    uint32_t order[4096];
    for (size_t b = 0; b < p->settings->batch; b++) {
        struct rng rng = rng_make(p->settings->seed, RNG_CROP, (uint32_t)b, (uint32_t)step);
        rng_permutation(&rng, patches, order);
        for (size_t i = 0; i < kept; i++)
            p->kept[b * kept + i] = (int32_t)order[i];
    }
}

static status upload(struct pretraining *p, enum tensor_type type, const void *host, int rank, const size_t *shape,
                     struct tensor *tensor, struct error *error)
{
    TRY(tensor_take(tensor, &p->step, type, "batch", rank, shape, error));
    return p->backend->ops->upload(p->backend, tensor->data, host, tensor_bytes(tensor), error);
}

struct towers {
    struct encoding encoding;
    struct tower_pass passes[TOWERS];
    struct texts texts;
    struct tensor features[TOWERS];
};

static status encode(struct pretraining *p, bool training, size_t kept, struct towers *t, struct error *error)
{
    size_t batch = p->settings->batch;
    struct image_batch images = {.kept = kept};
    struct tensor indices;
    t->encoding = (struct encoding){.arena = &p->step, .training = training, .state = p->state};
    TRY(upload(p, TENSOR_U8, p->pixels, 4, (size_t[]){batch, CAPTIONED_SIDE, CAPTIONED_SIDE, 3}, &images.images,
               error));
    if (kept > 0) {
        TRY(upload(p, TENSOR_I32, p->kept, 2, (size_t[]){batch, kept}, &indices, error));
        images.kept_patches = indices.data;
    }
    TRY(texts_create(&t->texts, p->clip, &p->step, p->tokens, batch, error));
    TRY(clip_encode_images(p->clip, &t->encoding, &images, &t->passes[TOWER_IMAGE], &t->features[TOWER_IMAGE], error));
    return clip_encode_texts(p->clip, &t->encoding, &t->texts, &t->passes[TOWER_TEXT], &t->features[TOWER_TEXT], error);
}

/* d loss / d logit_scale = Σ dlogits ⊙ logits, for either direction */
static status add_scale_gradient(struct pretraining *p, const struct class_head *c, struct error *error)
{
    size_t n = tensor_elements(&c->logits);
    float *both = malloc(array_size(2 * n, sizeof *both));
    if (both == NULL)
        return error_set(error, ERROR_MEMORY, "pretrain: no memory for %zu logits", n);
    status result = p->backend->ops->download(p->backend, both, c->logits.data, n * sizeof *both, error);
    NEXT(result, p->backend->ops->download(p->backend, both + n, c->dlogits.data, n * sizeof *both, error));
    double sum = 0;
    for (size_t i = 0; result == OK && i < n; i++)
        sum += (double)both[i] * (double)both[n + i];
    free(both);
    p->logit_scale_gradient += (float)sum;
    return result;
}

/* The contrastive loss is the mean of two cross-entropies: over the captions of each image, and over the images of
 * each caption. */
static status one_direction(struct pretraining *p, struct towers *t, enum tower rows, const int32_t *labels,
                            float scale, struct tensor dfeatures[TOWERS], struct error *error)
{
    enum tower columns = rows == TOWER_IMAGE ? TOWER_TEXT : TOWER_IMAGE;
    struct class_head c;
    TRY(class_head_logits(p->backend, &p->step, &t->features[rows], &t->features[columns], scale, &c, error));
    TRY(class_head_loss(p->backend, &c, &(struct image_labels){.labels = labels}, 0.0f, 0.5f, p->loss, error));
    TRY(add_scale_gradient(p, &c, error));
    return class_head_backward(p->backend, &p->step, &c, &dfeatures[rows], &dfeatures[columns], error);
}

static status backward(struct pretraining *p, struct towers *t, float *loss, struct error *error)
{
    struct tensor labels, first[TOWERS], second[TOWERS];
    float scale;
    TRY(upload(p, TENSOR_I32, p->labels, 1, &p->settings->batch, &labels, error));
    TRY(clip_logit_scale(p->clip, &scale, error));
    TRY(p->backend->ops->zero(p->backend, p->loss, sizeof *p->loss, error));
    p->logit_scale_gradient = 0;
    TRY(one_direction(p, t, TOWER_IMAGE, labels.data, scale, first, error));
    TRY(one_direction(p, t, TOWER_TEXT, labels.data, scale, second, error));
    for (int k = 0; k < TOWERS; k++) {
        TRY(p->backend->ops->weighted_sum(p->backend,
                                          &(struct weighted_sum){.count = 2,
                                                                 .n = tensor_elements(&first[k]),
                                                                 .inputs = {first[k].data, second[k].data},
                                                                 .weights = {1, 1},
                                                                 .out = first[k].data},
                                          error));
        TRY(clip_encode_backward(p->clip, &t->encoding, &t->passes[k], &first[k], error));
    }
    TRY(p->backend->ops->upload(p->backend, p->clip->logit_scale.gradient, &p->logit_scale_gradient,
                                sizeof p->logit_scale_gradient, error));
    return p->backend->ops->download(p->backend, loss, p->loss, sizeof *loss, error);
}

/* CLIP clips the scale at 100 (section 2.5). */
static status clip_the_scale(struct pretraining *p, struct error *error)
{
    float scale, most = logf(100.0f);
    TRY(clip_logit_scale(p->clip, &scale, error));
    return scale > 100.0f ? p->backend->ops->upload(p->backend, p->clip->logit_scale.value, &most, sizeof most, error)
                          : OK;
}

static status train_step(struct pretraining *p, size_t step, double rate, enum captioned_level level, size_t kept,
                         float *loss, struct error *error)
{
    const struct pretrain_settings *s = p->settings;
    size_t grid = s->dimensions.resolution / s->dimensions.patch;
    struct towers towers;
    arena_reset(&p->step);
    TRY(draw_batch(p, (uint64_t)step * s->batch, level, error));
    if (kept > 0)
        choose_patches(p, step, grid * grid, kept);
    struct step_state state = {.seed = s->seed, .step = (uint32_t)step, .learning_rate = (float)rate};
    TRY(p->backend->ops->upload(p->backend, p->state, &state, sizeof state, error));
    TRY(encode(p, true, kept, &towers, error));
    TRY(backward(p, &towers, loss, error));
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = s->weight_decay};
    TRY(parameters_step(p->clip->parameters, p->state, &rule, error));
    return clip_the_scale(p, error);
}

static status train_stage(struct pretraining *p, enum captioned_level level, size_t first_step,
                          struct progress *progress, const struct stop *stop, struct error *error)
{
    const struct pretrain_settings *s = p->settings;
    bool plain = level == CAPTIONED_PLAIN;
    size_t steps = plain ? s->plain_steps : s->harder_steps, grid = s->dimensions.resolution / s->dimensions.patch;
    struct schedule schedule = {
        .peak = plain ? s->plain_rate : s->harder_rate, .warmup = steps / 20 + 1, .iterations = steps};
    for (size_t i = 0; i < steps; i++) {
        float loss;
        if (stop_requested(stop))
            return error_set(error, ERROR_STOPPED, "pretrain: stopped at step %zu; nothing was written",
                             first_step + i);
        size_t kept = plain && i < steps / 4 * 3 ? grid * grid / 2 : 0;
        TRY(train_step(p, first_step + i, schedule_rate(&schedule, i), level, kept, &loss, error));
        struct progress_work work = {.done = {(double)(first_step + i + 1)},
                                     .total = {(double)(s->plain_steps + s->harder_steps)}};
        progress_report(progress, &(struct progress_state){.activity = "pretrain",
                                                           .subject = plain ? "plain drawings" : "harder drawings",
                                                           .step = i + 1,
                                                           .steps = steps,
                                                           .loss = (double)loss,
                                                           .images = (i + 1) * s->batch,
                                                           .work = &work});
        if (!isfinite(loss))
            return error_set(error, ERROR_ARGUMENT,
                             "pretrain: the loss is no longer finite at step %zu; lower the learning rate",
                             first_step + i);
    }
    return OK;
}

/* Retrieval accuracy: how often a drawing's own caption is the most similar of its batch. */
static status retrieval(struct pretraining *p, enum captioned_level level, double *percent, struct error *error)
{
    size_t batch = p->settings->batch, right = 0;
    for (size_t k = 0; k < HELD_OUT_BATCHES; k++) {
        struct towers t;
        struct class_head c;
        struct tensor best;
        arena_reset(&p->step);
        TRY(draw_batch(p, held_out_first + k * batch, level, error));
        TRY(encode(p, false, 0, &t, error));
        TRY(class_head_logits(p->backend, &p->step, &t.features[TOWER_IMAGE], &t.features[TOWER_TEXT], 100.0f, &c,
                              error));
        TRY(tensor_take(&best, &p->step, TENSOR_I32, "predictions", 1, &batch, error));
        TRY(p->backend->ops->argmax(p->backend, &(struct argmax){.x = matrix_of(&c.logits), .out = best.data}, error));
        TRY(p->backend->ops->download(p->backend, p->labels, best.data, batch * sizeof *p->labels, error));
        for (size_t i = 0; i < batch; i++)
            right += p->labels[i] >= 0 && strcmp(p->captions + i * CAPTION_CAPACITY,
                                                 p->captions + (size_t)p->labels[i] * CAPTION_CAPACITY) == 0;
    }
    *percent = 100.0 * (double)right / (double)(HELD_OUT_BATCHES * batch);
    return OK;
}

/* Learns the vocabulary from the first captions of both levels. */
static status learn_vocabulary(struct pretraining *p, const char *path, struct error *error)
{
    size_t count = p->settings->captions;
    char *captions = malloc(array_size(count, CAPTION_CAPACITY));
    const char **texts = malloc(array_size(count, sizeof *texts));
    uint8_t *pixels = malloc(CAPTIONED_PIXELS);
    status result = captions != NULL && texts != NULL && pixels != NULL
                        ? OK
                        : error_set(error, ERROR_MEMORY, "pretrain: no memory for captions");
    for (size_t i = 0; result == OK && i < count; i++) {
        char *caption = captions + i * CAPTION_CAPACITY;
        texts[i] = caption;
        result = captioned_drawing(p->settings->seed, i, i % 2 == 0 ? CAPTIONED_PLAIN : CAPTIONED_HARDER, pixels,
                                   caption, CAPTION_CAPACITY, error);
    }
    NEXT(result, tokenizer_learn(texts, count, p->settings->merges, path, error));
    NEXT(result, tokenizer_open(&p->tokenizer, path, error));
    free(pixels);
    free(texts);
    free(captions);
    return result;
}

static status take_batch(struct pretraining *p, struct error *error)
{
    const struct pretrain_settings *s = p->settings;
    size_t grid = s->dimensions.resolution / s->dimensions.patch;
    p->pixels = malloc(array_size(s->batch, CAPTIONED_PIXELS));
    p->captions = malloc(array_size(s->batch, CAPTION_CAPACITY));
    p->tokens = malloc(array_size(s->batch * s->dimensions.context, sizeof *p->tokens));
    p->kept = malloc(array_size(s->batch * grid * grid, sizeof *p->kept));
    p->labels = malloc(array_size(s->batch, sizeof *p->labels));
    if (p->pixels == NULL || p->captions == NULL || p->tokens == NULL || p->kept == NULL || p->labels == NULL)
        return error_set(error, ERROR_MEMORY, "pretrain: no memory for a batch of %zu", s->batch);
    for (size_t i = 0; i < s->batch; i++)
        p->labels[i] = (int32_t)i;
    return OK;
}

static status open_model(struct pretraining *p, struct error *error)
{
    struct clip_dimensions dimensions = p->settings->dimensions;
    dimensions.vocabulary = tokenizer_vocabulary(p->tokenizer);
    TRY(backend_open(&p->backend, &p->settings->backend, error));
    TRY(p->backend->ops->arena_create(p->backend, &p->model, 0, "model", error));
    TRY(p->backend->ops->arena_create(p->backend, &p->step, 0, "step", error));
    TRY(clip_create(&p->clip, p->backend, &p->model, &dimensions, PARAMETERS_TRAINED, ACTIVATION_QUICK_GELU, error));
    TRY(clip_initialize(p->clip, p->settings->seed, error));
    struct tensor memory;
    TRY(tensor_take(&memory, &p->model, TENSOR_U8, "step state", 1, (size_t[]){sizeof *p->state}, error));
    p->state = memory.data;
    TRY(tensor_take(&memory, &p->model, TENSOR_F32, "loss", 1, (size_t[]){1}, error));
    p->loss = memory.data;
    return OK;
}

struct pretrain_files {
    char *weights, *vocabulary, *learned; /* learned: the vocabulary before the weights exist */
};

static void close_all(struct pretraining *p)
{
    clip_destroy(p->clip);
    if (p->backend != NULL) {
        p->backend->ops->arena_destroy(p->backend, &p->step);
        p->backend->ops->arena_destroy(p->backend, &p->model);
        backend_close(p->backend);
    }
    tokenizer_close(p->tokenizer);
    threads_destroy(p->threads);
    free(p->pixels);
    free(p->captions);
    free(p->tokens);
    free(p->kept);
    free(p->labels);
}

static status train_and_save(struct pretraining *p, const char *weights, const struct log *log,
                             struct progress *progress, const struct stop *stop, struct error *error)
{
    double plain, harder;
    TRY(open_model(p, error));
    log_info(log, "computing on %s", p->backend->description);
    TRY(take_batch(p, error));
    TRY(train_stage(p, CAPTIONED_PLAIN, 0, progress, stop, error));
    TRY(parameters_reset(p->clip->parameters, error));
    TRY(train_stage(p, CAPTIONED_HARDER, p->settings->plain_steps, progress, stop, error));
    TRY(retrieval(p, CAPTIONED_PLAIN, &plain, error));
    TRY(retrieval(p, CAPTIONED_HARDER, &harder, error));
    log_info(log, "held-out drawings that find their caption among %zu: %.1f%% plain, %.1f%% harder",
             p->settings->batch, plain, harder);
    return clip_save(p->clip, weights, error);
}

/* The vocabulary has a temporary name until its weights exist. */
static status learn_and_train(struct pretraining *p, const struct pretrain_files *files, const struct log *log,
                              struct progress *progress, const struct stop *stop, struct error *error)
{
    TRY(threads_create(&p->threads, p->settings->backend.threads, error));
    TRY(learn_vocabulary(p, files->learned, error));
    TRY(train_and_save(p, files->weights, log, progress, stop, error));
    if (rename(files->learned, files->vocabulary) != 0)
        return error_errno(error, errno, "%s: cannot be renamed to %s", files->learned, files->vocabulary);
    return OK;
}

status pretrain(const struct pretrain_settings *settings, const char *folder, const struct log *log,
                struct progress *progress, const struct stop *stop, struct error *error)
{
    struct pretraining p = {.settings = settings};
    TRY(directory_create(folder, error));
    struct pretrain_files files = {.weights = path_format("%s/mini-clip.safetensors", folder),
                                   .vocabulary = path_format("%s/mini-vocabulary.txt", folder),
                                   .learned = path_format("%s/mini-vocabulary.learned.txt", folder)};
    bool named = files.weights != NULL && files.vocabulary != NULL && files.learned != NULL;
    status result = named ? learn_and_train(&p, &files, log, progress, stop, error)
                          : error_set(error, ERROR_MEMORY, "%s: no memory for names", folder);
    if (named && result != OK)
        unlink(files.learned);
    close_all(&p);
    free(files.weights);
    free(files.vocabulary);
    free(files.learned);
    return result;
}
