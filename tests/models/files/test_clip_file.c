/* The model fixture is read under OpenAI's names, rewritten under Hugging Face's, and must come back unchanged; then it
 * is damaged in every way that a published file can be. A SigLIP goes through files under transformers' names, open_clip's and this
 * program's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "tests/models/clip/groups.h"
#include "tests/models/files/tensor_set.h"

static const struct clip_dimensions expected_dimensions = {.embed = 48,
                                                           .resolution = 16,
                                                           .patch = 4,
                                                           .image_width = 128,
                                                           .image_hidden = 512,
                                                           .image_blocks = 2,
                                                           .context = 77,
                                                           .vocabulary = 256,
                                                           .text_width = 64,
                                                           .text_hidden = 256,
                                                           .text_blocks = 2};
static struct small siglip;
static struct safetensors *source;
static struct tensor_set openai, huggingface, set; /* set: one of them, edited */

static int set_up(void **state)
{
    small_open_siglip(&siglip, 1, PARAMETERS_FROZEN);
    source = open_file(FIXTURES "/model/base/clip.safetensors");
    tensor_set_copy(&openai, source);
    tensor_set_rename(&huggingface, source, &expected_dimensions, CLIP_HUGGINGFACE);
    return 0;
}

static int tear_down(void **state)
{
    safetensors_close(source);
    tensor_set_free(&huggingface);
    small_close(&siglip);
    return 0;
}

static struct clip_file *open_set(void)
{
    struct clip_file *file;
    tensor_set_write(&set, test_path());
    must(clip_file_open(&file, test_path(), WEIGHTS_WHOLE, &error));
    return file;
}

static void expect_same_model(void)
{
    struct clip_file *file = open_set();
    assert_memory_equal(clip_file_dimensions(file), &expected_dimensions, sizeof expected_dimensions);
    assert_int_equal(clip_tensors(&expected_dimensions), openai.count);
    for (size_t i = 0; i < openai.count; i++) {
        struct clip_tensor tensor = clip_tensor_at(&expected_dimensions, CLIP_OPENAI, i);
        const struct safetensor *expected;
        must(safetensors_expect(source, tensor.openai, SAFETENSOR_F32, tensor.rank, tensor.shape, &expected, &error));
        size_t bytes = safetensor_elements(expected) * sizeof(float);
        float *values = xmalloc(bytes);
        must(clip_file_read(file, i, values, &error));
        assert_memory_equal(values, expected->data, bytes);
        free(values);
    }
    clip_file_close(file);
}

#define EXPECT_REFUSED(...) expect_refused((const char *const[]){test_path(), __VA_ARGS__, NULL})
static void expect_refused(const char *const *words)
{
    struct clip_file *file;
    tensor_set_write(&set, test_path());
    check_refusal(clip_file_open(&file, test_path(), WEIGHTS_WHOLE, &error), ERROR_FORMAT, words);
    assert_null(file);
}

/* OpenAI's and Hugging Face's. */
TEST(all_namings_give_the_same_model)
{
    set = openai;
    expect_same_model();
    set = huggingface;
    expect_same_model();
}

/* The name with a wrapper before it, and one behind its first and behind its last dot. */
static void wrap(char *name, size_t size, const char *plain, const char *const *w)
{
    const char *first = strchr(plain, '.'), *last = strrchr(plain, '.');
    size_t head = first != NULL ? (size_t)(first - plain) + 1 : 0;
    size_t body = last != NULL && last != first ? (size_t)(last - plain) + 1 - head : 0;
    snprintf(name, size, "%s%.*s%s%.*s%s%s", w[0], (int)head, plain, head > 0 ? w[1] : "", (int)body, plain + head,
             body > 0 ? w[2] : "", plain + head + body);
}

