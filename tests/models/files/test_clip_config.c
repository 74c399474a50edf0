/* What is known of heads and activation: from metadata, from configurations beside the weights, from the caller, or not at
 * all. Of the weights only the header is looked at, so that the published sizes cost nothing here. */
#include <stdio.h>
#include <unistd.h>

#include "core/text.h"
#include "models/files/clip_config.h"
#include "tests/datasets/scratch.h"
#include "tests/models/small.h"

static const struct clip_dimensions vit_h_14 = {1024,  224,  14,   1280, 5120, 0, 32, 77,
                                                49408, 1024, 4096, 0,    24,   0, 0,  0},
                                    vit_g_14 = {1024,  224,  14,   1408, 6144, 0, 40, 77,
                                                49408, 1024, 4096, 0,    24,   0, 0,  0},
                                    vit_big_g_14 = {1280,  224,  14,   1664, 8192, 0, 48, 77,
                                                    49408, 1280, 5120, 0,    32,   0, 0,  0},
                                    longer_b_16 = {512,   224, 16,   768, 3072, 0, 12, 248,
                                                   49408, 512, 2048, 0,   12,   0, 0,  0};

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
static const char open_clip_230[] = "{\"embed_dim\": 512, \"vision_cfg\": {\"image_size\": 230}, \"text_cfg\": {}}";
static const char open_clip_half[] = "{\"embed_dim\": 512, \"vision_cfg\": {}, \"text_cfg\": {}, \"preprocess_cfg\": "
                                     "{\"mean\": [0.5, 0.5, 0.5], \"std\": "
                                     "[0.5, 0.5, 0.5]}}";
static const char transformers_h[] =
    "{\"model_type\": \"clip\", \"projection_dim\": 1024, \"text_config\": {\"hidden_size\": 1024, "
    "\"intermediate_size\": 4096, \"num_hidden_layers\": 24, \"num_attention_heads\": 16, \"hidden_act\": \"gelu\"}, "
    "\"vision_config\": {\"hidden_size\": 1280, \"intermediate_size\": 5120, \"num_hidden_layers\": 32, "
    "\"num_attention_heads\": 16, \"patch_size\": 14, \"hidden_act\": \"gelu\"}}";
/* Older files repeat a section under another name, which wins; keys with default values are left out. */
static const char transformers_b[] = "{\"text_config_dict\": null, \"text_config\": {}, \"vision_config\": "
                                     "{\"patch_size\": 32, \"hidden_act\": \"gelu\"}, "
                                     "\"vision_config_dict\": {\"patch_size\": 16}}";

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
    FILE *file = fopen(scratch_file(test_scratch(), "weights.safetensors"), "wb");
    uint64_t length = header.size;
    assert_non_null(file);
    assert_int_equal(fwrite(&length, sizeof length, 1, file), 1);
    assert_int_equal(fwrite(header.data, 1, header.size, file), header.size);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(ftruncate(fileno(file), (off_t)(8 + header.size + offset)), 0); /* a hole */
    fclose(file);
    text_free(&header);
}

static status look(struct clip_config *config, const struct clip_config *stated)
{
    struct clip_stated by = {.config = *stated, .heads_by = "model.heads", .activation_by = "model.activation"};
    return clip_config_of(config, scratch_file(test_scratch(), "weights.safetensors"),
                          stated->image_heads > 0 || stated->activation != ACTIVATION_NONE ? &by : NULL, &error);
}

/* ---- tests ---- */

static const char open_clip[] = "open_clip_config.json", transformers[] = "config.json", namesake[] = "weights.json";

