#include "models/files/clip_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Symbolic sizes; NONE ends a shape. WIDTH and HIDDEN belong to the block's tower. */
enum size {
    NONE,
    CHANNELS,
    PATCH,
    EMBED,
    IMAGE_WIDTH,
    IMAGE_WIDTH_3,
    POSITIONS,
    POOL_HIDDEN,
    CONTEXT,
    VOCABULARY,
    TEXT_WIDTH,
    WIDTH,
    WIDTH_3,
    HIDDEN
};

enum model { BOTH, CLIP, SIGLIP };

/* Names in the order of enum clip_naming; NULL: none there. {q|k|v} stands for the parts of a stack. */
struct entry {
    enum model model;
    const char *names[CLIP_NAMINGS];
    bool transposed; /* but under OpenAI's names */
    enum size shape[CLIP_RANK];
};

#define HF_IMAGE "vision_model.embeddings."
#define HF_TEXT "text_model.embeddings."
#define HF_POOL "vision_model.head."
#define TRUNK "visual.trunk."
#define TRUNK_POOL "visual.trunk.attn_pool."

/* clang-format off */
static const struct entry model_entries[] = {
    {BOTH, {"logit_scale", "logit_scale", "logit_scale"}, false, {NONE}},
    {SIGLIP, {"logit_bias", "logit_bias", "logit_bias"}, false, {NONE}},
    {CLIP, {"visual.class_embedding", HF_IMAGE "class_embedding"}, false, {IMAGE_WIDTH}},
    {BOTH, {"visual.conv1.weight", HF_IMAGE "patch_embedding.weight", TRUNK "patch_embed.proj.weight"}, false,
     {IMAGE_WIDTH, CHANNELS, PATCH, PATCH}},
    {SIGLIP, {"visual.conv1.bias", HF_IMAGE "patch_embedding.bias", TRUNK "patch_embed.proj.bias"}, false, {IMAGE_WIDTH}},
    {BOTH, {"visual.positional_embedding", HF_IMAGE "position_embedding.weight", TRUNK "pos_embed"}, false,
     {POSITIONS, IMAGE_WIDTH}},
    {CLIP, {"visual.ln_pre.weight", "vision_model.pre_layrnorm.weight"}, false, {IMAGE_WIDTH}},
    {CLIP, {"visual.ln_pre.bias", "vision_model.pre_layrnorm.bias"}, false, {IMAGE_WIDTH}},
    {BOTH, {"visual.ln_post.weight", "vision_model.post_layernorm.weight", TRUNK "norm.weight"}, false, {IMAGE_WIDTH}},
    {BOTH, {"visual.ln_post.bias", "vision_model.post_layernorm.bias", TRUNK "norm.bias"}, false, {IMAGE_WIDTH}},
    {CLIP, {"visual.proj", "visual_projection.weight"}, true, {IMAGE_WIDTH, EMBED}},
    {SIGLIP, {"visual.attn_pool.probe", HF_POOL "probe", TRUNK_POOL "latent"}, false, {IMAGE_WIDTH}},
    {SIGLIP, {"visual.attn_pool.attn.in_proj_weight", HF_POOL "attention.in_proj_weight", TRUNK_POOL "{q|kv}.weight"},
     false, {IMAGE_WIDTH_3, IMAGE_WIDTH}},
    {SIGLIP, {"visual.attn_pool.attn.in_proj_bias", HF_POOL "attention.in_proj_bias", TRUNK_POOL "{q|kv}.bias"}, false,
     {IMAGE_WIDTH_3}},
    {SIGLIP, {"visual.attn_pool.attn.out_proj.weight", HF_POOL "attention.out_proj.weight", TRUNK_POOL "proj.weight"},
     false, {IMAGE_WIDTH, IMAGE_WIDTH}},
    {SIGLIP, {"visual.attn_pool.attn.out_proj.bias", HF_POOL "attention.out_proj.bias", TRUNK_POOL "proj.bias"}, false,
     {IMAGE_WIDTH}},
    {SIGLIP, {"visual.attn_pool.ln_2.weight", HF_POOL "layernorm.weight", TRUNK_POOL "norm.weight"}, false, {IMAGE_WIDTH}},
    {SIGLIP, {"visual.attn_pool.ln_2.bias", HF_POOL "layernorm.bias", TRUNK_POOL "norm.bias"}, false, {IMAGE_WIDTH}},
    {SIGLIP, {"visual.attn_pool.mlp.c_fc.weight", HF_POOL "mlp.fc1.weight", TRUNK_POOL "mlp.fc1.weight"}, false,
     {POOL_HIDDEN, IMAGE_WIDTH}},
    {SIGLIP, {"visual.attn_pool.mlp.c_fc.bias", HF_POOL "mlp.fc1.bias", TRUNK_POOL "mlp.fc1.bias"}, false, {POOL_HIDDEN}},
    {SIGLIP, {"visual.attn_pool.mlp.c_proj.weight", HF_POOL "mlp.fc2.weight", TRUNK_POOL "mlp.fc2.weight"}, false,
     {IMAGE_WIDTH, POOL_HIDDEN}},
    {SIGLIP, {"visual.attn_pool.mlp.c_proj.bias", HF_POOL "mlp.fc2.bias", TRUNK_POOL "mlp.fc2.bias"}, false, {IMAGE_WIDTH}},
    {BOTH, {"token_embedding.weight", HF_TEXT "token_embedding.weight", "text.token_embedding.weight"}, false,
     {VOCABULARY, TEXT_WIDTH}},
    {BOTH, {"positional_embedding", HF_TEXT "position_embedding.weight", "text.positional_embedding"}, false,
     {CONTEXT, TEXT_WIDTH}},
    {BOTH, {"ln_final.weight", "text_model.final_layer_norm.weight", "text.ln_final.weight"}, false, {TEXT_WIDTH}},
    {BOTH, {"ln_final.bias", "text_model.final_layer_norm.bias", "text.ln_final.bias"}, false, {TEXT_WIDTH}},
    {CLIP, {"text_projection", "text_projection.weight"}, true, {TEXT_WIDTH, EMBED}},
    {SIGLIP, {"text_projection", "text_model.head.weight", "text.text_projection.weight"}, true, {TEXT_WIDTH, EMBED}},
    {SIGLIP, {"text_projection_bias", "text_model.head.bias", "text.text_projection.bias"}, false, {EMBED}},
};