TEST(names_of_wrappers_are_left_out)
{
    static const char *const wrappers[][3] = {
        {"module.", "", ""},
        {"model.", "", ""},
        {"_orig_mod.", "", ""},
        {"module._orig_mod.", "", ""},
        {"_orig_mod.module.", "", ""},
        {"model._orig_mod.module.model.", "", ""},
        {"", "_orig_mod.", ""},
        {"module.", "", "_orig_mod."},
        {"_forward_module.model.", "_orig_mod.module.", "_checkpoint_wrapped_module."},
        {"_fsdp_wrapped_module.", "_fsdp_wrapped_module._orig_mod.", ""}};
    static char names[TENSOR_SET_MOST][256];
    for (size_t k = 0; k < 2 * sizeof wrappers / sizeof *wrappers; k++) {
        set = k % 2 == 0 ? openai : huggingface;
        for (size_t i = 0; i < set.count; i++) {
            wrap(names[i], sizeof names[i], set.tensors[i].name, wrappers[k / 2]);
            set.tensors[i].name = names[i];
        }
        expect_same_model();
    }
}

TEST(a_tensor_with_and_without_a_wrapper_is_refused)
{
    char name[160];
    set = openai;
    set.tensors[set.count] = set.tensors[0];
    snprintf(name, sizeof name, "module.%s", set.tensors[0].name);
    set.tensors[set.count++].name = name;
    EXPECT_REFUSED("twice", set.tensors[0].name);
}

TEST(what_other_programs_add_is_left_out)
{
    static char names[TENSOR_SET_MOST][160];
    set = huggingface;
    set.tensors[set.count++] = (struct safetensor){.name = "text_model.embeddings.position_ids",
                                                   .type = SAFETENSOR_F32,
                                                   .rank = 2,
                                                   .shape = {1, 2},
                                                   .data = (float[]){0, 1}};
    for (size_t i = 0; i < set.count; i++) {
        snprintf(names[i], sizeof names[i], "module.%s", set.tensors[i].name);
        set.tensors[i].name = names[i];
    }
    set.tensors[set.count++] =
        (struct safetensor){.name = "input_resolution", .type = SAFETENSOR_F32, .data = (float[]){16}};
    expect_same_model();
}

/* The values of a tensor; ERROR_FORMAT where they are not finite. */
static status read_tensor(const char *name, float *values)
{
    struct clip_file *file = open_set();
    size_t i = 0;
    while (strcmp(clip_tensor_at(&expected_dimensions, CLIP_OPENAI, i).openai, name) != 0)
        i++;
    status result = clip_file_read(file, i, values, &error);
    clip_file_close(file);
    return result;
}

TEST(half_precision_is_widened)
{
    static const uint16_t half = 0x4248, brain = 0x4049; /* 3.140625 in both */
    set = openai;
    struct safetensor *scale = tensor_set_find(&set, "logit_scale");
    for (int i = 0; i < 2; i++) {
        float value = 0;
        scale->type = i == 0 ? SAFETENSOR_F16 : SAFETENSOR_BF16;
        scale->data = i == 0 ? &half : &brain;
        must(read_tensor("logit_scale", &value));
        assert_true(value == 3.140625F);
    }
}

TEST(numbers_that_are_none_are_refused)
{
    static const float nan = NAN, infinite[64] = {[63] = -INFINITY};
    static const char key[] = "text_model.encoder.layers.1.self_attn.k_proj.bias";
    float values[192];
    set = openai;
    tensor_set_find(&set, "logit_scale")->data = &nan;
    must_refuse(read_tensor("logit_scale", values), ERROR_FORMAT, test_path(), "logit_scale", "nan");
    must(read_tensor("visual.ln_post.bias", values));

    set = huggingface; /* recognised by the file's own name, not by the one it is stacked under */
    assert_int_equal(tensor_set_find(&set, key)->shape[0], 64);
    tensor_set_find(&set, key)->data = infinite;
    must_refuse(read_tensor("transformer.resblocks.1.attn.in_proj_bias", values), ERROR_FORMAT, test_path(), key,
                "-inf");
    must(read_tensor("transformer.resblocks.0.attn.in_proj_bias", values));
}

