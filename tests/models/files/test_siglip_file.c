/* A SigLIP through files under transformers' names, open_clip's and this program's, and what it has of its own. */
#include "tests/models/clip/groups.h"
#include "tests/models/files/tensor_set.h"

static struct small small;

static int set_up(void **state)
{
    (void)state;
    small_open_siglip(&small, 1, PARAMETERS_FROZEN);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    small_close(&small);
    return 0;
}

/* The small model under the names of others, with the leading ones that they have. */
static void write_named(enum clip_naming naming)
{
    static struct tensor_set set;
    must(clip_save(small.clip, test_path(), &error));
    struct safetensors *saved = open_file(test_path());
    tensor_set_rename(&set, saved, &small.clip->dimensions, naming);
    tensor_set_write(&set, test_path());
    tensor_set_free(&set);
    safetensors_close(saved);
}

static status load(struct clip **clip, const struct clip_stated *stated)
{
    return clip_load(clip, small.d.backend, &small.d.memory, test_path(), PARAMETERS_FROZEN, stated, &error);
}

static void expect_same(const struct clip *read)
{
    expect_same_group(&small.d, read->parameters, small.clip->parameters);
    assert_true(read->epsilon == 1e-6f && read->pixels == PIXELS_HALF && read->pool == POOL_ATTENTION);
    assert_true(read->activation == ACTIVATION_GELU_TANH && read->dimensions.pool_hidden == 96);
}

TEST(every_naming_is_read)
{
    const struct clip_stated stated = {.config = {.image_heads = 1, .text_heads = 2}, .heads_by = "the test"};
    for (enum clip_naming naming = CLIP_OPENAI; naming < VIT_TIMM; naming++) {
        struct clip *clip;
        write_named(naming);
        must_refuse(load(&clip, NULL), ERROR_FORMAT, "number of attention heads is unknown"); /* nor is it guessed */
        must(load(&clip, &stated));
        expect_same(clip);
        clip_destroy(clip);
    }
}

/* Names as they stand in published files, not as the table derives them. */
TEST(others_find_their_names)
{
    static const struct {
        enum clip_naming naming;
        const char *name;
        int rank;
        size_t shape[3];
    } cases[] = {
        {CLIP_HUGGINGFACE, "vision_model.head.probe", 2, {1, 64}},
        {CLIP_HUGGINGFACE, "vision_model.head.attention.in_proj_weight", 2, {192, 64}},
        {CLIP_HUGGINGFACE, "vision_model.encoder.layers.1.self_attn.k_proj.bias", 1, {64}},
        {CLIP_HUGGINGFACE, "text_model.head.weight", 2, {64, 128}},
        {CLIP_OPEN_CLIP, "visual.trunk.attn_pool.kv.weight", 2, {128, 64}},
        {CLIP_OPEN_CLIP, "visual.trunk.blocks.1.attn.qkv.weight", 2, {192, 64}},
        {CLIP_OPEN_CLIP, "text.transformer.resblocks.1.mlp.c_fc.weight", 2, {512, 128}},
        {CLIP_OPEN_CLIP, "text.text_projection.bias", 1, {64}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct safetensor *found;
        write_named(cases[i].naming);
        struct safetensors *file = open_file(test_path());
        must(safetensors_expect(file, cases[i].name, SAFETENSOR_F32, cases[i].rank, cases[i].shape, &found, &error));
        safetensors_close(file);
    }
}

TEST(what_is_saved_is_read)
{
    struct clip *clip;
    must(clip_save(small.clip, test_path(), &error));
    must(load(&clip, NULL));
    expect_same(clip);
    must(clip_reload(clip, test_path(), &error));
    clip_destroy(clip);
}

TEST_GROUP(set_up, tear_down)
