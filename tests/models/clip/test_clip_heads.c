/* A model whose heads have the widths of ViT-H, g and bigG, and MLPs of another width than four times its own: its block
 * against plain loops, and its weights through a file. */
#include "models/clip.h"
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"
#include "tests/models/files/tensor_set.h"
#include "tests/models/initialize.h"

enum { BATCH = 2, POSITIONS = 5 };

static struct clip_dimensions dimensions_of(size_t head)
{
    return (struct clip_dimensions){.embed = 8,
                                    .resolution = 8,
                                    .patch = 4,
                                    .image_width = 2 * head,
                                    .image_hidden = 5 * head,
                                    .image_heads = 2,
                                    .image_blocks = 1,
                                    .context = 6,
                                    .vocabulary = 11,
                                    .text_width = 2 * head,
                                    .text_hidden = 3 * head,
                                    .text_heads = 2,
                                    .text_blocks = 1};
}

static struct clip *open_clip(struct device *d, size_t head)
{
    struct clip_dimensions dimensions = dimensions_of(head);
    struct clip *clip;
    must(clip_create(&clip, d->backend, &d->memory, &dimensions, PARAMETERS_FROZEN, ACTIVATION_GELU, &error));
    must(clip_initialize(clip, 3, &error));
    return clip;
}

/* ---- a block in plain loops ---- */

static const float *weights(struct device *d, const struct weight *weight, size_t n)
{
    return from_device(d, weight->value, n * sizeof(float));
}

static float *floats(struct device *d, const double *values, size_t n)
{
    float *rounded_values = host_room(d, n * sizeof *rounded_values);
    for (size_t i = 0; i < n; i++)
        rounded_values[i] = (float)values[i];
    return rounded_values;
}

static float *plain_norm(struct device *d, const struct layer_norm_weights *norm, float *x, size_t rows, size_t width)
{
    double *y = doubles(d, NULL, rows * width), *statistics = doubles(d, NULL, 2 * rows);
    reference_layer_norm(y, statistics, matrix_rows(x, rows, width), weights(d, &norm->gain, width),
                         weights(d, &norm->bias, width));
    return floats(d, y, rows * width);
}

static float *plain_linear(struct device *d, const struct linear *linear, float *x, size_t rows,
                           enum activation activation)
{
    double *y = doubles(d, NULL, rows * linear->out);
    const float *bias = weights(d, &linear->bias, linear->out);
    float *weight = from_device(d, linear->weight.value, linear->out * linear->in * sizeof(float));
    reference_product(y, matrix_rows(x, rows, linear->in), false, matrix_rows(weight, linear->out, linear->in), true);
    for (size_t i = 0; i < rows * linear->out; i++)
        y[i] = reference_activation(activation, y[i] + (double)bias[i % linear->out]);
    return floats(d, y, rows * linear->out);
}

static void add(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static double *plain_block(struct device *d, const struct block *b, float *x, enum activation activation)
{
    size_t rows = BATCH * POSITIONS, n = rows * b->width;
    double *attended = doubles(d, NULL, n);
    float *qkv = plain_linear(d, &b->in_proj, plain_norm(d, &b->ln_1, x, rows, b->width), rows, ACTIVATION_NONE);
    reference_attention(attended, &(struct attention_operands){BATCH, POSITIONS, b->width, 2, b->causal, .qkv = qkv});
    add(x, plain_linear(d, &b->out_proj, floats(d, attended, n), rows, ACTIVATION_NONE), n);
    float *hidden = plain_linear(d, &b->c_fc, plain_norm(d, &b->ln_2, x, rows, b->width), rows, activation);
    add(x, plain_linear(d, &b->c_proj, hidden, rows, ACTIVATION_NONE), n);
    return doubles(d, x, n);
}

/* ---- tests ---- */

static const size_t heads[] = {80, 88, 104};

DEVICE_TEST_OF(blocks_have_the_heads_they_are_told, heads)
{
    struct clip *clip = open_clip(d, *(const size_t *)parameters);
    for (int t = 0; t < TOWERS; t++) {
        const struct block *block = &clip->towers[t].blocks[0];
        size_t n = (size_t)BATCH * POSITIONS * block->width;
        struct operand x = draw(d, n, 1.0f), y = blank(d, n);
        struct block_saved saved;
        struct block_context context = {.backend = d->backend, .arena = &d->memory, .tower = (enum tower)t};
        struct tensor from = {.data = x.device, .rank = 3, .shape = {BATCH, POSITIONS, block->width}}, to = from;
        to.data = y.device;
        must(block_forward(&context, block, NULL, &from, &to, &saved, &error));
        expect_close(d, "block", y.device, plain_block(d, block, x.host, ACTIVATION_GELU), n, rounded(d, 1e-5));
    }
    clip_destroy(clip);
}

DEVICE_TEST(saved_weights_say_what_they_are)
{
    const char *path = test_path();
    struct clip *read, *clip = open_clip(d, 80);
    must(clip_save(clip, path, &error));
    must(clip_load(&read, d->backend, &d->memory, path, PARAMETERS_FROZEN, NULL, &error));
    assert_int_equal(read->activation, ACTIVATION_GELU);
    assert_memory_equal(&read->dimensions, &clip->dimensions, sizeof read->dimensions);
    clip_destroy(read);
    must(clip_reload(clip, path, &error));
    static const struct {
        size_t image_heads, image_blocks;
        enum activation activation;
        const char *words[3];
    } others[] = {{4, 1, ACTIVATION_GELU, {"2 heads", "the model in use", "4"}},
                  {2, 1, ACTIVATION_QUICK_GELU, {"gelu", "the model in use", "quick_gelu"}},
                  {2, 2, ACTIVATION_GELU, {"same size", "1 blocks of width 160", "2 blocks of width 160"}}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct clip_dimensions dimensions = dimensions_of(80);
        struct clip *other;
        dimensions.image_heads = others[i].image_heads;
        dimensions.image_blocks = others[i].image_blocks;
        must(clip_create(&other, d->backend, &d->memory, &dimensions, PARAMETERS_FROZEN, others[i].activation, &error));
        must(clip_save(other, path, &error));
        clip_destroy(other);
        must_refuse(clip_reload(clip, path, &error), ERROR_FORMAT, path, others[i].words[0], others[i].words[1],
                    others[i].words[2]);
    }
    clip_destroy(clip);
}

DEVICE_TEST(heads_must_divide_the_width)
{
    struct clip *clip;
    struct clip_dimensions dimensions = dimensions_of(80);
    for (dimensions.text_heads = 0; dimensions.text_heads <= 3; dimensions.text_heads += 3)
        must_refuse(clip_create(&clip, d->backend, &d->memory, &dimensions, PARAMETERS_FROZEN, ACTIVATION_GELU, &error),
                    ERROR_FORMAT, "160 in the text tower");
}
