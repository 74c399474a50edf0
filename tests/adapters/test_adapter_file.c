/* Adapters to files and back, under the public names; what may be missing; what is refused. */
#include "adapters/experts/kind.h"
#include "adapters/files/adapter_file.h"
#include "adapters/routers/router.h"
#include "tests/adapters/small_adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "test_adapter_file-%ld.safetensors", (long)getpid());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static struct safetensors *open_file(const char *name)
{
    struct safetensors *file = NULL;
    must(safetensors_open(&file, name, &error));
    return file;
}

/* Writes path again without the tensors whose names contain `without`, each name with a prefix. */
static void rewrite(const char *without, const char *prefix, const struct safetensors_metadata *metadata,
                    size_t metadata_count)
{
    struct safetensors *file = open_file(path);
    size_t count = 0;
    struct safetensor *tensors = calloc(safetensors_count(file) + 1, sizeof *tensors);
    char(*names)[160] = calloc(safetensors_count(file), sizeof *names);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensor *t = safetensors_at(file, i);
        if (without != NULL && strstr(t->name, without) != NULL)
            continue;
        snprintf(names[count], sizeof names[count], "%s%s", prefix, t->name);
        tensors[count] = *t;
        tensors[count].name = names[count];
        count++;
    }
    tensors[count++] = (struct safetensor){.name = "visual.transformer.resblocks.0.ln_3.weight",
                                           .type = SAFETENSOR_F32,
                                           .rank = 1,
                                           .shape = {2},
                                           .data = (const float[]){1, 2}}; /* the reference writes such */
    must(safetensors_write(path, tensors, count, metadata, metadata_count, &error));
    safetensors_close(file);
    free(names);
    free(tensors);
}

/* All values of both towers on the host. */
static const float *values_of(struct small *s, const struct adapters *adapters, enum tower tower)
{
    const struct parameters *group = adapters->towers[tower].parameters;
    return from_device(&s->d, group->values, group->values_count * sizeof(float));
}

/* Every tensor: what lies between two of them belongs to none. */
static void expect_values(struct small *s, const struct adapters *adapters, enum tower tower, const float *expected)
{
    const struct parameters *group = adapters->towers[tower].parameters;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        expect_floats(&s->d, p->name, group->values + p->offset, expected + p->offset, p->size);
    }
}

static void fill(struct small *s, struct adapters *adapters, float value)
{
    for (int t = 0; t < TOWERS; t++) {
        struct parameters *group = adapters->towers[t].parameters;
        float *values = arena_take(&s->d.host, group->values_count * sizeof *values);
        for (size_t i = 0; i < group->values_count; i++)
            values[i] = value;
        must(s->d.ops->upload(s->d.backend, parameters_write_all(group), values, group->values_count * sizeof *values,
                              &error));
    }
}

TEST(adapters_come_back_as_they_were)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    const float *expected[TOWERS] = {values_of(&s, adapters, TOWER_IMAGE), values_of(&s, adapters, TOWER_TEXT)};
    must(adapters_save(adapters, NULL, path, &error));
    struct safetensors *file = open_file(path);
    fill(&s, adapters, 9);
    must(adapters_load(adapters, file, "", GROUP_COMPLETE, &error));
    for (int t = 0; t < TOWERS; t++)
        expect_values(&s, adapters, (enum tower)t, expected[t]);
    safetensors_close(file);
    small_adapters_close(&s, adapters);
}

