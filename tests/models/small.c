#include "tests/models/small.h"

#include <string.h>

#include "models/class_head.h"
#include "tests/models/initialize.h"

const struct clip_dimensions small_dimensions = {.embed = 8,
                                                 .resolution = 12,
                                                 .patch = 4,
                                                 .image_width = 64,
                                                 .image_hidden = 256,
                                                 .image_heads = 1,
                                                 .image_blocks = 2,
                                                 .context = 6,
                                                 .vocabulary = 11,
                                                 .text_width = 128,
                                                 .text_hidden = 512,
                                                 .text_heads = 2,
                                                 .text_blocks = 2};

const struct clip_dimensions vit_b_16 = {.embed = 512,
                                         .resolution = 224,
                                         .patch = 16,
                                         .image_width = 768,
                                         .image_hidden = 3072,
                                         .image_heads = 12,
                                         .image_blocks = 12,
                                         .context = 77,
                                         .vocabulary = 49408,
                                         .text_width = 512,
                                         .text_hidden = 2048,
                                         .text_heads = 8,
                                         .text_blocks = 12};

const int32_t small_tokens[SMALL_PROMPTS * 6] = {9, 1, 2, 10, 0,  0, 9, 3, 10, 0,  0, 0,
                                                 9, 4, 4, 5,  10, 0, 9, 7, 1,  10, 0, 0};

void small_disturb(struct device *d, struct parameters *group, float deviation)
{
    size_t bytes = group->values_count * sizeof(float);
    float *values = from_device(d, group->values, bytes);
    const float *noise = draw(d, group->values_count, deviation).host;
    for (size_t i = 0; i < group->values_count; i++)
        values[i] += noise[i];
    must(d->ops->upload(d->backend, parameters_write_all(group), values, bytes, &error));
}

void small_open_of(struct small *s, size_t threads, enum parameters_mode mode, enum activation activation,
                   const struct clip_dimensions *dimensions)
{
    *s = (struct small){0};
    device_open(&s->d, threads);
    must(s->d.ops->arena_create(s->d.backend, &s->step, (size_t)1 << 30, "step", &error));
    must(clip_create(&s->clip, s->d.backend, &s->d.memory, dimensions, mode, activation, &error));
    must(clip_initialize(s->clip, 3, &error));
    small_disturb(&s->d, s->clip->parameters, 0.05f);
    int32_t labels[SMALL_IMAGES];
    for (int b = 0; b < SMALL_IMAGES; b++)
        labels[b] = (b + 1) % SMALL_PROMPTS;
    const struct step_state state = {.seed = 17, .task = 1, .step = 5, .learning_rate = 1e-2f};
    s->images = draw(&s->d, SMALL_IMAGES * 3 * 12 * 12, 1.0f);
    s->labels = to_device(&s->d, labels, sizeof labels);
    s->state = to_device(&s->d, &state, sizeof state);
    s->loss = room(&s->d, sizeof *s->loss);
}

void small_open(struct small *s, size_t threads, enum parameters_mode mode, enum activation activation)
{
    small_open_of(s, threads, mode, activation, &small_dimensions);
}

void small_open_siglip(struct small *s, size_t threads, enum parameters_mode mode)
{
    struct clip_dimensions dimensions = small_dimensions;
    dimensions.embed = dimensions.image_width;
    dimensions.pool_hidden = 96;
    small_open_of(s, threads, mode, ACTIVATION_GELU_TANH, &dimensions);
}

void small_close(struct small *s)
{
    clip_destroy(s->clip);
    s->d.ops->arena_destroy(s->d.backend, &s->step);
    device_close(&s->d);
}

struct both_passes {
    struct encoding encoding[TOWERS];
    struct texts texts;
    struct tower_pass pass[TOWERS];
};

