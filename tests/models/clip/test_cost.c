#include <math.h>

#include "models/clip.h"
#include "models/clip/cost.h"
#include "tests/models/clip/groups.h"

/* ViT-B/16 as published: 149.6 million. */
SMALL_TEST(weights_are_those_of_a_model, 1)
{
    assert_int_equal(cost_weights(&small_dimensions), parameters_size(s->clip->parameters));
    assert_int_equal(cost_weights(&vit_b_16), 149620737);
}

static void near(double found, double expected, double share)
{
    if (!(fabs(found - expected) < share * expected))
        fail_msg("expected about %g, found %g", expected, found);
}

#define LORA(n, k, m)                                                                                                  \
    (&(struct cost_experts){.top_k = (k), .hidden = {(m), (m)}, .blocks = {(n)->image_blocks, (n)->text_blocks}})

/* 17.6 GMACs an image (Dosovitskiy et al. 2021, with the products of the attention), and the step of the project's
 * aim. */
TEST(operations_of_vit_b_16)
{
    near(cost_images(&vit_b_16, 1), 2 * 17.6e9, 0.01);
    near(cost_adapter_step(&vit_b_16, 16, 100, 14, LORA(&vit_b_16, 2, 64)), 1.39e12, 0.04);
}

/* 2 · rows · in · out for every product of a block, written out for the small model. */
TEST(operations_by_hand)
{
    const struct clip_dimensions *n = &small_dimensions;
    double products = 0, rows = 10, d = 64; /* 9 patches and the class token */
    for (int block = 0; block < 2; block++) {
        products += 2 * rows * d * 3 * d + 2 * rows * d * d; /* query, key, value; output */
        products += 2 * (2 * rows * rows * d);               /* scores and their product with the values */
        products += 2 * (2 * rows * d * 4 * d);              /* MLP */
    }
    products += 2 * 9 * 48 * d + 2 * d * 8; /* patches of 4 × 4 × 3, projection */
    near(cost_images(n, 1), products, 1e-12);
    near(cost_images(n, 7), 7 * products, 1e-12);
    near(cost_image_experts(n, 3, LORA(n, 2, 8)), 2 * (3 * 10) * 2 * (2 * 2 * 64.0 * 8), 1e-12);
}

/* As timm counts vit_tiny_patch16_224: 1.26 GMACs, its head left out. */
TEST(operations_of_a_vit)
{
    const struct clip_dimensions tiny = {
        .resolution = 224, .patch = 16, .image_width = 192, .image_hidden = 768, .image_heads = 3, .image_blocks = 12};
    double forward = cost_images(&tiny, 1);
    near(forward, 2 * 1.26e9, 0.01);
    near(cost_adapter_step(&tiny, 1, 0, 0, LORA(&tiny, 0, 0)), forward * (1 + 11.0 / 12), 1e-12);
}

TEST(bytes_of_a_step_grow_with_it)
{
    size_t bytes = cost_step_bytes(&vit_b_16, 16, 100, 14, LORA(&vit_b_16, 2, 64), PRECISION_F32);
    assert_true(bytes > 4u * 12 * 16 * 197 * 9 * 768);
    assert_int_equal(cost_step_bytes(&vit_b_16, 32, 200, 14, LORA(&vit_b_16, 2, 64), PRECISION_F32), 2 * bytes);
    assert_int_equal(cost_step_bytes(&vit_b_16, 16, 100, 14, LORA(&vit_b_16, 2, 128), PRECISION_F32) - bytes,
                     4 * 2 * 64 * (12 * 16 * 197 + 12 * 100 * 14));
}

/* What struct block_saved has of 2 blocks, 10 rows of an image and 5 of a text. */
TEST(bytes_of_a_step_by_hand)
{
    const struct cost_experts none = {0};
    size_t norms = 4 * 2 * 2, image = 10 * (4 * 2 * 64 + norms + 4 * 1), text = 5 * (4 * 2 * 128 + norms + 4 * 2),
           image_operands = 10 * (4 * 64 + 256), text_operands = 5 * (4 * 128 + 512);
    assert_int_equal(cost_step_bytes(&small_dimensions, 1, 1, 5, &none, PRECISION_F32),
                     2 * (image + text + 4 * (image_operands + text_operands)));
    assert_int_equal(cost_step_bytes(&small_dimensions, 1, 1, 5, &none, PRECISION_BF16),
                     2 * (image + text + 2 * (image_operands + text_operands)));
}

/* ViT-B/16 has 85 and 38 million weights in its blocks' products; gradients go through all blocks but the first one. The
 * patches are multiplied by 768 × 768 weights, features by 768 × 512 and 512 × 512. */