/* Name, shape and place of tensors as PyTorch has them. */
TEST(names_and_shapes_are_public)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    must(adapters_save(adapters, NULL, path, &error));
    struct safetensors *file = open_file(path);
    assert_int_equal(safetensors_count(file), 4 * (4 * 5 + 2 * SMALL_TASKS));
    const struct {
        const char *name;
        enum tower tower;
        size_t stack, slice, rank, shape[2];
    } cases[] = {
        {"visual.transformer.resblocks.1.adaptmlp_list.3.down_proj.weight",
         TOWER_IMAGE,
         adapters->towers[0].banks[1].down_weight,
         3,
         2,
         {8, 64}},
        {"visual.transformer.resblocks.0.adaptmlp_list.4.up_proj.weight",
         TOWER_IMAGE,
         adapters->towers[0].banks[0].up_weight,
         4,
         2,
         {64, 8}},
        {"transformer.resblocks.1.adaptmlp_list.0.up_proj.bias",
         TOWER_TEXT,
         adapters->towers[1].banks[1].up_bias,
         0,
         1,
         {128, 0}},
        {"transformer.resblocks.0.adaptmlp_list.2.down_proj.bias",
         TOWER_TEXT,
         adapters->towers[1].banks[0].down_bias,
         2,
         1,
         {8, 0}},
        {"visual.transformer.resblocks.1.router_list.2",
         TOWER_IMAGE,
         adapters->towers[0].banks[1].routers,
         2,
         2,
         {64, 5}},
        {"transformer.resblocks.0.w_noise_list.1", TOWER_TEXT, adapters->towers[1].banks[0].noise, 1, 2, {128, 5}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct safetensor *t;
        if (safetensors_expect(file, cases[i].name, SAFETENSOR_F32, (int)cases[i].rank, cases[i].shape, &t, &error) !=
            OK)
            fail_msg("%s", error.message);
        struct expert_slice slice = expert_slice(adapters, cases[i].tower, cases[i].stack, cases[i].slice);
        assert_int_equal(safetensor_elements(t), slice.size);
        assert_memory_equal(t->data, values_of(&s, adapters, cases[i].tower) + slice.offset,
                            slice.size * sizeof(float));
    }
    safetensors_close(file);
    small_adapters_close(&s, adapters);
}

static status load(struct adapters *adapters, const char *prefix, enum group_missing missing)
{
    struct safetensors *file = open_file(path);
    status result = adapters_load(adapters, file, prefix, missing, &error);
    safetensors_close(file);
    return result;
}

static void expect_slice(struct small *s, const struct adapters *adapters, size_t stack, size_t number,
                         const float *whole, float constant)
{
    struct expert_slice slice = expert_slice(adapters, TOWER_IMAGE, stack, number);
    float *expected = arena_take(&s->d.host, slice.size * sizeof *expected);
    for (size_t i = 0; i < slice.size; i++)
        expected[i] = whole != NULL ? whole[slice.offset + i] : constant;
    expect_floats(&s->d, "slice", adapters->towers[TOWER_IMAGE].parameters->values + slice.offset, expected,
                  slice.size);
}

TEST(missing_tensors_follow_the_mode)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    const struct expert_bank *bank = &adapters->towers[TOWER_IMAGE].banks[1];
    const float *saved = values_of(&s, adapters, TOWER_IMAGE);
    must(adapters_save(adapters, NULL, path, &error));
    rewrite("_list.0", "adapter.", NULL, 0); /* expert 0, router 0, noise 0 of every block */

    assert_int_equal(load(adapters, "adapter.", GROUP_COMPLETE), ERROR_FORMAT);
    assert_non_null(
        strstr(error.message, "adapter.visual.transformer.resblocks.0.adaptmlp_list.0.down_proj.weight is missing"));
    assert_non_null(strstr(error.message, path));
    assert_int_equal(load(adapters, "adapter.", GROUP_ROUTERS_OPTIONAL), ERROR_FORMAT);
    assert_int_equal(load(adapters, "", GROUP_COMPLETE), ERROR_FORMAT); /* under another prefix there is nothing */

    fill(&s, adapters, 9);
    must(load(adapters, "adapter.", GROUP_ZERO_LEFT_OUT));
    expect_slice(&s, adapters, bank->up_weight, 0, NULL, 0);
    expect_slice(&s, adapters, bank->routers, 0, NULL, 0);
    expect_slice(&s, adapters, bank->routers, 1, saved, 0);
    expect_slice(&s, adapters, bank->up_weight, 4, saved, 0);
    small_adapters_close(&s, adapters);
}

TEST(absent_routers_stay_as_they_were)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    const struct expert_bank *bank = &adapters->towers[TOWER_IMAGE].banks[1];
    const float *saved = values_of(&s, adapters, TOWER_IMAGE);
    must(adapters_save(adapters, NULL, path, &error));
    rewrite("router_list.1", "", NULL, 0);
    fill(&s, adapters, 9);
    assert_int_equal(load(adapters, "", GROUP_COMPLETE), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "router_list.1 is missing"));
    fill(&s, adapters, 9);
    must(load(adapters, "", GROUP_ROUTERS_OPTIONAL));
    expect_slice(&s, adapters, bank->routers, 1, NULL, 9);
    expect_slice(&s, adapters, bank->routers, 2, saved, 0);
    expect_slice(&s, adapters, bank->noise, 1, saved, 0);
    small_adapters_close(&s, adapters);
}

