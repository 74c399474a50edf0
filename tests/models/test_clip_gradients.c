/* Every gradient of both towers against central differences of the loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "models/clip.h"
#include "models/contrastive.h"

enum { BATCH = 3, CLASSES = 4, KEPT = 5 };

struct model {
    struct backend *backend;
    struct arena weights, step;
    struct clip *clip;
    struct encoding encoding;
    float *loss;
    float images[BATCH * 3 * 12 * 12];
    int32_t tokens[CLASSES * 6], kept[BATCH * KEPT], labels[BATCH];
    bool drop_patches;
};

static struct error error;

static void must(status result)
{
    if (result != OK)
        fail_msg("%s", error.message);
}

static void open_model(struct model *m, enum activation activation)
{
    const struct clip_dimensions n = {.embed = 8, .resolution = 12, .patch = 4, .image_width = 64, .image_blocks = 2, .context = 6,
                                      .vocabulary = 11, .text_width = 128, .text_blocks = 1};
    struct rng rng = rng_make(5, RNG_TEST, 0, 0);
    *m = (struct model){0};
    must(backend_open(&m->backend, "cpu", 2, &error));
    must(m->backend->ops->arena_create(m->backend, &m->weights, (size_t)1 << 28, "model", &error));
    must(m->backend->ops->arena_create(m->backend, &m->step, (size_t)1 << 28, "step", &error));
    must(clip_create(&m->clip, m->backend, &m->weights, &n, PARAMETERS_TRAINED, activation, &error));
    must(clip_initialize(m->clip, 3, &error));
    /* no zeros anywhere: a dropped bias must show */
    for (size_t i = 0; i < m->clip->parameters->values_count; i++)
        m->clip->parameters->values[i] += 0.05f * rng_normal(&rng, 1000 + i);
    for (size_t i = 0; i < sizeof m->images / sizeof *m->images; i++)
        m->images[i] = rng_normal(&rng, i);
    const int32_t tokens[CLASSES * 6] = {9, 1, 2, 10, 0, 0, 9, 3, 10, 0, 0, 0, 9, 4, 4, 5, 10, 0, 9, 7, 1, 10, 0, 0};
    memcpy(m->tokens, tokens, sizeof tokens);
    for (int b = 0; b < BATCH; b++) {
        m->labels[b] = (b + 1) % CLASSES;
        for (int k = 0; k < KEPT; k++)
            m->kept[b * KEPT + k] = (b + 2 * k) % 9;
    }
    m->loss = arena_take(&m->weights, sizeof *m->loss);
    m->encoding = (struct encoding){.arena = &m->step, .training = true};
}

static void close_model(struct model *m)
{
    clip_destroy(m->clip);
    m->backend->ops->arena_destroy(m->backend, &m->weights);
    m->backend->ops->arena_destroy(m->backend, &m->step);
    backend_close(m->backend);
}

static float loss_of(struct model *m, bool backward)
{
    struct tower_pass passes[TOWERS];
    struct tensor features[TOWERS], dfeatures[TOWERS];
    struct texts texts;
    struct contrastive c;
    struct image_batch batch = {.images = {.data = m->images, .type = TENSOR_F32, .rank = 4, .shape = {BATCH, 3, 12, 12}},
                                .kept_patches = m->drop_patches ? m->kept : NULL, .kept = KEPT};
    arena_reset(&m->step);
    must(texts_create(&texts, m->clip, &m->step, m->tokens, CLASSES, &error));
    must(clip_encode_images(m->clip, &m->encoding, &batch, &passes[0], &features[0], &error));
    must(clip_encode_texts(m->clip, &m->encoding, &texts, &passes[1], &features[1], &error));
    must(contrastive_logits(m->backend, &m->step, &features[0], &features[1], 5.0f, &c, &error));
    *m->loss = 0;
    must(contrastive_loss(m->backend, &c, m->labels, 0.2f, 1.0f, m->loss, &error));
    if (backward) {
        must(contrastive_backward(m->backend, &m->step, &c, &dfeatures[0], &dfeatures[1], &error));
        for (int t = 0; t < TOWERS; t++)
            must(clip_encode_backward(m->clip, &m->encoding, &passes[t], &dfeatures[t], &error));
    }
    return *m->loss;
}

/* The derivative along the gradient's own direction, tensor by tensor: large against rounding, and wrong if any part is. */
static void check_tensor(struct model *m, const struct parameter *p)
{
    float *values = m->clip->parameters->values + p->offset;
    const float *gradient = m->clip->parameters->gradients + p->offset;
    double norm = 0;
    for (size_t i = 0; i < p->size; i++)
        norm += (double)gradient[i] * (double)gradient[i];
    norm = sqrt(norm);
    if (strcmp(p->name, "logit_scale") == 0)
        return;
    if (!(norm > 1e-6))
        fail_msg("%s: no gradient", p->name);
    float *saved = malloc(p->size * sizeof *saved);
    memcpy(saved, values, p->size * sizeof *saved);
    double loss[2];
    for (int side = 0; side < 2; side++) {
        float h = (side == 0 ? 1.0f : -1.0f) * 0.01f / (float)norm;
        for (size_t i = 0; i < p->size; i++)
            values[i] = saved[i] + h * gradient[i];
        loss[side] = (double)loss_of(m, false);
    }
    memcpy(values, saved, p->size * sizeof *saved);
    free(saved);
    double numeric = (loss[0] - loss[1]) / 0.02, deviation = fabs(numeric - norm);
    if (!(deviation < 0.02 * norm + 2e-4))
        fail_msg("%s: gradient %g along itself, central difference %g", p->name, norm, numeric);
}

static void check_all(enum activation activation, bool drop_patches)
{
    struct model m;
    open_model(&m, activation);
    m.drop_patches = drop_patches;
    loss_of(&m, true);
    for (size_t i = 0; i < m.clip->parameters->count; i++)
        check_tensor(&m, &m.clip->parameters->list[i]);
    close_model(&m);
}

static void gradients_match_differences(void **state)
{
    (void)state;
    check_all(ACTIVATION_QUICK_GELU, false);
}

static void gradients_match_with_gelu_and_dropped_patches(void **state)
{
    (void)state;
    check_all(ACTIVATION_GELU, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(gradients_match_with_gelu_and_dropped_patches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