/* After "<prefix>.<block>."; timm's are those of open_clip's image tower, whose text tower has OpenAI's. */
static const struct entry block_entries[] = {
    {BOTH, {"attn.in_proj_weight", "self_attn.{q|k|v}_proj.weight", "attn.qkv.weight"}, false, {WIDTH_3, WIDTH}},
    {BOTH, {"attn.in_proj_bias", "self_attn.{q|k|v}_proj.bias", "attn.qkv.bias"}, false, {WIDTH_3}},
    {BOTH, {"attn.out_proj.weight", "self_attn.out_proj.weight", "attn.proj.weight"}, false, {WIDTH, WIDTH}},
    {BOTH, {"attn.out_proj.bias", "self_attn.out_proj.bias", "attn.proj.bias"}, false, {WIDTH}},
    {BOTH, {"ln_1.weight", "layer_norm1.weight", "norm1.weight"}, false, {WIDTH}},
    {BOTH, {"ln_1.bias", "layer_norm1.bias", "norm1.bias"}, false, {WIDTH}},
    {BOTH, {"mlp.c_fc.weight", "mlp.fc1.weight", "mlp.fc1.weight"}, false, {HIDDEN, WIDTH}},
    {BOTH, {"mlp.c_fc.bias", "mlp.fc1.bias", "mlp.fc1.bias"}, false, {HIDDEN}},
    {BOTH, {"mlp.c_proj.weight", "mlp.fc2.weight", "mlp.fc2.weight"}, false, {WIDTH, HIDDEN}},
    {BOTH, {"mlp.c_proj.bias", "mlp.fc2.bias", "mlp.fc2.bias"}, false, {WIDTH}},
    {BOTH, {"ln_2.weight", "layer_norm2.weight", "norm2.weight"}, false, {WIDTH}},
    {BOTH, {"ln_2.bias", "layer_norm2.bias", "norm2.bias"}, false, {WIDTH}},
};
/* clang-format on */

enum {
    MODEL_ENTRIES = sizeof model_entries / sizeof *model_entries,
    BLOCK_ENTRIES = sizeof block_entries / sizeof *block_entries
};

static const char *const block_prefixes[CLIP_NAMINGS][2] = {
    {"visual.transformer.resblocks.", "transformer.resblocks."},
    {"vision_model.encoder.layers.", "text_model.encoder.layers."},
    {"visual.trunk.blocks.", "text.transformer.resblocks."},
};

size_t clip_image_positions(const struct clip_dimensions *dimensions)
{
    size_t grid = dimensions->resolution / dimensions->patch;
    return grid * grid + (dimensions->pool_hidden == 0);
}