TEST(other_sizes_are_refused)
{
    struct small s;
    struct adapter_settings wider = small_settings;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL), *other;
    must(adapters_save(adapters, NULL, path, &error));
    wider.bottleneck = 12;
    must(adapters_create(&other, s.d.backend, &s.d.memory, &small_dimensions, &wider, PARAMETERS_FROZEN, &error));
    assert_int_equal(load(other, "", GROUP_ZERO_LEFT_OUT), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "adaptmlp_list.0.down_proj.weight"));
    assert_non_null(strstr(error.message, "[12, 64]"));
    assert_non_null(strstr(error.message, "[8, 64]"));
    adapters_destroy(other);
    small_adapters_close(&s, adapters);
}

static status read_settings(const char *name, const char *prefix, struct adapter_settings *settings)
{
    struct safetensors *file = open_file(name);
    status result = adapter_file_settings(file, prefix, settings, &error);
    safetensors_close(file);
    return result;
}

TEST(settings_follow_from_the_file)
{
    struct small s;
    struct adapter_settings written = small_settings, read = {0};
    written.input = EXPERT_INPUT_POST_LN;
    written.top_k = 3;
    struct adapters *adapters = small_adapters_open(&s, 1, &written);
    must(adapters_save(adapters, NULL, path, &error));
    must(read_settings(path, "", &read));
    assert_int_equal(read.experts, 5);
    assert_int_equal(read.tasks, SMALL_TASKS);
    assert_int_equal(read.bottleneck, 8);
    assert_int_equal(read.top_k, 3);
    assert_true(read.scale == written.scale);
    assert_int_equal(read.input, EXPERT_INPUT_POST_LN);

    /* a file of PyTorch's has no metadata: what shapes do not show is as by default; some routers may be left out */
    rewrite("router_list.0", "", NULL, 0);
    must(read_settings(path, "", &read));
    assert_int_equal(read.tasks, SMALL_TASKS);
    assert_int_equal(read.top_k, 2);
    assert_true(read.scale == 0.1f);
    small_adapters_close(&s, adapters);

    must(read_settings(FIXTURES "/model/base/forward.safetensors", "adapter.", &read));
    assert_int_equal(read.experts, 6);
    assert_int_equal(read.tasks, 3);
    assert_int_equal(read_settings(FIXTURES "/model/base/forward.safetensors", "", &read),
                     OK); /* names are found behind any prefix */
}

/* The features of the adapters as they are. */
static const float *features_of(struct small *s, struct adapters *adapters, enum tower tower)
{
    s->hooks[TOWER_IMAGE] = adapters_hooks(adapters, TOWER_IMAGE);
    s->hooks[TOWER_TEXT] = adapters_hooks(adapters, TOWER_TEXT);
    small_encode(s);
    return from_device(&s->d, s->features[tower].data, tensor_bytes(&s->features[tower]));
}

static status open_adapters(struct small *s, struct adapters **adapters, size_t first, size_t count)
{
    int routers[SMALL_TASKS];
    struct safetensors *file = open_file(path);
    for (size_t i = 0; i < count; i++)
        routers[i] = (int)(first + i);
    *adapters = NULL;
    status result =
        adapters_open(adapters, s->d.backend, &s->d.memory, &small_dimensions, file, routers, count, &error);
    safetensors_close(file);
    return result;
}

