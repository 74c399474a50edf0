/* The forms of a ViT with a linear head: every gradient against central differences of the loss, CLIP's image tower in it,
 * blocks that share weights, and how many weights there are. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/vit.h"
#include "tests/models/backend/reference.h"
#include "tests/models/small.h"
#include "tests/models/vit.h"

enum { IMAGES = 3, CLASSES = 5 };

struct model {
    struct device d;
    struct arena step;
    struct clip *vit;
    struct linear_head *head;
    struct operand images;
    struct image_labels labels;
    float *loss; /* device */
    const struct step_state *state;
    float dropout;
    struct tensor features;
};

#define SIZES .resolution = 12, .patch = 4, .width = 64, .hidden = 128, .heads = 1
static const struct vit_settings plain = {SIZES, .blocks = 2, .activation = ACTIVATION_GELU};

static void open_model(struct model *m, size_t threads, const struct vit_settings *settings)
{
    static const int32_t labels[IMAGES] = {1, 4, 0}, others[IMAGES] = {3, 4, 2};
    static const float shares[IMAGES] = {0.3f, 0.6f, 1.0f};
    *m = (struct model){0};
    device_open(&m->d, threads);
    must(m->d.ops->arena_create(m->d.backend, &m->step, (size_t)1 << 28, "step", &error));
    must(vit_create(&m->vit, m->d.backend, &m->d.memory, settings, PARAMETERS_TRAINED, &error));
    must(
        linear_head_create(&m->head, m->d.backend, &m->d.memory, settings->width, CLASSES, PARAMETERS_TRAINED, &error));
    must(vit_initialize(m->vit, 3, &error));
    must(linear_head_initialize(m->head, 3, &error));
    small_disturb(&m->d, m->vit->parameters, 0.1f);
    small_disturb(&m->d, m->head->parameters, 0.1f);
    m->images = draw(&m->d, IMAGES * 3 * 12 * 12, 1.0f);
    m->labels.labels = to_device(&m->d, labels, sizeof labels);
    m->labels.others = to_device(&m->d, others, sizeof others);
    m->labels.shares = to_device(&m->d, shares, sizeof shares);
    m->loss = room(&m->d, sizeof *m->loss);
    m->state = to_device(&m->d, &(struct step_state){.seed = 5, .task = 1, .step = 7}, sizeof *m->state);
}

static void close_model(struct model *m)
{
    clip_destroy(m->vit);
    linear_head_destroy(m->head);
    m->d.ops->arena_destroy(m->d.backend, &m->step);
    device_close(&m->d);
}

static struct tensor batch_of(const struct operand *images)
{
    return (struct tensor){.data = images->device, .type = TENSOR_F32, .rank = 4, .shape = {IMAGES, 3, 12, 12}};
}

static float loss_of(struct model *m, bool backward)
{
    struct encoding encoding = {
        .arena = &m->step, .training = true, .state = m->state, .first = 2, .dropout = m->dropout};
    struct tensor batch = batch_of(&m->images);
    struct tower_pass pass;
    struct linear_pass scores;
    struct tensor dfeatures;
    float loss;
    arena_reset(&m->step);
    must(m->d.ops->zero(m->d.backend, m->loss, sizeof *m->loss, &error));
    must(clip_encode_images(m->vit, &encoding, &batch, &pass, &m->features, &error));
    must(linear_head_logits(m->head, &m->step, &m->features, &scores, &error));
    must(linear_head_loss(m->head, &scores, &m->labels, 0.1f, 1.0f, m->loss, &error));
    if (backward) {
        must(linear_head_backward(m->head, &m->step, &scores, &dfeatures, &error));
        must(clip_encode_backward(m->vit, &encoding, &pass, &dfeatures, &error));
    }
    must(m->d.ops->download(m->d.backend, &loss, m->loss, sizeof loss, &error));
    return loss;
}

static float forward_loss(void *model)
{
    return loss_of(model, false);
}

static void check_group(struct model *m, struct parameters *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        check_gradient(&m->d, p->name, parameters_write(group, p->offset, p->size), group->gradients + p->offset,
                       p->size, forward_loss, m);
    }
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
        m.dropout = cases[i].dropout;
        assert_float_equal(loss_of(&m, true), loss_of(&m, false), 0);
        check_group(&m, m.vit->parameters);
        check_group(&m, m.head->parameters);
        close_model(&m);
    }
}

/* The same at the same step, something else at another one. */
TEST(dropout_depends_on_the_step)
{
    struct model m;
    float without, first, again;
    open_model(&m, 2, &plain);
    without = loss_of(&m, false);
    m.dropout = 0.3f;
    first = loss_of(&m, false);
    again = loss_of(&m, false);
    assert_float_equal(first, again, 0);
    assert_true(fabsf(first - without) > 1e-4f);
    m.state = to_device(&m.d, &(struct step_state){.seed = 5, .task = 1, .step = 8}, sizeof *m.state);
    assert_true(fabsf(loss_of(&m, false) - first) > 1e-4f);
    close_model(&m);
}