TEST(wrong_tensors_are_named)
{
    static const char query[] = "text_model.encoder.layers.1.self_attn.q_proj.weight";
    set = huggingface;
    tensor_set_drop(&set, query);
    EXPECT_REFUSED(query, "missing", "[64, 64]");

    set = openai;
    tensor_set_find(&set, "visual.ln_post.bias")->shape[0] = 127;
    EXPECT_REFUSED("visual.ln_post.bias", "[128]", "[127]");

    static const char *const renamed[][2] = {{"visual.ln_post.bias", "visual.ln_past.bias"},
                                             {"visual.proj", "visual.project"}};
    for (size_t i = 0; i < 2; i++) {
        set = openai;
        tensor_set_find(&set, renamed[i][0])->name = renamed[i][1];
        EXPECT_REFUSED(renamed[i][0], "missing", renamed[i][1]);
    }

    set = openai; /* the other layer's bias is no misnamed one */
    tensor_set_drop(&set, "visual.ln_pre.bias");
    EXPECT_REFUSED("visual.ln_pre.bias", "missing", "others");

    set = openai;
    set.tensors[set.count] = *tensor_set_find(&set, "visual.class_embedding");
    set.tensors[set.count++].name = "visual.surplus";
    EXPECT_REFUSED("visual.surplus", "[128]", "2 image and 2 text blocks");

    set = openai;
    tensor_set_find(&set, "transformer.resblocks.1.ln_2.weight")->type = SAFETENSOR_I32;
    EXPECT_REFUSED("transformer.resblocks.1.ln_2.weight", "F32", "I32");
}

TEST(impossible_models_are_refused)
{
    set = (struct tensor_set){.count = 1, .tensors = {*tensor_set_find(&openai, "visual.class_embedding")}};
    EXPECT_REFUSED("visual.conv1.weight", "patch_embedding", "visual.class_embedding");

    set = openai;
    tensor_set_find(&set, "visual.positional_embedding")->shape[0] = 16;
    EXPECT_REFUSED("visual.positional_embedding", "square", "[16, 128]");

    set = openai;
    tensor_set_find(&set, "token_embedding.weight")->shape[1] = 0;
    EXPECT_REFUSED("token_embedding.weight", "above zero", "[256, 0]");
}

/* The most telling name decides, whatever else is there. */
TEST(other_models_are_named)
{
    static const char *const others[][2] = {{"text_decoder.ln_final.weight", "CoCa"},
                                            {"visual.attnpool.positional_embedding", "ResNet"},
                                            {"visual.layer1.0.conv1.weight", "ResNet"},
                                            {"visual.trunk.blocks.0.attn.q_proj.weight", "EVA-CLIP"},
                                            {"visual.blocks.0.attn.q_proj.weight", "EVA-CLIP"},
                                            {"visual.trunk.stem.0.weight", "timm's"},
                                            {"visual.attn_pool.query", "pools by attention"},
                                            {"text.transformer.resblocks.0.ln_1.weight", "CustomTextCLIP"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        set = openai;
        set.tensors[set.count] = set.tensors[0];
        set.tensors[set.count++].name = others[i][0];
        EXPECT_REFUSED(others[i][0], others[i][1], "two transformers");
    }
}

/* ---- a SigLIP ---- */

/* The small SigLIP under the names of others, with the leading ones that they have. */
static void write_named(enum clip_naming naming)
{
    static struct tensor_set named;
    must(clip_save(siglip.clip, test_path(), &error));
    struct safetensors *saved = open_file(test_path());
    tensor_set_rename(&named, saved, &siglip.clip->dimensions, naming);
    tensor_set_write(&named, test_path());
    tensor_set_free(&named);
    safetensors_close(saved);
}

static status load(struct clip **clip, const struct clip_stated *stated)
{
    return clip_load(clip, siglip.d.backend, &siglip.d.memory, test_path(), PARAMETERS_FROZEN, stated, &error);
}

static void expect_same(const struct clip *read)
{
    expect_same_group(&siglip.d, read->parameters, siglip.clip->parameters);
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
    must(clip_save(siglip.clip, test_path(), &error));
    must(load(&clip, NULL));
    expect_same(clip);
    must(clip_reload(clip, test_path(), &error));
    clip_destroy(clip);
}

TEST_GROUP(set_up, tear_down)
