/* What is known of heads and activation: from metadata, from configurations beside the weights, from the caller, or not at
 * all. Of the weights only the header is looked at, so that the published sizes cost nothing here. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "models/files/clip_config.h"
#include "tests/datasets/scratch.h"
#include "tests/models/device.h"

static const struct clip_dimensions vit_b_16 = {512, 224, 16, 768, 3072, 0, 12, 77, 49408, 512, 2048, 0, 12, 0, 0, 0},
                                    vit_h_14 = {1024,  224,  14,   1280, 5120, 0, 32, 77,
                                                49408, 1024, 4096, 0,    24,   0, 0,  0},
                                    vit_g_14 = {1024,  224,  14,   1408, 6144, 0, 40, 77,
                                                49408, 1024, 4096, 0,    24,   0, 0,  0},
                                    vit_big_g_14 = {1280,  224,  14,   1664, 8192, 0, 48, 77,
                                                    49408, 1280, 5120, 0,    32,   0, 0,  0};

/* open_clip_config.json and config.json as they lie beside LAION's weights, without what is the same in all of them. */
#define OPEN_CLIP_TEXT(width, heads, layers)                                                                           \
    "\"text_cfg\": {\"context_length\": 77, \"vocab_size\": 49408, \"width\": " #width ", \"heads\": " #heads          \
    ", \"layers\": " #layers "}}"
static const char open_clip_h[] =
    "{\"model_cfg\": {\"embed_dim\": 1024, \"vision_cfg\": {\"image_size\": 224, \"layers\": 32, \"width\": 1280, "
    "\"head_width\": 80, \"patch_size\": 14}, " OPEN_CLIP_TEXT(
        1024, 16,
        24) ", \"preprocess_cfg\": {\"mean\": [0.48145466, 0.4578275, 0.40821073], \"std\": [0.26862954, 0.26130258, "
            "0.27577711]}}";
static const char open_clip_g[] =
    "{\"embed_dim\": 1024, \"vision_cfg\": {\"image_size\": 224, \"layers\": 40, \"width\": 1408, \"head_width\": 88, "
    "\"mlp_ratio\": 4.3637, \"patch_size\": 14}, " OPEN_CLIP_TEXT(1024, 16, 24);
static const char open_clip_big_g[] =
    "{\"embed_dim\": 1280, \"vision_cfg\": {\"image_size\": 224, \"layers\": 48, \"width\": 1664, \"head_width\": 104, "
    "\"mlp_ratio\": 4.9231, \"patch_size\": 14}, " OPEN_CLIP_TEXT(1280, 20, 32);
static const char open_clip_b_quick[] =
    "\xef\xbb\xbf{\"embed_dim\": 512, \"quick_gelu\": true, \"vision_cfg\": {\"patch_size\": 16}, \"text_cfg\": {}}";
static const char transformers_h[] =
    "{\"model_type\": \"clip\", \"projection_dim\": 1024, \"text_config\": {\"hidden_size\": 1024, "
    "\"intermediate_size\": 4096, \"num_hidden_layers\": 24, \"num_attention_heads\": 16, \"hidden_act\": \"gelu\"}, "
    "\"vision_config\": {\"hidden_size\": 1280, \"intermediate_size\": 5120, \"num_hidden_layers\": 32, "
    "\"num_attention_heads\": 16, \"patch_size\": 14, \"hidden_act\": \"gelu\"}}";
/* Older files repeat a section under another name, which wins; keys with default values are left out. */
static const char transformers_b[] =
    "{\"text_config_dict\": null, \"text_config\": {}, \"vision_config\": {\"patch_size\": 32}, "
    "\"vision_config_dict\": {\"patch_size\": 16}}";

static struct scratch scratch;

/* ---- weights of which only the header is there ---- */