/* Of a share of the batch as of the whole: what is dropped goes by the number of the image in the batch. */
TEST(shares_of_a_batch_drop_the_same)
{
    struct model m;
    struct tensor features;
    float *values[2];
    open_model(&m, 2, &plain);
    for (size_t first = 0; first < 2; first++) { /* all images, then all but the first */
        struct encoding encoding = {
            .arena = &m.step, .training = true, .state = m.state, .first = first, .dropout = 0.3f};
        struct tensor batch = batch_of(&m.images);
        struct tower_pass pass;
        batch.shape[0] -= first;
        batch.data = (float *)batch.data + first * 3 * 12 * 12;
        arena_reset(&m.step);
        must(clip_encode_images(m.vit, &encoding, &batch, &pass, &features, &error));
        values[first] = from_device(&m.d, features.data, tensor_bytes(&features));
        if (first > 0)
            expect_floats(&m.d, "features of a share", features.data, values[0] + plain.width, 2 * plain.width);
    }
    close_model(&m);
}

static uint64_t bits_of(size_t threads)
{
    struct vit_settings form = plain;
    struct model m;
    form.pool = POOL_MEAN_PATCHES;
    open_model(&m, threads, &form);
    loss_of(&m, true);
    digest(&m.d, m.vit->parameters->gradients, m.vit->parameters->values_count * sizeof(float));
    digest(&m.d, m.head->parameters->gradients, m.head->parameters->values_count * sizeof(float));
    uint64_t bits = m.d.bits;
    close_model(&m);
    return bits;
}

TEST(bits_do_not_depend_on_threads)
{
    expect_same_bits(bits_of);
}

/* The mean over rows 1 … of the last block's output after the final norm, in plain loops. */
TEST(features_are_the_mean_of_the_patches)
{
    enum { POSITIONS = 10, WIDTH = 64 };
    struct vit_settings form = plain;
    struct model m;
    struct tower_pass pass;
    struct encoding encoding = {.arena = &m.step};
    form.pool = POOL_MEAN_PATCHES;
    open_model(&m, 2, &form);
    struct tensor batch = batch_of(&m.images);
    must(clip_encode_images(m.vit, &encoding, &batch, &pass, &m.features, &error));
    const struct layer_norm_weights *norm = &m.vit->towers[TOWER_IMAGE].ln_final;
    struct matrix last =
        matrix_rows(from_device(&m.d, pass.last.data, tensor_bytes(&pass.last)), IMAGES * POSITIONS, WIDTH);
    double *y = doubles(&m.d, NULL, IMAGES * POSITIONS * WIDTH),
           *statistics = doubles(&m.d, NULL, 2 * IMAGES * POSITIONS), *means = doubles(&m.d, NULL, IMAGES * WIDTH);
    reference_layer_norm(y, statistics, last, from_device(&m.d, norm->gain.value, WIDTH * sizeof(float)),
                         from_device(&m.d, norm->bias.value, WIDTH * sizeof(float)));
    for (size_t b = 0; b < IMAGES; b++)
        for (size_t l = 1; l < POSITIONS; l++)
            for (size_t k = 0; k < WIDTH; k++)
                means[b * WIDTH + k] += y[(b * POSITIONS + l) * WIDTH + k] / (POSITIONS - 1);
    expect_close(&m.d, "features", m.features.data, means, IMAGES * WIDTH, 1e-5);
    close_model(&m);
}

/* The loss is linear in the shares: that of both labels, each by its part. */
TEST(mixed_images_have_the_losses_of_both)
{
    struct model m;
    static const float all[IMAGES] = {1, 1, 1}, some[IMAGES] = {0.25f, 0.25f, 0.25f};
    open_model(&m, 1, &plain);
    struct image_labels labels = m.labels;
    m.labels = (struct image_labels){.labels = labels.labels};
    double first = (double)loss_of(&m, false);
    m.labels.labels = labels.others;
    double second = (double)loss_of(&m, false);
    m.labels = labels;
    m.labels.shares = to_device(&m.d, some, sizeof some);
    assert_float_equal(loss_of(&m, false), 0.25 * first + 0.75 * second, 1e-5);
    m.labels.shares = to_device(&m.d, all, sizeof all);
    assert_float_equal(loss_of(&m, false), first, 0);
    close_model(&m);
}

/* ---- sharing ---- */

static const struct parameter *tensor_of(const struct clip *vit, size_t block, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "visual.transformer.resblocks.%zu.%s", block, name);
    const struct parameter *p = parameters_find(vit->parameters, full);
    assert_non_null(p);
    return p;
}

