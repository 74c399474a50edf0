#include "models/files/clip_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const float clip_pixel_mean[3] = {0.48145466f, 0.4578275f, 0.40821073f};
const float clip_pixel_deviation[3] = {0.26862954f, 0.26130258f, 0.27577711f};

/* Symbolic sizes; NONE ends a shape. WIDTH and HIDDEN belong to the block's tower. */
enum size {
    NONE,
    CHANNELS,
    PATCH,
    EMBED,
    IMAGE_WIDTH,
    POSITIONS,
    CONTEXT,
    VOCABULARY,
    TEXT_WIDTH,
    WIDTH,
    WIDTH_3,
    HIDDEN
};

struct entry {
    const char *openai, *huggingface; /* of CLIP_STACKED: with %c for q, k or v */
    enum clip_layout layout;
    enum size shape[CLIP_RANK];
};

static const struct entry model_entries[] = {
    {"logit_scale", "logit_scale", CLIP_SAME, {NONE}},
    {"visual.class_embedding", "vision_model.embeddings.class_embedding", CLIP_SAME, {IMAGE_WIDTH}},
    {"visual.conv1.weight",
     "vision_model.embeddings.patch_embedding.weight",
     CLIP_SAME,
     {IMAGE_WIDTH, CHANNELS, PATCH, PATCH}},
    {"visual.positional_embedding",
     "vision_model.embeddings.position_embedding.weight",
     CLIP_SAME,
     {POSITIONS, IMAGE_WIDTH}},
    {"visual.ln_pre.weight", "vision_model.pre_layrnorm.weight", CLIP_SAME, {IMAGE_WIDTH}},
    {"visual.ln_pre.bias", "vision_model.pre_layrnorm.bias", CLIP_SAME, {IMAGE_WIDTH}},
    {"visual.ln_post.weight", "vision_model.post_layernorm.weight", CLIP_SAME, {IMAGE_WIDTH}},
    {"visual.ln_post.bias", "vision_model.post_layernorm.bias", CLIP_SAME, {IMAGE_WIDTH}},
    {"visual.proj", "visual_projection.weight", CLIP_TRANSPOSED, {IMAGE_WIDTH, EMBED}},
    {"token_embedding.weight", "text_model.embeddings.token_embedding.weight", CLIP_SAME, {VOCABULARY, TEXT_WIDTH}},
    {"positional_embedding", "text_model.embeddings.position_embedding.weight", CLIP_SAME, {CONTEXT, TEXT_WIDTH}},
    {"ln_final.weight", "text_model.final_layer_norm.weight", CLIP_SAME, {TEXT_WIDTH}},
    {"ln_final.bias", "text_model.final_layer_norm.bias", CLIP_SAME, {TEXT_WIDTH}},
    {"text_projection", "text_projection.weight", CLIP_TRANSPOSED, {TEXT_WIDTH, EMBED}},
};

/* After "<prefix>.<block>." */
static const struct entry block_entries[] = {
    {"attn.in_proj_weight", "self_attn.%c_proj.weight", CLIP_STACKED, {WIDTH_3, WIDTH}},
    {"attn.in_proj_bias", "self_attn.%c_proj.bias", CLIP_STACKED, {WIDTH_3}},
    {"attn.out_proj.weight", "self_attn.out_proj.weight", CLIP_SAME, {WIDTH, WIDTH}},
    {"attn.out_proj.bias", "self_attn.out_proj.bias", CLIP_SAME, {WIDTH}},
    {"ln_1.weight", "layer_norm1.weight", CLIP_SAME, {WIDTH}},
    {"ln_1.bias", "layer_norm1.bias", CLIP_SAME, {WIDTH}},
    {"mlp.c_fc.weight", "mlp.fc1.weight", CLIP_SAME, {HIDDEN, WIDTH}},
    {"mlp.c_fc.bias", "mlp.fc1.bias", CLIP_SAME, {HIDDEN}},
    {"mlp.c_proj.weight", "mlp.fc2.weight", CLIP_SAME, {WIDTH, HIDDEN}},
    {"mlp.c_proj.bias", "mlp.fc2.bias", CLIP_SAME, {WIDTH}},
    {"ln_2.weight", "layer_norm2.weight", CLIP_SAME, {WIDTH}},
    {"ln_2.bias", "layer_norm2.bias", CLIP_SAME, {WIDTH}},
};

enum {
    MODEL_ENTRIES = sizeof model_entries / sizeof *model_entries,
    BLOCK_ENTRIES = sizeof block_entries / sizeof *block_entries
};

/* By naming, then tower. */
static const char *const block_prefixes[2][2] = {
    {"visual.transformer.resblocks.", "transformer.resblocks."},
    {"vision_model.encoder.layers.", "text_model.encoder.layers."},
};

static size_t size_of(enum size size, const struct clip_dimensions *dimensions, enum clip_tower tower)
{
    size_t width = tower == CLIP_IMAGE ? dimensions->image_width : dimensions->text_width;
    size_t grid = dimensions->resolution / dimensions->patch;
    switch (size) {
    case NONE:
        break;
    case CHANNELS:
        return 3;
    case PATCH:
        return dimensions->patch;
    case EMBED:
        return dimensions->embed;
    case IMAGE_WIDTH:
        return dimensions->image_width;
    case POSITIONS:
        return grid * grid + 1;
    case CONTEXT:
        return dimensions->context;
    case VOCABULARY:
        return dimensions->vocabulary;
    case TEXT_WIDTH:
        return dimensions->text_width;
    case WIDTH:
        return width;
    case WIDTH_3:
        return 3 * width;
    case HIDDEN:
        return tower == CLIP_IMAGE ? dimensions->image_hidden : dimensions->text_hidden;
    }
    return 0;
}

