/* Adapters to files and back, under the public names; what may be missing; what is refused. */
#include "adapters/files/adapter_file.h"
#include "adapters/routers/router.h"
#include "tests/adapters/small_adapters.h"
#include "tests/models/files/tensor_set.h"

#include <string.h>

/* The reference writes such tensors, too. */
static const struct safetensor other_tensor = {.name = "visual.transformer.resblocks.0.ln_3.weight",
                                               .type = SAFETENSOR_F32,
                                               .rank = 1,
                                               .shape = {2},
                                               .data = (const float[]){1, 2}};

static void save(const struct adapters *adapters, const char *without, const char *prefix,
                 const struct safetensors_metadata *metadata, size_t metadata_count)
{
    must(adapters_save(adapters, NULL, test_path(), &error));
    edit_file(test_path(), &(struct file_edit){.without = without, .prefix = prefix, .more = &other_tensor}, metadata,
              metadata_count);
}

/* Other values; those of the image tower. */
static const float *redraw(struct small *s, struct adapters *adapters)
{
    for (int t = 0; t < TOWERS; t++)
        group_draw(&s->d, adapters->towers[t].parameters, 0.1f);
    return small_values(s, adapters->towers[TOWER_IMAGE].parameters);
}

/* Name, shape and place of tensors as PyTorch has them; and back. */
ADAPTERS_TEST(names_and_shapes_are_public, 1, "")
{
    const struct expert_bank *image = adapters->towers[TOWER_IMAGE].banks, *text = adapters->towers[TOWER_TEXT].banks;
    const struct {
        const char *name;
        enum tower tower;
        size_t stack, number, shape[2]; /* a vector's second size is 0 */
    } cases[] = {
        {"visual.transformer.resblocks.1.adaptmlp_list.3.down_proj.weight",
         TOWER_IMAGE,
         image[1].parts[EXPERT_DOWN],
         3,
         {8, 64}},
        {"visual.transformer.resblocks.0.adaptmlp_list.4.up_proj.weight",
         TOWER_IMAGE,
         image[0].parts[EXPERT_UP],
         4,
         {64, 8}},
        {"transformer.resblocks.1.adaptmlp_list.0.up_proj.bias", TOWER_TEXT, text[1].parts[EXPERT_UP_BIAS], 0, {128}},
        {"transformer.resblocks.0.adaptmlp_list.2.down_proj.bias", TOWER_TEXT, text[0].parts[EXPERT_DOWN_BIAS], 2, {8}},
        {"visual.transformer.resblocks.1.router_list.2", TOWER_IMAGE, image[1].routers, 2, {64, 5}},
        {"transformer.resblocks.0.w_noise_list.1", TOWER_TEXT, text[0].noise, 1, {128, 5}}};
    const float *before[TOWERS];
    must(adapters_save(adapters, NULL, test_path(), &error));
    struct safetensors *file = open_file(test_path());
    assert_int_equal(safetensors_count(file), 4 * (4 * 5 + 2 * SMALL_TASKS));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct safetensor *t;
        struct expert_slice slice = expert_slice(adapters, cases[i].tower, cases[i].stack, cases[i].number);
        must(safetensors_expect(file, cases[i].name, SAFETENSOR_F32, cases[i].shape[1] > 0 ? 2 : 1, cases[i].shape, &t,
                                &error));
        assert_int_equal(safetensor_elements(t), slice.size);
        assert_memory_equal(t->data, slice_values(s, adapters, cases[i].tower, slice), slice.size * sizeof(float));
    }
    for (int t = 0; t < TOWERS; t++)
        before[t] = small_values(s, adapters->towers[t].parameters);
    redraw(s, adapters);
    must(adapters_load(adapters, file, "", GROUP_COMPLETE, &error));
    for (int t = 0; t < TOWERS; t++)
        expect_group(&s->d, adapters->towers[t].parameters, before[t]);
    safetensors_close(file);
}

static status load(struct adapters *adapters, const char *prefix, enum group_missing missing)
{
    struct safetensors *file = open_file(test_path());
    status result = adapters_load(adapters, file, prefix, missing, &error);
    safetensors_close(file);
    return result;
}