/* What a file says of the model is enough to compute the same with it. */
TEST(choices_are_in_the_file)
{
    struct adapter_settings cases[10] = {small_settings,     small_settings, small_settings,     small_settings,
                                         small_settings,     small_settings, small_ffn_settings, small_ffn_settings,
                                         small_ffn_settings, small_settings};
    cases[9].place.blocks = (struct block_choice){.rule = BLOCKS_LISTED, .listed = {2, 1}};
    cases[0].place = (struct adapter_place){.blocks = {.rule = BLOCKS_LAST, .n = 1}};
    cases[1].place = (struct adapter_place){.blocks = {.rule = BLOCKS_LISTED, .listed = {1, 1}}, .towers = ADAPT_TEXT};
    cases[2].place = (struct adapter_place){.blocks = {.rule = BLOCKS_EVERY, .n = 2}, .towers = ADAPT_IMAGE};
    cases[3].shared_expert = true;
    cases[4].gate_input = GATE_MEAN;
    cases[5].routing = ROUTING_PER_TOKEN;
    cases[7].router = &router_softmax_topk;
    cases[7].aligned_output = ALIGN_EACH;
    cases[8].router = &router_random_uniform;
    cases[8].top_k = cases[8].tasks = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct small s;
        struct adapters *adapters = small_adapters_open(&s, 1, &cases[i]), *opened;
        must(adapters_save(adapters, NULL, path, &error));
        must(open_adapters(&s, &opened, 0, SMALL_TASKS));
        const struct adapter_place *expected = &cases[i].place, *found = &opened->settings.place;
        assert_true(found->blocks.rule == expected->blocks.rule && found->blocks.n == expected->blocks.n &&
                    memcmp(found->blocks.listed, expected->blocks.listed, sizeof found->blocks.listed) == 0 &&
                    found->towers == expected->towers);
        assert_int_equal(opened->settings.shared_expert, cases[i].shared_expert);
        assert_int_equal(opened->settings.gate_input, cases[i].gate_input);
        assert_int_equal(opened->settings.routing, cases[i].routing);
        for (int t = 0; t < TOWERS; t++) {
            const float *features = features_of(&s, adapters, (enum tower)t);
            features_of(&s, opened, (enum tower)t);
            expect_floats(&s.d, "features", s.features[t].data, features, tensor_elements(&s.features[t]));
        }
        adapters_destroy(opened);
        small_adapters_close(&s, adapters);
    }
}

/* A file whose tensors are not those that it speaks of. */
TEST(choices_that_do_not_fit_are_refused)
{
    static const struct {
        struct safetensors_metadata metadata;
        const char *without, *word;
    } cases[] = {
        {{"format", "pt"}, "resblocks.1.", "resblocks.1.adaptmlp_list.0.down_proj.weight"},
        {{"blocks", "2"}, NULL, "adapter.blocks is 2"},
        {{"blocks", "first_two"}, NULL, "first_two"},
        {{"blocks", "by_score_1"}, NULL, "by_score_1"},
        {{"towers", "none"}, NULL, "\"none\""},
        {{"shared_expert", "true"}, NULL, "no such expert"},
    };
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL), *opened;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        must(adapters_save(adapters, NULL, path, &error));
        rewrite(cases[i].without, "", &cases[i].metadata, 1);
        assert_int_not_equal(open_adapters(&s, &opened, 0, 1), OK);
        if (strstr(error.message, cases[i].word) == NULL || strstr(error.message, path) == NULL)
            fail_msg("neither '%s' nor the path is in: %s", cases[i].word, error.message);
    }
    small_adapters_close(&s, adapters);
}

TEST(impossible_settings_are_refused)
{
    static const struct {
        struct safetensors_metadata metadata;
        const char *without, *word;
    } cases[] = {
        {{"top_k", "0"}, NULL, "top_k"},
        {{"top_k", "two"}, NULL, "\"two\""},
        {{"scale", "nan"}, NULL, "scale"},
        {{"expert_input", "pre_ln"}, NULL, "\"pre_ln\""},
        {{"gate_input", "patches"}, NULL, "\"patches\""},
        {{"routing", "per_patch"}, NULL, "\"per_patch\""},
        {{"format", "pt"}, "adaptmlp_list", "no experts"},
        {{"format", "pt"}, "router_list", "no routers"},
    };
    struct small s;
    struct adapter_settings settings = {0};
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        must(adapters_save(adapters, NULL, path, &error));
        rewrite(cases[i].without, "", &cases[i].metadata, 1);
        assert_int_equal(read_settings(path, "", &settings), ERROR_FORMAT);
        if (strstr(error.message, cases[i].word) == NULL || strstr(error.message, path) == NULL)
            fail_msg("neither '%s' nor the path is in: %s", cases[i].word, error.message);
    }
    small_adapters_close(&s, adapters);
}

TEST(opened_for_inference)
{
    struct small s;
    struct text list = {0};
    struct adapters *adapters = small_adapters_open(&s, 1, NULL), *opened;
    must(adapters_save(adapters, NULL, path, &error));
    must(open_adapters(&s, &opened, 0, SMALL_TASKS));
    expect_values(&s, opened, TOWER_TEXT, values_of(&s, adapters, TOWER_TEXT));
    assert_null(opened->towers[TOWER_TEXT].parameters->gradients);
    assert_false(adapters_hooks(opened, TOWER_TEXT)[0].trained);
    adapters_destroy(opened);

    rewrite("router_list.1", "", NULL, 0);
    must(open_adapters(&s, &opened, 2, 1));
    adapters_destroy(opened);
    assert_int_equal(open_adapters(&s, &opened, 1, 2), ERROR_ARGUMENT);
    assert_null(opened);
    assert_non_null(strstr(error.message, "no router 1"));
    assert_non_null(strstr(error.message, "0, 2"));
    struct safetensors *file = open_file(path);
    must(adapter_file_routers(file, &list, &error));
    safetensors_close(file);
    assert_string_equal(list.data, "0, 2");
    text_free(&list);
    small_adapters_close(&s, adapters);
}