static void copy_tensor(struct model *to, const struct parameter *into, const struct model *from,
                        const struct parameter *of)
{
    float *values = from_device(&to->d, room(&to->d, of->size * sizeof(float)), of->size * sizeof(float));
    must(parameters_download(from->vit->parameters, of, values, &error));
    must(parameters_upload(to->vit->parameters, into, values, &error));
}

static const char *const norms[] = {"ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"};
static const char *const modules[] = {"attn.in_proj_weight", "attn.in_proj_bias", "attn.out_proj.weight",
                                      "attn.out_proj.bias",  "mlp.c_fc.weight",   "mlp.c_fc.bias",
                                      "mlp.c_proj.weight",   "mlp.c_proj.bias"};

/* The model without sharing, with the weights of the shared one in every block of a run. */
static void spread(struct model *all, const struct model *shared, size_t run)
{
    for (size_t i = 0; i < shared->vit->parameters->count; i++) {
        const struct parameter *p = &shared->vit->parameters->list[i];
        copy_tensor(all, parameters_find(all->vit->parameters, p->name), shared, p);
    }
    for (size_t block = 0; block < all->vit->towers[TOWER_IMAGE].count; block++)
        for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
            copy_tensor(all, tensor_of(all->vit, block, modules[i]), shared,
                        tensor_of(shared->vit, block - block % run, modules[i]));
}

static void expect_sums_of_gradients(struct model *all, struct model *shared, size_t run)
{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        for (size_t leader = 0; leader < 4; leader += run) {
            const struct parameter *p = tensor_of(shared->vit, leader, modules[i]);
            double *sum = doubles(&all->d, NULL, p->size);
            for (size_t block = leader; block < leader + run; block++) {
                const float *each = from_device(
                    &all->d, all->vit->parameters->gradients + tensor_of(all->vit, block, modules[i])->offset,
                    p->size * sizeof *each);
                for (size_t k = 0; k < p->size; k++)
                    sum[k] += (double)each[k];
            }
            expect_close(&shared->d, p->name, shared->vit->parameters->gradients + p->offset, sum, p->size, 1e-5);
        }
}

TEST(blocks_that_share_are_blocks_with_equal_weights)
{
    struct vit_settings form = plain;
    form.blocks = 4;
    struct model all, shared;
    open_model(&all, 2, &form);
    form.share_groups = 2;
    open_model(&shared, 2, &form);
    spread(&all, &shared, 2);
    must(all.d.ops->copy(all.d.backend, all.images.device, shared.images.device, IMAGES * 3 * 12 * 12 * sizeof(float),
                         &error));
    must(all.d.ops->copy(all.d.backend, parameters_write_all(all.head->parameters), shared.head->parameters->values,
                         all.head->parameters->values_count * sizeof(float), &error));
    loss_of(&shared, true);
    loss_of(&all, true);
    expect_floats(&all.d, "features", all.features.data,
                  from_device(&shared.d, shared.features.data, tensor_bytes(&shared.features)), IMAGES * 64);
    expect_sums_of_gradients(&all, &shared, 2);
    for (size_t block = 0; block < 4; block++) /* norms are not shared */
        for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
            assert_non_null(tensor_of(shared.vit, block, norms[i]));
    close_model(&all);
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
    const struct vit_settings tiny = {.resolution = 224,
                                      .patch = 16,
                                      .width = 192,
                                      .hidden = 768,
                                      .heads = 3,
                                      .blocks = 12,
                                      .activation = ACTIVATION_GELU};
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
    const struct vit_settings large = {.resolution = 224,
                                       .patch = 16,
                                       .width = 1024,
                                       .hidden = 4 * 4096,
                                       .heads = 16,
                                       .blocks = 24,
                                       .activation = ACTIVATION_GELU,
                                       .pool = POOL_MEAN_PATCHES,
                                       .share_groups = 1};
    assert_int_equal(weights_of(&large, 1000), widenet_weights(&large, 1000));
    assert_int_equal((widenet_weights(&large, 1000) + 500000) / 1000000, 40);
}

/* ---- CLIP's image tower ---- */

static void open_tower(struct clip **vit, struct small *s, enum pool pool)
{
    struct vit_settings settings = vit_settings_of(s->clip);
    settings.pool = pool;
    must(vit_create(vit, s->d.backend, &s->d.memory, &settings, PARAMETERS_FROZEN, &error));
    must(vit_copy_image_tower(*vit, s->clip, &error));
}

static void encode(struct small *s, struct clip *model, bool whole, struct tower_pass *pass, struct tensor *features)
{
    struct encoding encoding = {.arena = &s->step, .whole = whole};
    struct tensor batch = batch_of(&s->images);
    must(clip_encode_images(model, &encoding, &batch, pass, features, &error));
}