/* A slice of the image tower's second block is what it was in these values, or, without any, zero. */
static void expect_slice(struct small *s, const struct adapters *adapters, size_t stack, size_t number,
                         const float *whole)
{
    struct expert_slice slice = expert_slice(adapters, TOWER_IMAGE, stack, number);
    const float *found = slice_values(s, adapters, TOWER_IMAGE, slice);
    for (size_t i = 0; i < slice.size; i++)
        assert_true(found[i] == (whole != NULL ? whole[slice.offset + i] : 0));
}

ADAPTERS_TEST(missing_tensors_follow_the_mode, 1, "")
{
    struct adapters *other;
    const struct expert_bank *bank = &adapters->towers[TOWER_IMAGE].banks[1];
    const float *saved = small_values(s, adapters->towers[TOWER_IMAGE].parameters);
    save(adapters, "_list.0", "adapter.", NULL, 0); /* expert 0, router 0, noise 0 of every block */
    must_refuse(load(adapters, "adapter.", GROUP_COMPLETE), ERROR_FORMAT, test_path(),
                "adapter.visual.transformer.resblocks.0.adaptmlp_list.0.down_proj.weight is missing");
    must_refuse(load(adapters, "adapter.", GROUP_ROUTERS_OPTIONAL), ERROR_FORMAT, "is missing");
    must_refuse(load(adapters, "", GROUP_COMPLETE), ERROR_FORMAT,
                test_path()); /* under another prefix there is nothing */
    redraw(s, adapters);
    must(load(adapters, "adapter.", GROUP_ZERO_LEFT_OUT));
    expect_slice(s, adapters, bank->parts[EXPERT_UP], 0, NULL);
    expect_slice(s, adapters, bank->routers, 0, NULL);
    expect_slice(s, adapters, bank->routers, 1, saved);
    expect_slice(s, adapters, bank->parts[EXPERT_UP], 4, saved);

    save(adapters, "router_list.1", "", NULL, 0);
    must_refuse(load(adapters, "", GROUP_COMPLETE), ERROR_FORMAT, "router_list.1 is missing");
    const float *before = redraw(s, adapters);
    must(load(adapters, "", GROUP_ROUTERS_OPTIONAL));
    expect_slice(s, adapters, bank->routers, 1, before);
    expect_slice(s, adapters, bank->routers, 2, saved);
    expect_slice(s, adapters, bank->noise, 1, saved);

    const struct adapter_settings wider = small_settings_of("bottleneck=12");
    must(adapters_create(&other, s->d.backend, &s->d.memory, &small_dimensions, &wider, PARAMETERS_FROZEN, &error));
    must_refuse(load(other, "", GROUP_ZERO_LEFT_OUT), ERROR_FORMAT, "adaptmlp_list.0.down_proj.weight", "[12, 64]",
                "[8, 64]");
    adapters_destroy(other);
}

static status read_settings(const char *name, const char *prefix, struct adapter_settings *settings)
{
    struct safetensors *file = open_file(name);
    status result = adapter_file_settings(file, prefix, settings, &error);
    safetensors_close(file);
    return result;
}

/* A file of PyTorch's has no metadata: what shapes do not show is as by default; some routers may be left out. */
ADAPTERS_TEST(settings_follow_from_the_file, 1, "top_k=3")
{
    struct adapter_settings read = {0};
    save(adapters, "router_list.0", "", NULL, 0);
    must(read_settings(test_path(), "", &read));
    assert_true(read.experts == 5 && read.tasks == SMALL_TASKS && read.bottleneck == 8 && read.top_k == 2);
    assert_true(read.scale == 0.1f);
    must(read_settings(FIXTURES "/model/base/forward.safetensors", "adapter.", &read));
    assert_true(read.experts == 6 && read.tasks == 3);
    must(read_settings(FIXTURES "/model/base/forward.safetensors", "", &read)); /* names are found behind any prefix */
}

static status open_adapters(struct small *s, struct adapters **adapters, size_t first, size_t count)
{
    int routers[SMALL_TASKS];
    struct safetensors *file = open_file(test_path());
    for (size_t i = 0; i < count; i++)
        routers[i] = (int)(first + i);
    *adapters = NULL;
    status result =
        adapters_open(adapters, s->d.backend, &s->d.memory, &small_dimensions, file, routers, count, &error);
    safetensors_close(file);
    return result;
}

