/* The forms of a ViT with a linear head: every gradient against central differences of the loss, CLIP's image tower in it,
 * blocks that share weights, and how many weights there are. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/vit.h"
#include "tests/models/backend/reference.h"
#include "tests/models/clip/groups.h"
#include "tests/models/vit.h"

enum { IMAGES = SMALL_IMAGES, CLASSES = 5 };

/* A ViT in the place of the small model's CLIP, and its head. */
struct model {
    struct small s;
    struct linear_head *head;
    struct image_labels labels;
};

#define SIZES .resolution = 12, .patch = 4, .width = 64, .hidden = 128, .heads = 1
static const struct vit_settings plain = {SIZES, .blocks = 2, .activation = ACTIVATION_GELU},
                                 of_patches = {SIZES, .blocks = 2, .activation = ACTIVATION_GELU,
                                               .pool = POOL_MEAN_PATCHES};

static void open_model(struct model *m, size_t threads, const struct vit_settings *settings)
{
    static const int32_t labels[IMAGES] = {1, 4, 0}, others[IMAGES] = {3, 4, 2};
    static const float shares[IMAGES] = {0.3f, 0.6f, 1.0f};
    struct device *d = &m->s.d;
    m->s = (struct small){0};
    device_open(d, threads);
    must(d->ops->arena_create(d->backend, &m->s.step, (size_t)1 << 28, "step", &error));
    must(vit_create(&m->s.clip, d->backend, &d->memory, settings, PARAMETERS_TRAINED, &error));
    must(linear_head_create(&m->head, d->backend, &d->memory, settings->width, CLASSES, PARAMETERS_TRAINED, &error));
    must(vit_initialize(m->s.clip, 3, &error));
    must(linear_head_initialize(m->head, 3, &error));
    small_disturb(d, m->s.clip->parameters, 0.1f);
    small_disturb(d, m->head->parameters, 0.1f);
    m->s.images = draw(d, IMAGES * 3 * 12 * 12, 1.0f);
    m->s.state = to_device(d, &(struct step_state){.seed = 5, .task = 1, .step = 7}, sizeof *m->s.state);
    m->s.loss = room(d, sizeof *m->s.loss);
    m->labels = (struct image_labels){.labels = to_device(d, labels, sizeof labels),
                                      .others = to_device(d, others, sizeof others),
                                      .shares = to_device(d, shares, sizeof shares)};
}

static void close_model(struct model *m)
{
    linear_head_destroy(m->head);
    small_close(&m->s);
}

static void with_model(const struct vit_settings *settings, void (*body)(struct model *m))
{
    struct model m;
    open_model(&m, 2, settings);
    body(&m);
    close_model(&m);
}
#define MODEL_TEST(name, settings)                                                                                     \
    static void name##_with(struct model *m);                                                                          \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        with_model(settings, name##_with);                                                                             \
    }                                                                                                                  \
    static void name##_with(struct model *m)

/* Images first … of the batch in training. */
static void encode_from(struct model *m, size_t first, struct encoding *encoding, struct tower_pass *pass)
{
    struct small *s = &m->s;
    struct tensor batch = {.data = s->images.device + first * 3 * 12 * 12,
                           .type = TENSOR_F32,
                           .rank = 4,
                           .shape = {IMAGES - first, 3, 12, 12}};
    *encoding = (struct encoding){
        .arena = &s->step, .training = true, .state = s->state, .first = first, .dropout = s->dropout};
    arena_reset(&s->step);
    must(clip_encode_images(s->clip, encoding, &batch, pass, &s->features[TOWER_IMAGE], &error));
}

static float loss_of(struct model *m, bool backward)
{
    struct small *s = &m->s;
    struct encoding encoding;
    struct tower_pass pass;
    struct linear_pass scores;
    struct tensor dfeatures;
    float loss;
    must(s->d.ops->zero(s->d.backend, s->loss, sizeof *s->loss, &error));
    encode_from(m, 0, &encoding, &pass);
    must(linear_head_logits(m->head, &s->step, &s->features[TOWER_IMAGE], &scores, &error));
    must(linear_head_loss(m->head, &scores, &m->labels, 0.1f, 1.0f, s->loss, &error));
    if (backward) {
        must(linear_head_backward(m->head, &s->step, &scores, &dfeatures, &error));
        must(clip_encode_backward(s->clip, &encoding, &pass, &dfeatures, &error));
    }
    must(s->d.ops->download(s->d.backend, &loss, s->loss, sizeof loss, &error));
    return loss;
}