TEST(image_tower_of_clip_has_its_features)
{
    struct small s;
    struct clip *tokens, *means;
    struct tower_pass pass;
    struct tensor features, expected;
    small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    open_tower(&tokens, &s, POOL_CLASS_TOKEN);
    open_tower(&means, &s, POOL_MEAN_PATCHES);
    size_t visual = 0;
    for (size_t i = 0; i < s.clip->parameters->count; i++)
        visual += strncmp(s.clip->parameters->list[i].name, "visual.", 7) == 0;
    assert_int_equal(means->parameters->count, visual - 1); /* all but the projection */

    encode(&s, s.clip, true, &pass, &expected);
    must(clip_mean_patches(s.clip, &s.step, &pass, &expected, &error));
    encode(&s, means, false, &pass, &features);
    expect_floats(&s.d, "mean of the patches", features.data, from_device(&s.d, expected.data, tensor_bytes(&expected)),
                  IMAGES * 64);

    encode(&s, s.clip, false, &pass, &expected);
    const float *normal = from_device(&s.d, pass.normal.data, tensor_bytes(&pass.normal));
    encode(&s, tokens, false, &pass, &features);
    expect_floats(&s.d, "class token before CLIP's projection", features.data, normal, IMAGES * 64);
    clip_destroy(tokens);
    clip_destroy(means);
    small_close(&s);
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

TEST(image_tower_of_another_form_is_refused)
{
    struct small s;
    struct clip *vit;
    small_open(&s, 1, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    struct vit_settings settings = vit_settings_of(s.clip);
    settings.hidden = 128;
    must(vit_create(&vit, s.d.backend, &s.d.memory, &settings, PARAMETERS_FROZEN, &error));
    must_refuse(vit_copy_image_tower(vit, s.clip, &error), ERROR_ARGUMENT, "256 hidden units", "128 hidden units");
    clip_destroy(vit);
    small_close(&s);
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

TEST(weights_start_as_timm_does)
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
    struct device d;
    struct clip *vit;
    struct linear_head *head;
    double largest;
    device_open(&d, 1);
    must(vit_create(&vit, d.backend, &d.memory, &plain, PARAMETERS_FROZEN, &error));
    must(linear_head_create(&head, d.backend, &d.memory, 64, 50, PARAMETERS_FROZEN, &error));
    must(vit_initialize(vit, 5, &error));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        double found = deviation_of(&d, vit->parameters, expected[i].name, &largest);
        if (!(fabs(found - expected[i].deviation) <= 0.2 * expected[i].deviation && largest <= expected[i].most))
            fail_msg("%s: deviation %g, largest %g", expected[i].name, found, largest);
    }
    assert_true(deviation_of(&d, head->parameters, "head.weight", &largest) == 0);
    must(linear_head_initialize(head, 5, &error));
    assert_true(fabs(deviation_of(&d, head->parameters, "head.weight", &largest) - 0.02) < 0.002);
    assert_true(deviation_of(&d, head->parameters, "head.bias", &largest) == 0);
    clip_destroy(vit);
    linear_head_destroy(head);
    device_close(&d);
}

/* Who trains a struct clip sets all its flags. */
TEST(flags_are_those_of_a_clip)
{
    struct model m;
    open_model(&m, 1, &plain);
    assert_int_equal(m.vit->parameters->flags_count, CLIP_FLAGS);
    close_model(&m);
}

TEST(sizes_that_do_not_fit_are_refused)
{
    static const struct {
        size_t patch, width, heads, blocks, share_groups;
        bool share_norms;
        const char *words;
    } cases[] = {{5, 64, 1, 2, 0, false, "multiple of the patch"},
                 {0, 64, 1, 2, 0, false, "multiple of the patch"},
                 {4, 64, 3, 2, 0, false, "divides the width"},
                 {4, 60, 1, 2, 0, false, "multiple of 8"},
                 {4, 64, 1, 65, 0, false, "1 to 64 blocks"},
                 {4, 64, 1, 12, 5, false, "5 groups of 12 blocks"},
                 {4, 64, 1, 2, 0, true, "no groups"}};
    struct device d;
    struct clip *vit;
    device_open(&d, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vit_settings s = plain;
        s.patch = cases[i].patch;
        s.width = cases[i].width;
        s.heads = cases[i].heads;
        s.blocks = cases[i].blocks;
        s.share_groups = cases[i].share_groups;
        s.share_norms = cases[i].share_norms;
        must_refuse(vit_create(&vit, d.backend, &d.memory, &s, PARAMETERS_FROZEN, &error), ERROR_ARGUMENT,
                    cases[i].words);
    }
    device_close(&d);
}