static void encode(struct small *s, bool training, struct both_passes *p)
{
    struct tensor batch = {.data = s->images.device, .type = TENSOR_F32, .rank = 4, .shape = {SMALL_IMAGES, 3, 12, 12}};
    arena_reset(&s->step);
    for (int t = 0; t < TOWERS; t++)
        p->encoding[t] = (struct encoding){.arena = &s->step,
                                           .training = training,
                                           .hooks = s->hooks[t],
                                           .router = s->router[t],
                                           .attention = s->attention[t],
                                           .state = s->state,
                                           .dropout = s->dropout};
    must(texts_create(&p->texts, s->clip, &s->step, small_tokens, SMALL_PROMPTS, &error));
    must(clip_encode_images(s->clip, &p->encoding[TOWER_IMAGE], &batch, &p->pass[TOWER_IMAGE],
                            &s->features[TOWER_IMAGE], &error));
    must(clip_encode_texts(s->clip, &p->encoding[TOWER_TEXT], &p->texts, &p->pass[TOWER_TEXT], &s->features[TOWER_TEXT],
                           &error));
}

void small_encode(struct small *s)
{
    struct both_passes passes;
    encode(s, false, &passes);
}

const float *small_features(struct small *s, enum tower tower)
{
    small_encode(s);
    return from_device(&s->d, s->features[tower].data, tensor_bytes(&s->features[tower]));
}

void small_expect_parts(struct small *s)
{
    size_t embed = s->clip->dimensions.embed;
    const float *together = small_features(s, TOWER_IMAGE);
    for (size_t first = 0; first < SMALL_IMAGES; first++)
        for (size_t count = 1; first + count <= SMALL_IMAGES; count++) {
            struct tensor features;
            small_encode_images(s, first, count, &features);
            expect_floats(&s->d, "part of a batch", features.data, together + first * embed, count * embed);
        }
}

float *small_values(struct small *s, const struct parameters *group)
{
    return from_device(&s->d, group->values, group->values_count * sizeof(float));
}

void small_clear(struct small *s, struct parameters *group, size_t offset, size_t n)
{
    must(s->d.ops->zero(s->d.backend, parameters_write(group, offset, n), n * sizeof(float), &error));
}

void small_encode_images(struct small *s, size_t first, size_t count, struct tensor *features)
{
    struct tower_pass pass;
    struct encoding encoding = {
        .arena = &s->step, .hooks = s->hooks[TOWER_IMAGE], .attention = s->attention[TOWER_IMAGE], .state = s->state};
    struct tensor batch = {
        .data = s->images.device + first * 3 * 12 * 12, .type = TENSOR_F32, .rank = 4, .shape = {count, 3, 12, 12}};
    arena_reset(&s->step);
    if (s->router[TOWER_IMAGE] != NULL)
        encoding.router = s->router[TOWER_IMAGE] + first;
    must(clip_encode_images(s->clip, &encoding, &batch, &pass, features, &error));
}

float small_loss(struct small *s, bool backward)
{
    struct both_passes p;
    struct class_head c;
    struct tensor dfeatures[TOWERS];
    float loss;
    must(s->d.ops->zero(s->d.backend, s->loss, sizeof *s->loss, &error));
    encode(s, true, &p); /* an adapter may add to the loss */
    must(class_head_logits(s->d.backend, &s->step, &s->features[TOWER_IMAGE], &s->features[TOWER_TEXT], 5.0f, &c,
                           &error));
    must(class_head_loss(s->d.backend, &c, &(struct image_labels){.labels = s->labels}, 0.2f, 1.0f, s->loss, &error));
    if (backward) {
        must(class_head_backward(s->d.backend, &s->step, &c, &dfeatures[TOWER_IMAGE], &dfeatures[TOWER_TEXT], &error));
        for (int t = 0; t < TOWERS; t++)
            must(clip_encode_backward(s->clip, &p.encoding[t], &p.pass[t], &dfeatures[t], &error));
    }
    must(s->d.ops->download(s->d.backend, &loss, s->loss, sizeof loss, &error));
    return loss;
}

static float loss_of(void *small)
{
    return small_loss(small, false);
}

void small_check_gradient(struct small *s, const char *name, float *values, const float *gradient, size_t n)
{
    check_gradient(&s->d, name, values, gradient, n, loss_of, s);
}
