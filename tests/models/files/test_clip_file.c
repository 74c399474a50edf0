/* The model fixture is read under OpenAI's names, rewritten under Hugging Face's, and must come back unchanged; then it
 * is damaged in every way that a published file can be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "models/files/clip_file.h"
#include "models/files/safetensors.h"
#include "tests/test.h"

enum { MOST_TENSORS = 256 };

/* A set of tensors to write; owns names and data. */
struct set {
    size_t count;
    struct safetensor tensors[MOST_TENSORS];
};

struct fixture {
    char path[64];
    struct clip_file *original;
    struct set openai, huggingface;
};

static const char *const source_path = FIXTURES "/model/base/clip.safetensors";

static void set_add(struct set *set, const char *name, int rank, const size_t *shape, const float *values)
{
    assert_true(set->count < MOST_TENSORS);
    struct safetensor *tensor = &set->tensors[set->count++];
    *tensor = (struct safetensor){.name = strdup(name), .type = SAFETENSOR_F32, .rank = rank};
    for (int i = 0; i < rank; i++)
        tensor->shape[i] = shape[i];
    size_t bytes = safetensor_elements(tensor) * sizeof *values;
    float *copy = malloc(bytes);
    memcpy(copy, values, bytes);
    tensor->data = copy;
}

static void set_free(struct set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free((char *)set->tensors[i].name);
        free((void *)set->tensors[i].data);
    }
    set->count = 0;
}