static const char *const choices[] = {"expert_input=post_ln top_k=3 scale=0.25",
                                      "share_across_blocks=1 share_routing=2",
                                      "share_across_blocks=1 share_routing=1",
                                      "blocks=last_1",
                                      "blocks=0,1 towers=text",
                                      "blocks=every_2 towers=image",
                                      "shared_expert=true",
                                      "gate_input=mean",
                                      "routing=per_token",
                                      "kind=ffn",
                                      "kind=ffn router=softmax_topk aligned_output=each",
                                      "kind=ffn router=random_uniform top_k=1 routers=one",
                                      "blocks=image.1,text.0"};

/* What a file says of the model is enough to compute the same with it. */
ADAPTERS_TEST_OF(choices_are_in_the_file, 1, choices)
{
    struct adapters *opened;
    must(adapters_save(adapters, NULL, test_path(), &error));
    must(open_adapters(s, &opened, 0, SMALL_TASKS));
    const struct adapter_settings *expected = &adapters->settings, *found = &opened->settings;
    assert_true(
        found->place.blocks.rule == expected->place.blocks.rule && found->place.blocks.n == expected->place.blocks.n &&
        memcmp(found->place.blocks.listed, expected->place.blocks.listed, sizeof found->place.blocks.listed) == 0 &&
        found->place.towers == expected->place.towers && found->place.banks == expected->place.banks &&
        found->place.decisions == expected->place.decisions);
    assert_int_equal(found->shared_expert, expected->shared_expert);
    assert_int_equal(found->gate_input, expected->gate_input);
    assert_int_equal(found->routing, expected->routing);
    for (int t = 0; t < TOWERS; t++) {
        small_adapters_use(s, adapters);
        const float *features = small_features(s, (enum tower)t);
        small_adapters_use(s, opened);
        assert_memory_equal(small_features(s, (enum tower)t), features, tensor_bytes(&s->features[t]));
    }
    adapters_destroy(opened);
}