static void fill_shape(struct clip_tensor *tensor, const struct entry *entry, const struct clip_dimensions *dimensions,
                       enum clip_tower tower)
{
    tensor->layout = entry->layout;
    while (tensor->rank < CLIP_RANK && entry->shape[tensor->rank] != NONE) {
        tensor->shape[tensor->rank] = size_of(entry->shape[tensor->rank], dimensions, tower);
        tensor->rank++;
    }
}

static struct clip_tensor model_tensor(const struct entry *entry, const struct clip_dimensions *dimensions)
{
    struct clip_tensor tensor = {.rank = 0};
    snprintf(tensor.openai, CLIP_NAME, "%s", entry->openai);
    snprintf(tensor.huggingface[0], CLIP_NAME, "%s", entry->huggingface);
    fill_shape(&tensor, entry, dimensions, CLIP_IMAGE);
    return tensor;
}

static struct clip_tensor block_tensor(const struct entry *entry, const struct clip_dimensions *dimensions,
                                       enum clip_tower tower, size_t block)
{
    struct clip_tensor tensor = {.rank = 0};
    snprintf(tensor.openai, CLIP_NAME, "%s%zu.%s", block_prefixes[0][tower], block, entry->openai);
    int sources = entry->layout == CLIP_STACKED ? CLIP_SOURCES : 1;
    for (int i = 0; i < sources; i++) {
        char *name = tensor.huggingface[i];
        snprintf(name, CLIP_NAME, "%s%zu.%s", block_prefixes[1][tower], block, entry->huggingface);
        char *letter = strstr(name, "%c");
        if (letter != NULL) {
            *letter = "qkv"[i];
            memmove(letter + 1, letter + 2, strlen(letter + 2) + 1);
        }
    }
    fill_shape(&tensor, entry, dimensions, tower);
    return tensor;
}

struct clip_words clip_dimensions_words(const struct clip_dimensions *d)
{
    struct clip_words words;
    snprintf(
        words.text, sizeof words.text,
        "%zu values, images of %zu pixels in patches of %zu, %zu blocks of width %zu with %zu heads and %zu hidden "
        "units, texts of %zu from %zu tokens, %zu blocks of width %zu with %zu heads and %zu hidden units",
        d->embed, d->resolution, d->patch, d->image_blocks, d->image_width, d->image_heads, d->image_hidden, d->context,
        d->vocabulary, d->text_blocks, d->text_width, d->text_heads, d->text_hidden);
    return words;
}

size_t clip_tensors(const struct clip_dimensions *dimensions)
{
    return MODEL_ENTRIES + BLOCK_ENTRIES * (dimensions->image_blocks + dimensions->text_blocks);
}

struct clip_tensor clip_tensor_at(const struct clip_dimensions *dimensions, size_t index)
{
    if (index < MODEL_ENTRIES)
        return model_tensor(&model_entries[index], dimensions);
    size_t block = (index - MODEL_ENTRIES) / BLOCK_ENTRIES;
    const struct entry *entry = &block_entries[(index - MODEL_ENTRIES) % BLOCK_ENTRIES];
    if (block < dimensions->image_blocks)
        return block_tensor(entry, dimensions, CLIP_IMAGE, block);
    return block_tensor(entry, dimensions, CLIP_TEXT, block - dimensions->image_blocks);
}

bool clip_block_of(const char *name, bool huggingface, enum clip_tower tower, size_t *block)
{
    const char *prefix = block_prefixes[huggingface][tower];
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9')
        return false;
    char *end;
    *block = strtoul(name + length, &end, 10);
    return *end == '.';
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

bool clip_name_is_harmless(const char *name)
{
    static const char *const whole[] = {"input_resolution", "context_length", "vocab_size", "attn_mask", "mean", "std"};
    static const char *const endings[] = {"position_ids", "num_batches_tracked", ".attn_mask"};
    static const char *const modules[] = {".adaptmlp.", ".adaptmlp_list.", ".router_list.", ".w_noise_list.",
                                          ".ln_3.",     ".router.",        ".mean",         ".std"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(name, endings[i]))
            return true;
    size_t block;
    bool in_block = clip_block_of(name, false, CLIP_IMAGE, &block) || clip_block_of(name, false, CLIP_TEXT, &block);
    for (size_t i = 0; in_block && i < sizeof modules / sizeof *modules; i++)
        if (strstr(name, modules[i]) != NULL)
            return true;
    return false;
}

const char *clip_other_model(const char *name, size_t rank)
{
    static const struct {
        const char *part, *model;
    } others[] = {
        {"text_decoder.", "CoCa, whose towers pool by attention"},
        {"logit_bias", "SigLIP, which has another loss and other towers"},
        {"vision_model.head.probe", "SigLIP, whose image tower pools by attention"},
        {"visual.trunk.attn_pool.", "SigLIP, whose image tower pools by attention"},
        {"visual.attnpool.", "a CLIP with a ResNet (RN50 and its like)"},
        {"visual.layer1.0.", "a CLIP with a ResNet (RN50 and its like)"},
        {"visual.trunk.blocks.0.attn.q_proj.", "an EVA-CLIP, whose image tower has rotary embeddings"},
        {"visual.blocks.0.", "an EVA-CLIP, whose image tower is built otherwise"},
        {"visual.trunk.", "a CLIP with an image tower of timm's"},
        {"visual.attn_pool.", "a CLIP that pools by attention"},
        {"text.transformer.", "a CLIP with a text tower of its own (open_clip's CustomTextCLIP)"},
    };
    _Static_assert(sizeof others / sizeof *others == CLIP_OTHER_RANKS, "one rank each");
    return strstr(name, others[rank].part) != NULL ? others[rank].model : NULL;
}