static const struct {
    const struct clip_dimensions *weights;
    const char *metadata;
    bool archive; /* one of OpenAI's */
    struct {
        const char *name, *text;
    } beside[3];
    struct clip_config stated, expected; /* heads of images and texts, activation, pixels */
    const char *refused[6];              /* or words */
} cases[] = {
    /* Nothing is guessed. */
    {.weights = &vit_h_14,
     .refused = {"weights.safetensors: ", "heads is unknown", "NAME.json, open_clip_config.json", "config.json",
                 "from the caller"}},
    {.weights = &vit_h_14,
     .stated = {.image_heads = 16, .text_heads = 16},
     .refused = {"activation is unknown", "config.json", "model.activation", "quick_gelu", "gelu"}},
    {.weights = &vit_h_14,
     .stated = {17, 16, ACTIVATION_GELU, 0, 0},
     .refused = {"divides", "1280", "17", "model.heads"}},
    {.weights = &vit_h_14, .stated = {16, 16, ACTIVATION_GELU, 0, 0}, .expected = {16, 16, ACTIVATION_GELU, 0, 0}},
    /* open_clip says it; transformers says it, or both, as beside LAION's weights. */
    {.weights = &vit_h_14, .beside = {{open_clip, open_clip_h}}, .expected = {16, 16, ACTIVATION_GELU, 0, 0}},
    {.weights = &vit_g_14, .beside = {{open_clip, open_clip_g}}, .expected = {16, 16, ACTIVATION_GELU, 0, 0}},
    {.weights = &vit_big_g_14, .beside = {{open_clip, open_clip_big_g}}, .expected = {16, 20, ACTIVATION_GELU, 0, 0}},
    {.weights = &vit_b_16,
     .beside = {{open_clip, open_clip_b_quick}},
     .expected = {12, 8, ACTIVATION_QUICK_GELU, 0, 0}},
    {.weights = &vit_h_14, .beside = {{transformers, transformers_h}}, .expected = {16, 16, ACTIVATION_GELU, 0, 0}},
    {.weights = &vit_h_14,
     .beside = {{transformers, transformers_h}, {open_clip, open_clip_h}},
     .expected = {16, 16, ACTIVATION_GELU, 0, 0}},
    {.weights = &vit_b_16,
     .beside = {{transformers, transformers_b}},
     .expected = {12, 8, ACTIVATION_QUICK_GELU, 0, 0}},
    /* The namesake comes first. */
    {.weights = &vit_h_14,
     .beside = {{namesake, open_clip_h}, {open_clip, open_clip_g}, {transformers, "not even JSON"}},
     .expected = {16, 16, ACTIVATION_GELU, 0, 0}},
    {.weights = &vit_h_14,
     .beside = {{namesake, "{\"dims\": {}}"}, {open_clip, open_clip_g}, {transformers, "not even JSON"}},
     .refused = {"weights.json", "vision_cfg", "vision_config"}},
    {.weights = &vit_h_14,
     .beside = {{open_clip, open_clip_g}, {transformers, "not even JSON"}},
     .refused = {"open_clip_config.json", "vision_cfg.layers is 40", "32"}},
    {.weights = &vit_h_14, .beside = {{transformers, "not even JSON"}}, .refused = {"config.json:1", "JSON"}},
    {.weights = &vit_h_14,
     .beside = {{transformers, "{\"dims\": {\"vision_heads\": 2}}"}}, /* of something else */
     .refused = {"heads is unknown"}},
    /* Metadata says it; "format" is what everybody's safetensors have. */
    {.weights = &vit_g_14,
     .metadata = "\"image_heads\":\"16\",\"text_heads\":\"16\",\"activation\":\"gelu\"",
     .expected = {16, 16, ACTIVATION_GELU, 0, 0}},
    {.weights = &vit_g_14, .metadata = "\"image_heads\":\"many\"", .refused = {"image_heads", "many"}},
    {.weights = &vit_g_14, .metadata = "\"activation\":\"tanh\"", .refused = {"activation", "tanh"}},
    {.weights = &vit_b_16, .metadata = "\"format\":\"pt\"", .refused = {"activation is unknown"}},
    /* Published models are known. LAION's ViT-B/16 has OpenAI's shapes and GELU: shapes say heads alone. */
    {.weights = &vit_b_16, .archive = true, .expected = {12, 8, ACTIVATION_QUICK_GELU, PIXELS_CLIP, 0}},
    {.weights = &vit_b_16, .refused = {"activation is unknown"}},
    {.weights = &vit_b_16, .stated = {.activation = ACTIVATION_GELU}, .expected = {12, 8, ACTIVATION_GELU, 0, 0}},
    {.weights = &longer_b_16,
     .archive = true,
     .stated = {.activation = ACTIVATION_GELU},
     .refused = {"heads is unknown", "model.heads"}},
    /* Contradictions are named. */
    {.weights = &vit_h_14,
     .beside = {{open_clip, open_clip_h}},
     .stated = {.image_heads = 20, .text_heads = 16},
     .refused = {"20 heads according to model.heads", "16 according to", "open_clip_config.json"}},
    {.weights = &vit_h_14,
     .beside = {{open_clip, open_clip_h}},
     .stated = {.activation = ACTIVATION_QUICK_GELU},
     .refused = {"quick_gelu according to model.activation", "gelu according to", "open_clip_config.json"}},
    {.weights = &vit_h_14,
     .metadata = "\"activation\":\"quick_gelu\"",
     .beside = {{open_clip, open_clip_h}},
     .refused = {"metadata", "open_clip_config.json"}},
    /* Images are normalised as is stated, by LAION's ViT-L/14 and others. */
    {.weights = &vit_b_16,
     .archive = true,
     .beside = {{open_clip, open_clip_half}},
     .expected = {12, 8, ACTIVATION_GELU, PIXELS_HALF, 0}},
    {.weights = &vit_b_16,
     .metadata = "\"pixels\":\"clip\"",
     .archive = true,
     .beside = {{open_clip, open_clip_half}},
     .refused = {"normalised as half", "open_clip_config.json", "as clip"}},
    {.weights = &vit_b_16,
     .archive = true,
     .beside = {{"preprocessor_config.json", "{\"resample\": 3}"}},
     .expected = {12, 8, ACTIVATION_QUICK_GELU, PIXELS_CLIP, 0}},
    {.weights = &vit_b_16,
     .archive = true,
     .beside = {{"preprocessor_config.json", "{\"resample\": 2}"}},
     .refused = {"preprocessor_config.json", "expected 3 (bicubic)", "found 2"}},
    /* Pixels beyond the patches. */
    {.weights = &vit_b_16, .beside = {{open_clip, open_clip_230}}, .expected = {12, 8, ACTIVATION_GELU, 0, 230}},
    {.weights = &vit_b_16,
     .metadata = "\"resolution\":\"231\"",
     .beside = {{open_clip, open_clip_230}},
     .refused = {"230 pixels according to", "open_clip_config.json", "231"}},
};