/* A file whose tensors are not those that it speaks of; its settings alone are refused where it is opened for them. */
TEST(what_a_file_cannot_mean_is_refused)
{
    static const struct {
        struct safetensors_metadata metadata[2];
        const char *written; /* a form */
        bool settings;
        const char *without, *words[2]; /* one word: and the path */
    } cases[] = {
        {{{"format", "pt"}}, "", false, "resblocks.1.", {"resblocks.1.adaptmlp_list.0.down_proj.weight"}},
        {{{"blocks", "2"}}, "", false, NULL, {"adapter.blocks is 2"}},
        {{{"blocks", "first_two"}}, "", false, NULL, {"first_two"}},
        {{{"blocks", "by_score_1"}}, "", false, NULL, {"by_score_1"}},
        {{{"towers", "none"}}, "", false, NULL, {"\"none\""}},
        {{{"shared_expert", "true"}}, "", false, NULL, {"no such expert"}},
        {{{"share_across_blocks", "-1"}}, "", false, NULL, {"share_across_blocks"}},
        {{{"share_routing", "2"}}, "", false, NULL, {"multiple of"}},
        {{{"top_k", "0"}}, "", true, NULL, {"top_k"}},
        {{{"top_k", "two"}}, "", true, NULL, {"\"two\""}},
        {{{"scale", "nan"}}, "", true, NULL, {"scale"}},
        {{{"expert_input", "pre_ln"}}, "", true, NULL, {"\"pre_ln\""}},
        {{{"gate_input", "patches"}}, "", true, NULL, {"\"patches\""}},
        {{{"routing", "per_patch"}}, "", true, NULL, {"\"per_patch\""}},
        {{{"format", "pt"}}, "", true, "adaptmlp_list", {"no experts"}},
        {{{"format", "pt"}}, "", true, "router_list", {"no routers"}},
        {{{"expert_kind", "fnf"}, {"activation", "gelu"}}, "kind=ffn", true, NULL, {"fnf", "did you mean"}},
        {{{"expert_kind", "ffn"}, {"activation", "relu"}},
         "kind=ffn",
         true,
         NULL,
         {"activation", "quick_gelu or gelu"}},
        {{{"expert_kind", "lora"}, {"activation", "gelu"}},
         "kind=ffn",
         true,
         NULL,
         {"holds no experts", "down_proj.weight"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct small s;
        struct adapter_settings settings = {0};
        struct adapters *adapters = small_adapters_open(&s, 1, cases[i].written), *opened;
        save(adapters, cases[i].without, "", cases[i].metadata, cases[i].metadata[1].key != NULL ? 2 : 1);
        status result =
            cases[i].settings ? read_settings(test_path(), "", &settings) : open_adapters(&s, &opened, 0, 1);
        const char *second = cases[i].words[1] != NULL ? cases[i].words[1] : test_path();
        must_refuse(result, result != ERROR_ARGUMENT ? ERROR_FORMAT : result, cases[i].words[0], second);
        small_adapters_close(&s, adapters);
    }
}

ADAPTERS_TEST(opened_for_inference, 1, "")
{
    struct text list = {0};
    struct adapters *opened;
    must(adapters_save(adapters, NULL, test_path(), &error));
    must(open_adapters(s, &opened, 0, SMALL_TASKS));
    expect_same_group(&s->d, opened->towers[TOWER_TEXT].parameters, adapters->towers[TOWER_TEXT].parameters);
    assert_null(opened->towers[TOWER_TEXT].parameters->gradients);
    assert_false(adapters_hooks(opened, TOWER_TEXT)[0].trained);
    adapters_destroy(opened);

    save(adapters, "router_list.1", "", NULL, 0);
    must(open_adapters(s, &opened, 2, 1));
    adapters_destroy(opened);
    must_refuse(open_adapters(s, &opened, 1, 2), ERROR_ARGUMENT, "no router 1", "0, 2");
    assert_null(opened);
    struct safetensors *file = open_file(test_path());
    must(adapter_file_routers(file, &list, &error));
    safetensors_close(file);
    assert_string_equal(list.data, "0, 2");
    text_free(&list);
}

ADAPTERS_TEST(experts_in_the_place_of_the_mlp_are_public_under_its_names, 1, "kind=ffn")
{
    const struct safetensor *tensor;
    must(adapters_save(adapters, NULL, test_path(), &error));
    struct safetensors *file = open_file(test_path());
    must(safetensors_expect(file, "transformer.resblocks.1.adaptmlp_list.4.c_proj.weight", SAFETENSOR_F32, 2,
                            (size_t[]){128, 512}, &tensor, &error));
    safetensors_close(file);
}

/* A name may claim any number; and few bytes may name an expert with a thousand below it, each as wide as it is itself. Memory must
 * not follow. */
SMALL_TEST(memory_is_taken_for_what_is_there, 1)
{
    enum { BOTTLENECK = 1 << 12 };
    static float zeros[BOTTLENECK];
    static const struct {
        const char *name;
        size_t shape[2];
        const char *words;
    } cases[] = {{"visual.transformer.resblocks.0.adaptmlp_list.1048575.down_proj.weight", {2, 2}, "1048576"},
                 {"visual.transformer.resblocks.0.adaptmlp_list.1023.down_proj.weight",
                  {BOTTLENECK, 1},
                  "resblocks.0.adaptmlp_list.0.down_proj.weight is missing"}};
    struct adapters *opened;
    size_t used = s->d.memory.used;
    for (size_t i = 0; i < 2; i++) {
        struct safetensor tensors[] = {
            {.name = cases[i].name,
             .type = SAFETENSOR_F32,
             .rank = 2,
             .shape = {cases[i].shape[0], cases[i].shape[1]},
             .data = zeros},
            {.name = "visual.transformer.resblocks.0.router_list.0",
             .type = SAFETENSOR_F32,
             .rank = 2,
             .shape = {2, 2},
             .data = zeros},
        };
        must(safetensors_write(test_path(), tensors, 2, NULL, 0, &error));
        must_refuse(open_adapters(s, &opened, 0, 1), ERROR_FORMAT, cases[i].words);
        assert_int_equal(s->d.memory.used, used);
        assert_true(s->d.memory.highest <= used);
    }
}