static void add_entry(struct text *header, size_t *offset, const char *name, int rank, const size_t *shape)
{
    size_t bytes = 4;
    text_add(header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", name);
    for (int i = 0; i < rank; i++) {
        text_add(header, i > 0 ? ",%zu" : "%zu", shape[i]);
        bytes *= shape[i];
    }
    text_add(header, "],\"data_offsets\":[%zu,%zu]}", *offset, *offset + bytes);
    *offset += bytes;
}

static void write_weights(const struct clip_dimensions *dimensions, const char *metadata, bool archive)
{
    static const char *const sizes[] = {"input_resolution", "context_length", "vocab_size"};
    struct text header = {0};
    size_t offset = 0;
    text_add(&header, "{\"__metadata__\":{%s}", metadata);
    for (size_t i = 0; i < clip_tensors(dimensions); i++) {
        struct clip_tensor tensor = clip_tensor_at(dimensions, CLIP_OPENAI, i);
        add_entry(&header, &offset, tensor.openai, tensor.rank, tensor.shape);
    }
    for (size_t i = 0; archive && i < 3; i++)
        add_entry(&header, &offset, sizes[i], 0, NULL);
    text_add(&header, "}");
    assert_false(header.failed);
    FILE *file = fopen(scratch_file(&scratch, "weights.safetensors"), "wb");
    uint64_t length = header.size;
    assert_non_null(file);
    assert_int_equal(fwrite(&length, sizeof length, 1, file), 1);
    assert_int_equal(fwrite(header.data, 1, header.size, file), header.size);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(ftruncate(fileno(file), (off_t)(8 + header.size + offset)), 0); /* a hole */
    fclose(file);
    text_free(&header);
}

static status look(struct clip_config *config, const struct clip_stated *stated)
{
    return clip_config_of(config, scratch_file(&scratch, "weights.safetensors"), stated, &error);
}

static void expect(const struct clip_stated *stated, size_t image_heads, size_t text_heads, enum activation activation)
{
    struct clip_config config;
    must(look(&config, stated));
    assert_int_equal(config.image_heads, image_heads);
    assert_int_equal(config.text_heads, text_heads);
    assert_int_equal(config.activation, activation);
}

#define REFUSED(stated, ...) must_refuse(look(&config_of_none, stated), ERROR_FORMAT, __VA_ARGS__)
static struct clip_config config_of_none;

static void beside(const char *name, const char *text)
{
    scratch_write_text(&scratch, name, text);
}

static void forget(const char *name)
{
    assert_int_equal(unlink(scratch_file(&scratch, name)), 0);
}

static struct clip_stated say(size_t image_heads, size_t text_heads, enum activation activation)
{
    return (struct clip_stated){
        .config = {.image_heads = image_heads, .text_heads = text_heads, .activation = activation},
        .heads_by = "model.heads",
        .activation_by = "model.activation"};
}

/* ---- tests ---- */

TEST(nothing_is_guessed)
{
    struct clip_stated nothing = say(0, 0, ACTIVATION_NONE), heads = say(16, 16, ACTIVATION_NONE),
                       both = say(16, 16, ACTIVATION_GELU);
    write_weights(&vit_h_14, "", false);
    REFUSED(&nothing, "weights.safetensors", "heads is unknown", "NAME.json", "open_clip_config.json", "config.json",
            "model.heads");
    REFUSED(NULL, "heads is unknown");
    REFUSED(&heads, "activation is unknown", "config.json", "model.activation", "quick_gelu", "gelu");
    expect(&both, 16, 16, ACTIVATION_GELU);
    struct clip_stated odd = say(17, 16, ACTIVATION_GELU);
    REFUSED(&odd, "divides", "1280", "17", "model.heads");
}

TEST(open_clip_says_it)
{
    write_weights(&vit_h_14, "", false);
    beside("open_clip_config.json", open_clip_h);
    expect(NULL, 16, 16, ACTIVATION_GELU);
    write_weights(&vit_g_14, "", false);
    beside("open_clip_config.json", open_clip_g);
    expect(NULL, 16, 16, ACTIVATION_GELU);
    write_weights(&vit_big_g_14, "", false);
    beside("open_clip_config.json", open_clip_big_g);
    expect(NULL, 16, 20, ACTIVATION_GELU);
    write_weights(&vit_b_16, "", false);
    beside("open_clip_config.json", open_clip_b_quick);
    expect(NULL, 12, 8, ACTIVATION_QUICK_GELU);
    forget("open_clip_config.json");
}

TEST(transformers_says_it)
{
    write_weights(&vit_h_14, "", false);
    beside("config.json", transformers_h);
    expect(NULL, 16, 16, ACTIVATION_GELU);
    beside("open_clip_config.json", open_clip_h); /* both lie beside LAION's weights */
    expect(NULL, 16, 16, ACTIVATION_GELU);
    forget("open_clip_config.json");
    write_weights(&vit_b_16, "", false);
    beside("config.json", transformers_b);
    expect(NULL, 12, 8, ACTIVATION_QUICK_GELU);
    forget("config.json");
}

TEST(the_namesake_comes_first)
{
    write_weights(&vit_h_14, "", false);
    beside("weights.json", open_clip_h);
    beside("open_clip_config.json", open_clip_g);
    beside("config.json", "not even JSON");
    expect(NULL, 16, 16, ACTIVATION_GELU);
    beside("weights.json", "{\"dims\": {}}");
    REFUSED(NULL, "weights.json", "vision_cfg", "vision_config");
    forget("weights.json");
    REFUSED(NULL, "open_clip_config.json", "vision_cfg.layers is 40", "32");
    forget("open_clip_config.json");
    REFUSED(NULL, "config.json:1", "JSON");
    beside("config.json", "{\"dims\": {\"vision_heads\": 2}}"); /* of something else */
    REFUSED(NULL, "heads is unknown");
    forget("config.json");
}

TEST(metadata_says_it)
{
    write_weights(&vit_g_14, "\"image_heads\":\"16\",\"text_heads\":\"16\",\"activation\":\"gelu\"", false);
    expect(NULL, 16, 16, ACTIVATION_GELU);
    write_weights(&vit_g_14, "\"image_heads\":\"many\"", false);
    REFUSED(NULL, "image_heads", "many");
    write_weights(&vit_g_14, "\"activation\":\"tanh\"", false);
    REFUSED(NULL, "activation", "tanh");
    write_weights(&vit_b_16, "\"format\":\"pt\"", false); /* as everybody's safetensors have */
    REFUSED(NULL, "activation is unknown");
}

/* LAION's ViT-B/16 has OpenAI's shapes and GELU: shapes say heads alone. */
TEST(published_models_are_known)
{
    struct clip_dimensions longer = vit_b_16;
    struct clip_stated gelu = say(0, 0, ACTIVATION_GELU);
    write_weights(&vit_b_16, "", true);
    expect(NULL, 12, 8, ACTIVATION_QUICK_GELU);
    write_weights(&vit_b_16, "", false);
    REFUSED(NULL, "activation is unknown");
    expect(&gelu, 12, 8, ACTIVATION_GELU);
    longer.context = 248;
    write_weights(&longer, "", true);
    REFUSED(&gelu, "heads is unknown");
}

TEST(contradictions_are_named)
{
    struct clip_stated heads = say(20, 16, ACTIVATION_NONE), activation = say(0, 0, ACTIVATION_QUICK_GELU);
    write_weights(&vit_h_14, "", false);
    beside("open_clip_config.json", open_clip_h);
    REFUSED(&heads, "20 heads according to model.heads", "16 according to", "open_clip_config.json");
    REFUSED(&activation, "quick_gelu according to model.activation", "gelu according to", "open_clip_config.json");
    write_weights(&vit_h_14, "\"activation\":\"quick_gelu\"", false);
    REFUSED(NULL, "metadata", "open_clip_config.json");
    forget("open_clip_config.json");
}

TEST(other_models_are_refused)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"{\"vision_config\": {}, \"model_type\": \"siglip\"}", "siglip"},
        {"{\"vision_config\": {\"patch_size\": 16, \"hidden_act\": \"silu\"}}", "silu"},
        {"{\"vision_config\": {\"patch_size\": 16, \"hidden_act\": \"gelu\"}}", "both towers"},
        {"{\"vision_config\": {\"patch_size\": 16, \"layer_norm_eps\": 1e-6}}", "layer_norm_eps"},
        {"{\"vision_config\": {\"patch_size\": 16, \"num_attention_heads\": \"12\"}}", "num_attention_heads"},
        {"{\"vision_config\": {}}", "patch_size is 32 by default"},
        {"{\"embed_dim\": 512, \"vision_cfg\": {\"attentional_pool\": true}, \"text_cfg\": {}}", "attentional_pool"},
        {"{\"embed_dim\": 512, \"vision_cfg\": {\"mlp_ratio\": 3}, \"text_cfg\": {}}", "mlp_ratio"},
        {"{\"embed_dim\": 512, \"vision_cfg\": {}, \"text_cfg\": {\"mlp_ratio\": 3}}", "text_cfg.mlp_ratio"},
        {"{\"embed_dim\": 512, \"vision_cfg\": {\"head_width\": 65}, \"text_cfg\": {}}", "head_width"},
        {"{\"embed_dim\": 512, \"vision_cfg\": {\"layers\": [3, 4, 6, 3]}, \"text_cfg\": {}}", "layers"},
        {"{\"model_cfg\": {\"embed_dim\": 512, \"vision_cfg\": {}, \"text_cfg\": {}}, \"preprocess_cfg\": {\"mean\": "
         "[0.5, 0.5, 0.5], \"std\": [0.5, 0.5, 0.4]}}",
         "preprocess_cfg.mean"},
        {"{\"embed_dim\": 512, \"vision_cfg\": {}, \"text_cfg\": {}, \"quick_gelu\": 1}", "quick_gelu"},
    };
    write_weights(&vit_b_16, "", true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        beside("config.json", cases[i].text);
        REFUSED(NULL, "config.json", cases[i].word);
    }
    forget("config.json");
}

/* LAION's ViT-L/14 and others; CLIP's own where nothing says it. */
TEST(images_are_normalised_as_is_stated)
{
    static const char half[] =
        "{\"embed_dim\": 512, \"vision_cfg\": {}, \"text_cfg\": {}, \"preprocess_cfg\": {\"mean\": [0.5, "
        "0.5, 0.5], \"std\": [0.5, 0.5, 0.5]}}";
    struct clip_config config;
    write_weights(&vit_b_16, "", true);
    must(look(&config, NULL));
    assert_int_equal(config.pixels, PIXELS_CLIP);
    beside("open_clip_config.json", half);
    must(look(&config, NULL));
    assert_int_equal(config.pixels, PIXELS_HALF);
    write_weights(&vit_b_16, "\"pixels\":\"clip\"", true);
    REFUSED(NULL, "normalised as half", "open_clip_config.json", "as clip");
    forget("open_clip_config.json");
}

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

TEST_GROUP(set_up, tear_down)