TEST(heads_and_activation_are_what_is_said_of_them)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct clip_config *expected = &cases[i].expected;
        struct clip_config found;
        write_weights(cases[i].weights, cases[i].metadata != NULL ? cases[i].metadata : "", cases[i].archive);
        for (size_t k = 0; k < 3 && cases[i].beside[k].name != NULL; k++)
            scratch_write_text(test_scratch(), cases[i].beside[k].name, cases[i].beside[k].text);
        print_message("case %zu\n", i);
        status result = look(&found, &cases[i].stated);
        if (cases[i].refused[0] != NULL) {
            check_refusal(result, ERROR_FORMAT, cases[i].refused);
        } else {
            must(result);
            assert_true(found.image_heads == expected->image_heads && found.text_heads == expected->text_heads &&
                        found.activation == expected->activation && found.resolution == expected->resolution);
            assert_true(expected->pixels == PIXELS_UNSTATED || found.pixels == expected->pixels);
        }
        for (size_t k = 0; k < 3 && cases[i].beside[k].name != NULL; k++)
            assert_int_equal(unlink(scratch_file(test_scratch(), cases[i].beside[k].name)), 0);
    }
}

TEST(other_models_are_refused)
{
    static const struct {
        const char *text, *word;
    } models[] = {
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
        {"{\"embed_dim\": 512, \"vision_cfg\": {}, \"text_cfg\": {}, \"preprocess_cfg\": {\"resize_mode\": "
         "\"squash\"}}",
         "squash"},
        {"{\"embed_dim\": 512, \"vision_cfg\": {}, \"text_cfg\": {}, \"quick_gelu\": 1}", "quick_gelu"},
    };
    struct clip_config found;
    write_weights(&vit_b_16, "", true);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        scratch_write_text(test_scratch(), transformers, models[i].text);
        must_refuse(look(&found, &(struct clip_config){0}), ERROR_FORMAT, transformers, models[i].word);
    }
    assert_int_equal(unlink(scratch_file(test_scratch(), transformers)), 0);
}