static float forward_loss(void *model)
{
    return loss_of(model, false);
}

/* What is dropped follows from the step, so a forward pass again drops the same. */
TEST(gradients_match_differences)
{
    static const struct {
        struct vit_settings form;
        float dropout;
    } cases[] = {
        {{SIZES, .blocks = 2, .activation = ACTIVATION_GELU}, 0},
        {{SIZES, .blocks = 2, .activation = ACTIVATION_GELU}, 0.3f},
        {{SIZES, .blocks = 2, .activation = ACTIVATION_GELU, .pool = POOL_MEAN_PATCHES}, 0},
        {{SIZES, .blocks = 2, .activation = ACTIVATION_QUICK_GELU, .pool = POOL_MEAN_PATCHES, .ln_pre = true}, 0},
        {{SIZES, .blocks = 2, .activation = ACTIVATION_GELU, .pool = POOL_MEAN_PATCHES, .ln_pre = true,
          .share_groups = 1},
         0.3f},
        {{SIZES, .blocks = 4, .activation = ACTIVATION_GELU, .pool = POOL_MEAN_PATCHES, .share_groups = 1}, 0},
        {{SIZES, .blocks = 4, .activation = ACTIVATION_GELU, .pool = POOL_MEAN_PATCHES, .share_groups = 2,
          .share_norms = true},
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m;
        open_model(&m, 2, &cases[i].form);
        m.s.dropout = cases[i].dropout;
        assert_int_equal(m.s.clip->parameters->flags_count, CLIP_FLAGS); /* who trains a struct clip sets all of them */
        assert_float_equal(loss_of(&m, true), loss_of(&m, false), 0);
        check_gradients(&m.s.d, "", m.s.clip->parameters, forward_loss, &m);
        check_gradients(&m.s.d, "", m.head->parameters, forward_loss, &m);
        close_model(&m);
    }
}

/* The same at the same step, something else at another one. */
MODEL_TEST(dropout_depends_on_the_step, &plain)
{
    float without = loss_of(m, false), first;
    m->s.dropout = 0.3f;
    first = loss_of(m, false);
    assert_float_equal(first, loss_of(m, false), 0);
    assert_true(fabsf(first - without) > 1e-4f);
    m->s.state = to_device(&m->s.d, &(struct step_state){.seed = 5, .task = 1, .step = 8}, sizeof *m->s.state);
    assert_true(fabsf(loss_of(m, false) - first) > 1e-4f);
}

/* Of a share of the batch as of the whole: what is dropped goes by the number of the image in the batch. */
MODEL_TEST(shares_of_a_batch_drop_the_same, &plain)
{
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor *features = &m->s.features[TOWER_IMAGE];
    m->s.dropout = 0.3f;
    encode_from(m, 0, &encoding, &pass);
    const float *all = from_device(&m->s.d, features->data, tensor_bytes(features));
    encode_from(m, 1, &encoding, &pass);
    expect_floats(&m->s.d, "features of a share", features->data, all + plain.width, 2 * plain.width);
}

static uint64_t bits_of(size_t threads)
{
    struct model m;
    open_model(&m, threads, &of_patches);
    loss_of(&m, true);
    digest_gradients(&m.s.d, m.s.clip->parameters);
    digest_gradients(&m.s.d, m.head->parameters);
    uint64_t bits = m.s.d.bits;
    close_model(&m);
    return bits;
}

TEST(bits_do_not_depend_on_threads)
{
    expect_same_bits(bits_of);
}

/* The mean over rows 1 … of the last block's output after the final norm, in plain loops. */
MODEL_TEST(features_are_the_mean_of_the_patches, &of_patches)
{
    enum { POSITIONS = 10, WIDTH = 64 };
    struct device *d = &m->s.d;
    struct encoding encoding;
    struct tower_pass pass;
    encode_from(m, 0, &encoding, &pass);
    const struct layer_norm_weights *norm = &m->s.clip->towers[TOWER_IMAGE].ln_final;
    struct matrix last =
        matrix_rows(from_device(d, pass.last.data, tensor_bytes(&pass.last)), IMAGES * POSITIONS, WIDTH);
    double *y = doubles(d, NULL, IMAGES * POSITIONS * WIDTH), *statistics = doubles(d, NULL, 2 * IMAGES * POSITIONS),
           *means = doubles(d, NULL, IMAGES * WIDTH);
    reference_layer_norm(y, statistics, last, from_device(d, norm->gain.value, WIDTH * sizeof(float)),
                         from_device(d, norm->bias.value, WIDTH * sizeof(float)));
    for (size_t b = 0; b < IMAGES; b++)
        for (size_t l = 1; l < POSITIONS; l++)
            for (size_t k = 0; k < WIDTH; k++)
                means[b * WIDTH + k] += y[(b * POSITIONS + l) * WIDTH + k] / (POSITIONS - 1);
    expect_close(d, "features", m->s.features[TOWER_IMAGE].data, means, IMAGES * WIDTH, 1e-5);
}

/* The loss is linear in the shares: that of both labels, each by its part. */
MODEL_TEST(mixed_images_have_the_losses_of_both, &plain)
{
    static const float all[IMAGES] = {1, 1, 1}, some[IMAGES] = {0.25f, 0.25f, 0.25f};
    struct image_labels labels = m->labels;
    m->labels = (struct image_labels){.labels = labels.labels};
    double first = (double)loss_of(m, false);
    m->labels.labels = labels.others;
    double second = (double)loss_of(m, false);
    m->labels = labels;
    m->labels.shares = to_device(&m->s.d, some, sizeof some);
    assert_float_equal(loss_of(m, false), 0.25 * first + 0.75 * second, 1e-5);
    m->labels.shares = to_device(&m->s.d, all, sizeof all);
    assert_float_equal(loss_of(m, false), first, 0);
}

/* Whose norms are not shared. */
TEST(blocks_that_share_are_blocks_with_equal_weights)
{
    struct vit_settings form = plain;
    form.blocks = 4;
    struct model apart, shared;
    open_model(&apart, 2, &form);
    form.share_groups = 2;
    open_model(&shared, 2, &form);
    struct device *d = &apart.s.d;
    const struct parameters *one = shared.s.clip->parameters;
    for (size_t block = 0; block < 4; block++) {
        char name[64];
        snprintf(name, sizeof name, "visual.transformer.resblocks.%zu.ln_2.bias", block);
        assert_non_null(parameters_find(one, name));
    }
    group_spread(d, one, apart.s.clip->parameters, 2);
    group_spread(d, shared.head->parameters, apart.head->parameters, 1);
    apart.s.images = shared.s.images;
    loss_of(&shared, true);
    loss_of(&apart, true);
    const struct tensor *features = &shared.s.features[TOWER_IMAGE];
    expect_floats(d, "features", apart.s.features[TOWER_IMAGE].data,
                  from_device(&shared.s.d, features->data, tensor_bytes(features)), IMAGES * 64);
    expect_sums_of_gradients(d, one, apart.s.clip->parameters, 2, 1e-5);
    close_model(&apart);
    close_model(&shared);
}

/* ---- how many weights ---- */

static size_t weights_of(const struct vit_settings *settings, size_t classes)
{
    struct device d;
    struct clip *vit;
    struct linear_head *head;
    device_open(&d, 1);
    must(vit_create(&vit, d.backend, &d.memory, settings, PARAMETERS_FROZEN, &error));
    must(linear_head_create(&head, d.backend, &d.memory, settings->width, classes, PARAMETERS_FROZEN, &error));
    size_t size = parameters_size(vit->parameters) + parameters_size(head->parameters);
    clip_destroy(vit);
    linear_head_destroy(head);
    device_close(&d);
    return size;
}

/* As timm counts vit_tiny_patch16_224. */
TEST(weights_of_vit_tiny)
{
    const struct vit_settings tiny = {224, 16, 192, 768, 3, 12, .activation = ACTIVATION_GELU};
    assert_int_equal(weights_of(&tiny, 1000), 5717416);
}

/* One attention, one MLP, two norms a block, the embeddings, the final norm, the head. */
static size_t widenet_weights(const struct vit_settings *s, size_t classes)
{
    size_t d = s->width, grid = s->resolution / s->patch;
    size_t attention = 4 * d * d + 4 * d, mlp = 2 * d * s->hidden + s->hidden + d,
           embeddings = 3 * s->patch * s->patch * d + d + d + (grid * grid + 1) * d;
    return s->share_groups * (attention + mlp) + (s->share_norms ? s->share_groups : s->blocks) * 2 * 2 * d +
           embeddings + 2 * d + (d + 1) * classes;
}

TEST(weights_of_widenet)
{
    struct vit_settings form = plain;
    form.blocks = 12;
    for (form.share_groups = 1; form.share_groups <= 4; form.share_groups++)
        for (int norms_too = 0; norms_too < 2; norms_too++) {
            form.share_norms = norms_too;
            assert_int_equal(weights_of(&form, 10), widenet_weights(&form, 10));
        }
    /* Four experts have the weights of one MLP with four times as many hidden units. Xue et al. 2022: WideNet-L, 40
     * million on ImageNet. */
    const struct vit_settings large = {
        224, 16, 1024, 4 * 4096, 16, 24, .activation = ACTIVATION_GELU, .pool = POOL_MEAN_PATCHES, .share_groups = 1};
    assert_int_equal(weights_of(&large, 1000), widenet_weights(&large, 1000));
    assert_int_equal((widenet_weights(&large, 1000) + 500000) / 1000000, 40);
}

/* ---- CLIP's image tower ---- */

static struct clip *copy_tower(struct small *s, enum pool pool)
{
    struct vit_settings settings = vit_settings_of(s->clip);
    struct clip *vit;
    settings.pool = pool;
    must(vit_create(&vit, s->d.backend, &s->d.memory, &settings, PARAMETERS_FROZEN, &error));
    must(vit_copy_image_tower(vit, s->clip, &error));
    return vit;
}

static void encode(struct small *s, struct clip *model, bool whole, struct tower_pass *pass, struct tensor *features)
{
    struct encoding encoding = {.arena = &s->step, .whole = whole};
    struct tensor batch = {.data = s->images.device, .type = TENSOR_F32, .rank = 4, .shape = {IMAGES, 3, 12, 12}};
    must(clip_encode_images(model, &encoding, &batch, pass, features, &error));
}

SMALL_TEST(image_tower_of_clip_has_its_features, 2)
{
    struct clip *tokens = copy_tower(s, POOL_CLASS_TOKEN), *means = copy_tower(s, POOL_MEAN_PATCHES);
    struct tower_pass pass;
    struct tensor features, expected;
    size_t visual = 0;
    for (size_t i = 0; i < s->clip->parameters->count; i++)
        visual += strncmp(s->clip->parameters->list[i].name, "visual.", 7) == 0;
    assert_int_equal(means->parameters->count, visual - 1); /* all but the projection */

    encode(s, s->clip, true, &pass, &expected);
    must(clip_mean_patches(s->clip, &s->step, &pass, &expected, &error));
    encode(s, means, false, &pass, &features);
    expect_floats(&s->d, "mean of the patches", features.data,
                  from_device(&s->d, expected.data, tensor_bytes(&expected)), IMAGES * 64);

    encode(s, s->clip, false, &pass, &expected);
    const float *normal = from_device(&s->d, pass.normal.data, tensor_bytes(&pass.normal));
    encode(s, tokens, false, &pass, &features);
    expect_floats(&s->d, "class token before CLIP's projection", features.data, normal, IMAGES * 64);
    clip_destroy(tokens);
    clip_destroy(means);
}

/* The 4 x 4 numbers from 1 on at twice the side: ONNX's example of a cubic resize, which is PyTorch's bicubic. */
TEST(positions_are_interpolated)
{
    static const float expected[2][8] = {
        {0.47265625f, 0.76953125f, 1.24609375f, 1.875f, 2.28125f, 2.91015625f, 3.38671875f, 3.68359375f},
        {1.66015625f, 1.95703125f, 2.43359375f, 3.0625f, 3.46875f, 4.09765625f, 4.57421875f, 4.87109375f}};
    float from[16][2], to[64][2];
    for (size_t i = 0; i < 16; i++) {
        from[i][0] = (float)(i + 1);
        from[i][1] = -3;
    }
    vit_resize_grid(from[0], 4, to[0], 8, 2);
    for (size_t i = 0; i < 64; i++) {
        float reference = i < 32 ? expected[i / 8 % 2][i % 8] : 17 - to[63 - i][0];
        if (i < 16 || i >= 32)
            assert_true(fabsf(to[i][0] - reference) < 1e-5f);
        assert_true(fabsf(to[i][1] + 3) < 1e-5f);
    }
}

/* A ViT has a class token or the patches' mean, so it cannot take a SigLIP's tower. */
TEST(image_tower_of_another_form_is_refused)
{
    for (int siglip = 0; siglip < 2; siglip++) {
        struct small s;
        struct clip *vit;
        if (siglip)
            small_open_siglip(&s, 1, PARAMETERS_FROZEN);
        else
            small_open(&s, 1, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
        struct vit_settings settings = vit_settings_of(s.clip);
        settings.hidden = siglip ? settings.hidden : 128;
        settings.pool = POOL_CLASS_TOKEN;
        must(vit_create(&vit, s.d.backend, &s.d.memory, &settings, PARAMETERS_FROZEN, &error));
        must_refuse(vit_copy_image_tower(vit, s.clip, &error), ERROR_ARGUMENT, siglip ? "SigLIP" : "256 hidden units",
                    siglip ? "" : "128 hidden units");
        clip_destroy(vit);
        small_close(&s);
    }
}

/* ---- the start ---- */

static double deviation_of(struct device *d, const struct parameters *group, const char *name, double *largest)
{
    const struct parameter *p = parameters_find(group, name);
    assert_non_null(p);
    const float *values = from_device(d, group->values + p->offset, p->size * sizeof *values);
    double squares = 0;
    *largest = 0;
    for (size_t i = 0; i < p->size; i++) {
        squares += (double)values[i] * (double)values[i];
        *largest = fmax(*largest, fabs((double)values[i]));
    }
    return sqrt(squares / (double)p->size);
}

MODEL_TEST(weights_start_as_timm_does, &plain)
{
    static const struct {
        const char *name;
        double deviation, most;
    } expected[] = {
        {"visual.conv1.weight", 0.1443 / 1.7320508, 0.14434}, /* uniform in ± 1/√48 */
        {"visual.positional_embedding", 0.02, 1},
        {"visual.class_embedding", 1e-6, 1e-5},
        {"visual.transformer.resblocks.1.attn.in_proj_weight", 0.02, 1},
        {"visual.transformer.resblocks.1.mlp.c_proj.weight", 0.02, 1},
        {"visual.transformer.resblocks.1.mlp.c_proj.bias", 0, 0},
        {"visual.transformer.resblocks.1.ln_2.weight", 1, 1},
        {"visual.transformer.resblocks.1.ln_2.bias", 0, 0},
    };
    struct device *d = &m->s.d;
    struct linear_head *head;
    must(vit_initialize(m->s.clip, 5, &error));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        double largest, found = deviation_of(d, m->s.clip->parameters, expected[i].name, &largest);
        if (!(fabs(found - expected[i].deviation) <= 0.2 * expected[i].deviation && largest <= expected[i].most))
            fail_msg("%s: deviation %g, largest %g", expected[i].name, found, largest);
    }
    must(linear_head_create(&head, d->backend, &d->memory, 64, CLASSES, PARAMETERS_FROZEN, &error));
    const float *zeros = from_device(d, room(d, 64 * CLASSES * sizeof *zeros), 64 * CLASSES * sizeof *zeros);
    for (size_t i = 0; i < head->parameters->count; i++)
        expect_floats(d, "fresh head", head->parameters->values + head->parameters->list[i].offset, zeros,
                      head->parameters->list[i].size);
    linear_head_destroy(head);
}

DEVICE_TEST(sizes_that_do_not_fit_are_refused)
{
    static const struct {
        struct vit_settings form;
        const char *words;
    } cases[] = {{{12, 5, 64, 128, 1, 2, .pool = 0}, "multiple of the patch"},
                 {{12, 0, 64, 128, 1, 2, .pool = 0}, "multiple of the patch"},
                 {{12, 4, 64, 128, 3, 2, .pool = 0}, "divides the width"},
                 {{12, 4, 60, 128, 1, 2, .pool = 0}, "multiple of 8"},
                 {{12, 4, 64, 128, 1, 65, .pool = 0}, "1 to 64 blocks"},
                 {{12, 4, 64, 128, 1, 12, .share_groups = 5}, "5 groups of 12 blocks"},
                 {{12, 4, 64, 128, 1, 2, .share_norms = true}, "no groups"}};
    struct clip *vit;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vit_settings form = cases[i].form;
        form.activation = ACTIVATION_GELU;
        must_refuse(vit_create(&vit, d->backend, &d->memory, &form, PARAMETERS_FROZEN, &error), ERROR_ARGUMENT,
                    cases[i].words);
    }
}