static struct safetensor *set_find(struct set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->tensors[i].name, name) == 0)
            return &set->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static size_t elements_of(const struct clip_tensor *tensor)
{
    size_t elements = 1;
    for (int i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    return elements;
}

static float *read_original(const struct fixture *fixture, size_t index)
{
    struct clip_tensor tensor = clip_tensor_at(clip_file_dimensions(fixture->original), CLIP_OPENAI, index);
    float *values = malloc(elements_of(&tensor) * sizeof *values);
    assert_ok(clip_file_read(fixture->original, index, values, &error));
    return values;
}

static size_t index_of(const struct clip_file *file, const char *openai)
{
    const struct clip_dimensions *dimensions = clip_file_dimensions(file);
    size_t i = 0;
    while (strcmp(clip_tensor_at(dimensions, CLIP_OPENAI, i).openai, openai) != 0)
        i++;
    return i;
}

/* The reverse of what clip_file does, written out plainly. */
static void add_as(struct set *set, const struct clip_dimensions *dimensions, enum clip_naming naming, size_t index,
                   const float *values)
{
    struct clip_tensor tensor = clip_tensor_at(dimensions, naming, index);
    size_t shape[CLIP_RANK], rows = tensor.shape[0], columns = tensor.shape[1];
    memcpy(shape, tensor.shape, sizeof shape);
    if (tensor.parts > 1) {
        for (size_t part = 0, row = 0; part < tensor.parts; row += tensor.rows[part++]) {
            shape[0] = tensor.rows[part];
            set_add(set, tensor.names[part], tensor.rank, shape, values + row * (elements_of(&tensor) / rows));
        }
    } else if (tensor.transposed) {
        float *turned = malloc(rows * columns * sizeof *turned);
        for (size_t i = 0; i < rows * columns; i++)
            turned[i % columns * rows + i / columns] = values[i];
        set_add(set, tensor.names[0], 2, (size_t[]){columns, rows}, turned);
        free(turned);
    } else {
        set_add(set, tensor.names[0], tensor.rank, shape, values);
    }
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct error error;
    *state = fixture;
    snprintf(fixture->path, sizeof fixture->path, "test_clip_file-%ld.safetensors", (long)getpid());
    if (!file_exists(source_path))
        return 0;
    if (clip_file_open(&fixture->original, source_path, &error) != OK) {
        print_error("%s\n", error.message);
        return 1;
    }
    const struct clip_dimensions *dimensions = clip_file_dimensions(fixture->original);
    for (size_t i = 0; i < clip_tensors(dimensions); i++) {
        struct clip_tensor tensor = clip_tensor_at(dimensions, CLIP_OPENAI, i);
        float *values = read_original(fixture, i);
        set_add(&fixture->openai, tensor.openai, tensor.rank, tensor.shape, values);
        add_as(&fixture->huggingface, dimensions, CLIP_HUGGINGFACE, i, values);
        free(values);
    }
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    unlink(fixture->path);
    clip_file_close(fixture->original);
    set_free(&fixture->openai);
    set_free(&fixture->huggingface);
    free(fixture);
    return 0;
}

static struct fixture *require(void **state)
{
    struct fixture *fixture = *state;
    if (fixture->original == NULL) {
        print_message("%s is absent\n", source_path);
        skip();
    }
    return fixture;
}

static void write_set(const struct fixture *fixture, const struct set *set)
{
    assert_ok(safetensors_write(fixture->path, set->tensors, set->count, NULL, 0, &error));
}

static void assert_same_model(const struct fixture *fixture)
{
    struct clip_file *file;
    assert_ok(clip_file_open(&file, fixture->path, &error));
    const struct clip_dimensions *dimensions = clip_file_dimensions(file);
    assert_memory_equal(dimensions, clip_file_dimensions(fixture->original), sizeof *dimensions);
    for (size_t i = 0; i < clip_tensors(dimensions); i++) {
        struct clip_tensor tensor = clip_tensor_at(dimensions, CLIP_OPENAI, i);
        size_t bytes = elements_of(&tensor) * sizeof(float);
        float *expected = read_original(fixture, i), *values = malloc(bytes);
        assert_ok(clip_file_read(file, i, values, &error));
        assert_memory_equal(values, expected, bytes);
        free(expected);
        free(values);
    }
    clip_file_close(file);
}

/* Opening must fail with a message that holds all three words. */
static void assert_refused(const struct fixture *fixture, const struct set *set, const char *a, const char *b,
                           const char *c)
{
    struct clip_file *file;
    struct error reason;
    write_set(fixture, set);
    assert_int_equal(clip_file_open(&file, fixture->path, &reason), ERROR_FORMAT);
    assert_null(file);
    const char *words[] = {fixture->path, a, b, c};
    for (size_t i = 0; i < 4; i++)
        if (strstr(reason.message, words[i]) == NULL)
            fail_msg("'%s' is not in: %s", words[i], reason.message);
}

TEST(dimensions_follow_from_shapes)
{
    const struct clip_dimensions *d = clip_file_dimensions(require(state)->original);
    const struct clip_dimensions expected = {.embed = 48,
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
    assert_memory_equal(d, &expected, sizeof expected);
}

TEST(values_are_those_of_the_file)
{
    struct fixture *fixture = require(state);
    struct safetensors *file;
    assert_ok(safetensors_open(&file, source_path, &error));
    assert_int_equal(safetensors_count(file), fixture->openai.count);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensor *expected = safetensors_at(file, i);
        const struct safetensor *found = set_find(&fixture->openai, expected->name);
        assert_memory_equal(found->data, expected->data, safetensor_elements(expected) * sizeof(float));
    }
    safetensors_close(file);
}

TEST(both_namings_give_the_same_model)
{
    struct fixture *fixture = require(state);
    write_set(fixture, &fixture->openai);
    assert_same_model(fixture);
    write_set(fixture, &fixture->huggingface);
    assert_same_model(fixture);
}

TEST(wrappers_and_harmless_extras_are_seen_through)
{
    struct fixture *fixture = require(state);
    struct set set = {0};
    char name[160];
    for (size_t i = 0; i < fixture->huggingface.count; i++) {
        const struct safetensor *tensor = &fixture->huggingface.tensors[i];
        snprintf(name, sizeof name, "module.%s", tensor->name);
        set_add(&set, name, tensor->rank, tensor->shape, tensor->data);
    }
    set_add(&set, "module.text_model.embeddings.position_ids", 2, (size_t[]){1, 2}, (float[]){0, 1});
    set_add(&set, "input_resolution", 0, NULL, (float[]){16});
    write_set(fixture, &set);
    assert_same_model(fixture);
    set_free(&set);
}

TEST(half_precision_is_widened)
{
    struct fixture *fixture = require(state);
    struct set set = fixture->openai;
    static const uint16_t half = 0x4248, brain = 0x4049; /* 3.140625 in both */
    const struct {
        enum safetensor_type type;
        const void *data;
        float expected;
    } cases[] = {{SAFETENSOR_F16, &half, 3.140625F}, {SAFETENSOR_BF16, &brain, 3.140625F}};
    struct safetensor *scale = set_find(&set, "logit_scale");
    for (size_t i = 0; i < 2; i++) {
        struct clip_file *file;
        float value = 0;
        scale->type = cases[i].type;
        scale->data = cases[i].data;
        write_set(fixture, &set);
        assert_ok(clip_file_open(&file, fixture->path, &error));
        assert_ok(clip_file_read(file, index_of(file, "logit_scale"), &value, &error));
        assert_true(value == cases[i].expected);
        clip_file_close(file);
    }
}

static void not_finite(struct fixture *fixture, const struct set *set, const char *openai, const char *name,
                       const char *found)
{
    struct clip_file *file;
    struct error reason;
    write_set(fixture, set);
    assert_ok(clip_file_open(&file, fixture->path, &error));
    for (size_t i = 0; i < clip_tensors(clip_file_dimensions(file)); i++) {
        struct clip_tensor tensor = clip_tensor_at(clip_file_dimensions(file), CLIP_OPENAI, i);
        float *values = malloc(elements_of(&tensor) * sizeof *values);
        bool bad = strcmp(tensor.openai, openai) == 0;
        assert_int_equal(clip_file_read(file, i, values, &reason), bad ? ERROR_FORMAT : OK);
        if (bad && (strstr(reason.message, name) == NULL || strstr(reason.message, found) == NULL ||
                    strstr(reason.message, fixture->path) == NULL))
            fail_msg("expected \"%s\" and \"%s\" in: %s", name, found, reason.message);
        free(values);
    }
    clip_file_close(file);
}

TEST(numbers_that_are_none_are_refused)
{
    struct fixture *fixture = require(state);
    struct set set = fixture->openai;
    static const float nan = NAN;
    set_find(&set, "logit_scale")->data = &nan;
    not_finite(fixture, &set, "logit_scale", "logit_scale", "nan");

    set = fixture->huggingface; /* recognised by the file's own name, not by the one it is stacked under */
    struct safetensor *key = set_find(&set, "text_model.encoder.layers.1.self_attn.k_proj.bias");
    float values[64] = {[63] = -INFINITY};
    assert_int_equal(key->shape[0], 64);
    key->data = values;
    not_finite(fixture, &set, "transformer.resblocks.1.attn.in_proj_bias", key->name, "-inf");
}

TEST(wrong_tensors_are_named)
{
    struct fixture *fixture = require(state);
    static const char *const query = "text_model.encoder.layers.1.self_attn.q_proj.weight";
    struct set set = fixture->huggingface;
    *set_find(&set, query) = set.tensors[--set.count];
    assert_refused(fixture, &set, query, "missing", "[64, 64]");

    set = fixture->openai;
    set_find(&set, "visual.ln_post.bias")->shape[0] = 127;
    assert_refused(fixture, &set, "visual.ln_post.bias", "[128]", "[127]");

    set = fixture->openai;
    set_find(&set, "visual.ln_post.bias")->name = "visual.ln_past.bias";
    assert_refused(fixture, &set, "visual.ln_post.bias", "missing", "[128]");
    assert_refused(fixture, &set, "visual.ln_post.bias", "missing", "'visual.ln_past.bias'");

    set = fixture->openai;
    set_find(&set, "visual.proj")->name = "visual.project";
    assert_refused(fixture, &set, "visual.proj", "missing", "'visual.project'");

    set = fixture->openai; /* the other layer's bias is no misnamed one */
    *set_find(&set, "visual.ln_pre.bias") = set.tensors[--set.count];
    assert_refused(fixture, &set, "visual.ln_pre.bias", "missing", "others");

    set = fixture->openai;
    set.tensors[set.count] = set.tensors[0];
    set.tensors[set.count++].name = "visual.surplus";
    assert_refused(fixture, &set, "visual.surplus", "[128]", "2 image and 2 text blocks");

    set = fixture->openai;
    set_find(&set, "transformer.resblocks.1.ln_2.weight")->type = SAFETENSOR_I32;
    assert_refused(fixture, &set, "transformer.resblocks.1.ln_2.weight", "F32", "I32");
}

TEST(impossible_models_are_refused)
{
    struct fixture *fixture = require(state);
    struct set set = {.count = 1, .tensors = {fixture->openai.tensors[0]}};
    assert_refused(fixture, &set, "visual.conv1.weight", "patch_embedding", "visual.class_embedding");

    set = fixture->openai;
    set_find(&set, "visual.positional_embedding")->shape[0] = 16;
    assert_refused(fixture, &set, "visual.positional_embedding", "square", "[16, 128]");

    set = fixture->openai;
    set_find(&set, "token_embedding.weight")->shape[1] = 0;
    assert_refused(fixture, &set, "token_embedding.weight", "above zero", "[256, 0]");
}

/* The most telling name decides, whatever else is there. */
TEST(other_models_are_named)
{
    struct fixture *fixture = require(state);
    static const char *const others[][2] = {{"text_decoder.ln_final.weight", "CoCa"},
                                            {"visual.attnpool.positional_embedding", "ResNet"},
                                            {"visual.layer1.0.conv1.weight", "ResNet"},
                                            {"visual.trunk.blocks.0.attn.q_proj.weight", "EVA-CLIP"},
                                            {"visual.blocks.0.attn.q_proj.weight", "EVA-CLIP"},
                                            {"visual.trunk.stem.0.weight", "timm's"},
                                            {"visual.attn_pool.query", "pools by attention"},
                                            {"text.transformer.resblocks.0.ln_1.weight", "CustomTextCLIP"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct set set = fixture->openai;
        set.tensors[set.count] = set.tensors[0];
        set.tensors[set.count++].name = others[i][0];
        assert_refused(fixture, &set, others[i][0], others[i][1], "two transformers");
    }
}

TEST_GROUP(set_up, tear_down)