static size_t size_of(enum size size, const struct clip_dimensions *dimensions, enum clip_tower tower)
{
    size_t width = tower == CLIP_IMAGE ? dimensions->image_width : dimensions->text_width;
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
    case IMAGE_WIDTH_3:
        return 3 * dimensions->image_width;
    case POSITIONS:
        return clip_image_positions(dimensions);
    case POOL_HIDDEN:
        return dimensions->pool_hidden;
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

/* name as "before{a|b}after", or without braces. A part has as many thirds of the stack's rows as letters. */
static void fill_parts(struct clip_tensor *tensor, const char *prefix, const char *name)
{
    const char *open = strchr(name, '{'), *close = strchr(name, '}');
    if (open == NULL || close == NULL) {
        tensor->parts = 1;
        snprintf(tensor->names[0], CLIP_NAME, "%s%s", prefix, name);
        return;
    }
    for (const char *part = open + 1; part < close; tensor->parts++) {
        size_t length = strcspn(part, "|}");
        snprintf(tensor->names[tensor->parts], CLIP_NAME, "%s%.*s%.*s%s", prefix, (int)(open - name), name, (int)length,
                 part, close + 1);
        tensor->rows[tensor->parts] = length * tensor->shape[0] / 3;
        part += length + 1;
    }
}

static struct clip_tensor tensor_of(const struct entry *entry, const struct clip_dimensions *dimensions,
                                    enum clip_naming naming, enum clip_tower tower, const char *const prefixes[2])
{
    struct clip_tensor tensor = {.transposed = entry->transposed && naming != CLIP_OPENAI};
    bool own = naming == CLIP_OPEN_CLIP && tower == CLIP_TEXT && prefixes[0][0] != 0;
    while (tensor.rank < CLIP_RANK && entry->shape[tensor.rank] != NONE) {
        tensor.shape[tensor.rank] = size_of(entry->shape[tensor.rank], dimensions, tower);
        tensor.rank++;
    }
    snprintf(tensor.openai, CLIP_NAME, "%s%s", prefixes[0], entry->names[CLIP_OPENAI]);
    fill_parts(&tensor, prefixes[1], entry->names[own ? CLIP_OPENAI : naming]);
    return tensor;
}

static bool has_entry(const struct clip_dimensions *dimensions, const struct entry *entry)
{
    return entry->model == BOTH || entry->model == (dimensions->pool_hidden > 0 ? SIGLIP : CLIP);
}

struct clip_words clip_dimensions_words(const struct clip_dimensions *d)
{
    struct clip_words words;
    snprintf(
        words.text, sizeof words.text,
        "%zu values, images of %zu pixels in patches of %zu, %zu blocks of width %zu with %zu heads and %zu hidden "
        "units, texts of %zu from %zu tokens, %zu blocks of width %zu with %zu heads and %zu hidden units%s",
        d->embed, d->resolution, d->patch, d->image_blocks, d->image_width, d->image_heads, d->image_hidden, d->context,
        d->vocabulary, d->text_blocks, d->text_width, d->text_heads, d->text_hidden,
        d->pool_hidden > 0 ? ", pooled by attention" : "");
    return words;
}

static size_t model_tensors(const struct clip_dimensions *dimensions)
{
    size_t count = 0;
    for (size_t i = 0; i < MODEL_ENTRIES; i++)
        count += has_entry(dimensions, &model_entries[i]);
    return count;
}

size_t clip_tensors(const struct clip_dimensions *dimensions)
{
    return model_tensors(dimensions) + BLOCK_ENTRIES * (dimensions->image_blocks + dimensions->text_blocks);
}

struct clip_tensor clip_tensor_at(const struct clip_dimensions *dimensions, enum clip_naming naming, size_t index)
{
    size_t of_model = model_tensors(dimensions), found = 0, block;
    for (size_t i = 0; i < MODEL_ENTRIES && index < of_model; i++)
        if (has_entry(dimensions, &model_entries[i]) && found++ == index)
            return tensor_of(&model_entries[i], dimensions, naming, CLIP_IMAGE, (const char *const[]){"", ""});
    block = (index - of_model) / BLOCK_ENTRIES;
    enum clip_tower tower = block < dimensions->image_blocks ? CLIP_IMAGE : CLIP_TEXT;
    char prefixes[2][CLIP_NAME / 2];
    for (size_t i = 0; i < 2; i++)
        snprintf(prefixes[i], sizeof prefixes[i], "%s%zu.", block_prefixes[i == 0 ? CLIP_OPENAI : naming][tower],
                 tower == CLIP_IMAGE ? block : block - dimensions->image_blocks);
    return tensor_of(&block_entries[(index - of_model) % BLOCK_ENTRIES], dimensions, naming, tower,
                     (const char *const[]){prefixes[0], prefixes[1]});
}

struct clip_tensor clip_tensor_named(const struct clip_dimensions *dimensions, enum clip_naming naming,
                                     const char *openai)
{
    struct clip_dimensions first = *dimensions;
    first.image_blocks = first.text_blocks = 1;
    for (size_t i = 0; i < clip_tensors(&first); i++) {
        struct clip_tensor tensor = clip_tensor_at(&first, naming, i);
        if (strcmp(tensor.openai, openai) == 0)
            return tensor;
    }
    return (struct clip_tensor){.parts = 0};
}

bool clip_block_of(const char *name, enum clip_naming naming, enum clip_tower tower, size_t *block)
{
    const char *prefix = block_prefixes[naming][tower];
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
    bool in_block =
        clip_block_of(name, CLIP_OPENAI, CLIP_IMAGE, &block) || clip_block_of(name, CLIP_OPENAI, CLIP_TEXT, &block);
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