TEST(bytes_in_bf16)
{
    const struct cost_experts *lora = LORA(&vit_b_16, 2, 64);
    size_t image = 12 * 12 * 768 * 768, text = 12 * 12 * 512 * 512, patches = 768 * 768, features = 768 * 512;
    assert_int_equal(cost_packed_bytes(&vit_b_16, TOWER_IMAGE, NULL), 2 * (patches + image + features));
    assert_int_equal(cost_rounded_bytes(&vit_b_16, TOWER_IMAGE, lora), 2 * (patches + image + features));
    assert_int_equal(cost_packed_bytes(&vit_b_16, TOWER_IMAGE, lora),
                     2 * (patches + image + image / 12 * 11 + 2 * features));
    assert_int_equal(cost_packed_bytes(&vit_b_16, TOWER_TEXT, lora), 2 * (text + text / 12 * 11 + 2 * 512 * 512));
    size_t f32 = cost_step_bytes(&vit_b_16, 16, 100, 14, lora, PRECISION_F32),
           bf16 = cost_step_bytes(&vit_b_16, 16, 100, 14, lora, PRECISION_BF16);
    assert_true(bf16 > f32 / 2 && bf16 < f32 * 2 / 3); /* the stream stays in f32 */
    const struct cost_experts replacing = {.top_k = 1, .hidden = {3072, 2048}, .blocks = {12, 12}, .replace_mlp = true};
    assert_int_equal(cost_packed_bytes(&vit_b_16, TOWER_IMAGE, &replacing),
                     2 * (patches + 23 * 4 * 768 * 768 + 2 * features));
    assert_int_equal(cost_rounded_bytes(&vit_b_16, TOWER_IMAGE, &replacing),
                     2 * (patches + 12 * 4 * 768 * 768 + features));
}

/* As many hidden units in the place of the MLP are no more products forward, and one more backward: the weights'. */
TEST(experts_in_the_place_of_the_mlp)
{
    const struct clip_dimensions *n = &small_dimensions;
    const struct cost_experts none = {.blocks = {2, 2}},
                              one = {.top_k = 1, .hidden = {256, 512}, .blocks = {2, 2}, .replace_mlp = true},
                              two = {.top_k = 2, .hidden = {256, 512}, .blocks = {2, 2}, .replace_mlp = true};
    double image = 2 * (3 * 10) * (2 * 2 * 64.0 * 256), text = 2 * (5 * 4) * (2 * 2 * 128.0 * 512);
    assert_true(cost_image_experts(n, 3, &one) == 0);
    near(cost_image_experts(n, 3, &two), image, 1e-12);
    near(cost_adapter_step(n, 3, 5, 4, &one) - cost_adapter_step(n, 3, 5, 4, &none), image + text, 1e-9);
    assert_int_equal(cost_step_bytes(n, 3, 5, 4, &one, PRECISION_F32),
                     cost_step_bytes(n, 3, 5, 4, &none, PRECISION_F32));
}

/* Blocks without experts are as in the dense model, and below the first ones nothing goes back. */
TEST(experts_in_some_blocks)
{
    const struct clip_dimensions *n = &small_dimensions;
    const struct cost_experts nowhere = {.top_k = 2, .hidden = {256, 512}, .replace_mlp = true};
    struct cost_experts last = nowhere;
    double dense = cost_images(n, 3) + cost_texts(n, 5, 4), units = (3 * 10) * (2 * 2 * 64.0 * 256);
    last.blocks[TOWER_IMAGE] = last.below[TOWER_IMAGE] = 1;
    near(cost_image_experts(n, 3, &last), units, 1e-12);
    near(cost_adapter_step(n, 3, 5, 4, &nowhere), dense, 1e-12);
    near(cost_adapter_step(n, 3, 5, 4, &last), dense + (3 * 2 - 2) * units, 1e-12);
    assert_int_equal(cost_step_bytes(n, 3, 5, 4, &last, PRECISION_F32) -
                         cost_step_bytes(n, 3, 5, 4, &nowhere, PRECISION_F32),
                     4 * 3 * 10 * 256);
}

/* Between twelve and twenty times the residual stream; test_device_memory.c measures it. */
TEST(bytes_of_an_evaluation)
{
    size_t bytes = cost_evaluation_bytes(&vit_b_16, 64, LORA(&vit_b_16, 2, 64));
    assert_int_equal(cost_evaluation_bytes(&vit_b_16, 128, LORA(&vit_b_16, 2, 64)), 2 * bytes);
    assert_true(bytes > 4u * 64 * 197 * 12 * 768 && bytes < 4u * 64 * 197 * 20 * 768);
}