/* Experts in the place of the MLP are public under its names, and need to be said to be. */
TEST(a_file_says_the_kind_of_its_experts)
{
    static const struct {
        struct safetensors_metadata metadata[2];
        const char *words[2];
    } cases[] = {{{{"expert_kind", "fnf"}, {"activation", "gelu"}}, {"fnf", "did you mean"}},
                 {{{"expert_kind", "ffn"}, {"activation", "relu"}}, {"activation", "quick_gelu or gelu"}},
                 {{{"expert_kind", "lora"}, {"activation", "gelu"}}, {"holds no experts", "down_proj.weight"}}};
    struct small s;
    struct adapter_settings read = {0};
    struct adapters *adapters = small_adapters_open(&s, 1, &small_ffn_settings);
    const struct safetensor *tensor;
    must(adapters_save(adapters, NULL, path, &error));
    struct safetensors *file = open_file(path);
    must(safetensors_expect(file, "transformer.resblocks.1.adaptmlp_list.4.c_proj.weight", SAFETENSOR_F32, 2,
                            (size_t[]){128, 512}, &tensor, &error));
    safetensors_close(file);
    must(read_settings(path, "", &read));
    assert_ptr_equal(read.kind, &expert_ffn);
    assert_int_equal(read.activation, ACTIVATION_QUICK_GELU);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rewrite(".ln_3.", "", cases[i].metadata, 2);
        assert_int_not_equal(read_settings(path, "", &read), OK);
        for (size_t w = 0; w < 2; w++)
            if (strstr(error.message, cases[i].words[w]) == NULL)
                fail_msg("'%s' is not in: %s", cases[i].words[w], error.message);
    }
    small_adapters_close(&s, adapters);
}

/* A name may claim any number; memory must not follow it. */
TEST(hostile_numbers_are_refused)
{
    static const float zeros[4];
    struct small s;
    struct adapters *opened;
    const struct safetensor tensors[] = {
        {.name = "visual.transformer.resblocks.0.adaptmlp_list.1048575.down_proj.weight",
         .type = SAFETENSOR_F32,
         .rank = 2,
         .shape = {2, 2},
         .data = zeros},
        {.name = "visual.transformer.resblocks.0.router_list.0",
         .type = SAFETENSOR_F32,
         .rank = 2,
         .shape = {2, 2},
         .data = zeros},
    };
    small_open(&s, 1, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    must(safetensors_write(path, tensors, 2, NULL, 0, &error));
    assert_int_equal(open_adapters(&s, &opened, 0, 1), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "1048576"));
    small_close(&s);
}

/* Few bytes that name an expert with a thousand below it, each as wide as it is itself. */
TEST(memory_is_taken_for_what_is_there)
{
    enum { BOTTLENECK = 1 << 12 };
    static float zeros[BOTTLENECK];
    struct small s;
    struct adapters *opened;
    const struct safetensor tensors[] = {
        {.name = "visual.transformer.resblocks.0.adaptmlp_list.1023.down_proj.weight",
         .type = SAFETENSOR_F32,
         .rank = 2,
         .shape = {BOTTLENECK, 1},
         .data = zeros},
        {.name = "visual.transformer.resblocks.0.router_list.0",
         .type = SAFETENSOR_F32,
         .rank = 2,
         .shape = {2, 2},
         .data = zeros},
    };
    small_open(&s, 1, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    size_t used = s.d.memory.used;
    must(safetensors_write(path, tensors, 2, NULL, 0, &error));
    assert_int_equal(open_adapters(&s, &opened, 0, 1), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "resblocks.0.adaptmlp_list.0.down_proj.weight is missing"));
    assert_int_equal(s.d.memory.used, used);
    assert_true(s.d.memory.highest <= used);
    small_close(&s);
}

TEST_GROUP(set_up, tear_down)
