#include "models/files/clip_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "models/clip.h"

/* What a model must have, all of it, for a row to be among its tensors. CLIP: a CLIP or a ViT, with a class token. */
enum { CLIP = 1, SIGLIP = 2, PROJECTED = 4, NORM_FIRST = 8, PATCH_BIAS = 16, TEXT = 32, HEAD = 64 };

/* The tensors of a row. LINEAR and NORM are two, whose names go on with "weight" and "bias". */
enum form {
    ONE,
    EMBEDDING,  /* one; a ViT's files have ones before its sizes, three sizes in all */
    PROJECTION, /* one, transposed but under OpenAI's names */
    LINEAR,     /* [out, in] and [out] */
    NORM,       /* twice the same shape */
    BLOCKS      /* the rows of all blocks of the tower, whose names begin like this */
};

/* Symbolic sizes; NONE ends a shape. POSITIONS, WIDTH and HIDDEN belong to the row's tower. */
enum size { NONE, CHANNELS, PATCH, EMBED, POSITIONS, VOCABULARY, WIDTH, WIDTH_3, HIDDEN, POOL_HIDDEN, CLASSES };

/* Names as OpenAI's, transformers' CLIP and SigLIP, timm's, transformers' ViT; NULL: none there. {q|k|v} stands for the parts of a
 * stack, each of a third of its rows, but for the last, which has the rest. */
enum { NAMES = 4 };
struct row {
    int needs;
    enum form form;
    size_t place;
    const char *names[NAMES];
    enum size shape[CLIP_RANK];
};

#define IN_CLIP(member) offsetof(struct clip, member)
#define IN_BLOCK(member) offsetof(struct block, member)
#define POOL(member) IN_CLIP(attention_pool.member)
#define OWN_POOL "visual.attn_pool."
#define HF_IMAGE "vision_model.embeddings."
#define HF_TEXT "text_model.embeddings."
#define HF_POOL "vision_model.head."
#define HF_VIT "vit.embeddings."

/* clang-format off */
static const struct row model_rows[] = {
    {CLIP, EMBEDDING, IN_CLIP(class_embedding),
     {"visual.class_embedding", HF_IMAGE "class_embedding", "cls_token", HF_VIT "cls_token"}, {WIDTH}},
    {0, EMBEDDING, IN_CLIP(image_position),
     {"visual.positional_embedding", HF_IMAGE "position_embedding.weight", "pos_embed", HF_VIT "position_embeddings"},
     {POSITIONS, WIDTH}},
    {CLIP | PROJECTED, PROJECTION, IN_CLIP(towers[TOWER_IMAGE].projection), {"visual.proj", "visual_projection.weight"},
     {WIDTH, EMBED}},
    {0, ONE, IN_CLIP(conv1),
     {"visual.conv1.weight", HF_IMAGE "patch_embedding.weight", "patch_embed.proj.weight",
      HF_VIT "patch_embeddings.projection.weight"}, {WIDTH, CHANNELS, PATCH, PATCH}},
    {PATCH_BIAS, ONE, IN_CLIP(patch_bias),
     {"visual.conv1.bias", HF_IMAGE "patch_embedding.bias", "patch_embed.proj.bias",
      HF_VIT "patch_embeddings.projection.bias"}, {WIDTH}},
    {NORM_FIRST, NORM, IN_CLIP(ln_pre), {"visual.ln_pre.", "vision_model.pre_layrnorm.", "norm_pre."}, {WIDTH}},
    {0, BLOCKS, 0,
     {"visual.transformer.resblocks.", "vision_model.encoder.layers.", "blocks.", "vit.encoder.layer."}, {NONE}},
    {0, NORM, IN_CLIP(towers[TOWER_IMAGE].ln_final),
     {"visual.ln_post.", "vision_model.post_layernorm.", "norm.", "vit.layernorm."}, {WIDTH}},
    {SIGLIP, ONE, IN_CLIP(probe), {OWN_POOL "probe", HF_POOL "probe", "attn_pool.latent"}, {WIDTH}},
    {SIGLIP, LINEAR, POOL(in_proj), {OWN_POOL "attn.in_proj_", HF_POOL "attention.in_proj_", "attn_pool.{q|kv}."},
     {WIDTH_3, WIDTH}},
    {SIGLIP, LINEAR, POOL(out_proj), {OWN_POOL "attn.out_proj.", HF_POOL "attention.out_proj.", "attn_pool.proj."},
     {WIDTH, WIDTH}},
    {SIGLIP, NORM, POOL(ln_2), {OWN_POOL "ln_2.", HF_POOL "layernorm.", "attn_pool.norm."}, {WIDTH}},
    {SIGLIP, LINEAR, POOL(c_fc), {OWN_POOL "mlp.c_fc.", HF_POOL "mlp.fc1.", "attn_pool.mlp.fc1."}, {POOL_HIDDEN, WIDTH}},
    {SIGLIP, LINEAR, POOL(c_proj), {OWN_POOL "mlp.c_proj.", HF_POOL "mlp.fc2.", "attn_pool.mlp.fc2."},
     {WIDTH, POOL_HIDDEN}},
    {TEXT, ONE, IN_CLIP(text_position),
     {"positional_embedding", HF_TEXT "position_embedding.weight", "text.positional_embedding"}, {POSITIONS, WIDTH}},
    {TEXT | CLIP, PROJECTION, IN_CLIP(towers[TOWER_TEXT].projection), {"text_projection", "text_projection.weight"},
     {WIDTH, EMBED}},
    {TEXT | SIGLIP, PROJECTION, IN_CLIP(towers[TOWER_TEXT].projection),
     {"text_projection", "text_model.head.weight", "text.text_projection.weight"}, {WIDTH, EMBED}},
    {TEXT, ONE, IN_CLIP(logit_scale), {"logit_scale", "logit_scale", "logit_scale"}, {NONE}},
    {TEXT | SIGLIP, ONE, IN_CLIP(text_bias),
     {"text_projection_bias", "text_model.head.bias", "text.text_projection.bias"}, {EMBED}},
    {TEXT | SIGLIP, ONE, IN_CLIP(logit_bias), {"logit_bias", "logit_bias", "logit_bias"}, {NONE}},
    {TEXT, BLOCKS, 0, {"transformer.resblocks.", "text_model.encoder.layers.", "text.transformer.resblocks."}, {NONE}},
    {TEXT, ONE, IN_CLIP(token_embedding),
     {"token_embedding.weight", HF_TEXT "token_embedding.weight", "text.token_embedding.weight"}, {VOCABULARY, WIDTH}},
    {TEXT, NORM, IN_CLIP(towers[TOWER_TEXT].ln_final), {"ln_final.", "text_model.final_layer_norm.", "text.ln_final."},
     {WIDTH}},
    {HEAD, LINEAR, 0, {"head.", NULL, "head.", "classifier."}, {CLASSES, WIDTH}},
};

/* After "<prefix>.<block>."; open_clip's text tower has OpenAI's. */
static const struct row block_rows[] = {
    {0, NORM, IN_BLOCK(ln_1), {"ln_1.", "layer_norm1.", "norm1.", "layernorm_before."}, {WIDTH}},
    {0, LINEAR, IN_BLOCK(in_proj),
     {"attn.in_proj_", "self_attn.{q|k|v}_proj.", "attn.qkv.", "attention.attention.{query|key|value}."}, {WIDTH_3, WIDTH}},
    {0, LINEAR, IN_BLOCK(out_proj), {"attn.out_proj.", "self_attn.out_proj.", "attn.proj.", "attention.output.dense."},
     {WIDTH, WIDTH}},
    {0, NORM, IN_BLOCK(ln_2), {"ln_2.", "layer_norm2.", "norm2.", "layernorm_after."}, {WIDTH}},
    {0, LINEAR, IN_BLOCK(c_fc), {"mlp.c_fc.", "mlp.fc1.", "mlp.fc1.", "intermediate.dense."}, {HIDDEN, WIDTH}},
    {0, LINEAR, IN_BLOCK(c_proj), {"mlp.c_proj.", "mlp.fc2.", "mlp.fc2.", "output.dense."}, {WIDTH, HIDDEN}},
};
/* clang-format on */

enum { MODEL_ROWS = sizeof model_rows / sizeof *model_rows };
_Static_assert(2 * sizeof block_rows / sizeof *block_rows == CLIP_BLOCK_TENSORS, "two tensors a row");
_Static_assert(offsetof(struct linear, bias) == offsetof(struct layer_norm_weights, bias), "one place of a bias");

size_t clip_image_positions(const struct clip_dimensions *dimensions)
{
    size_t grid = dimensions->resolution / dimensions->patch;
    return grid * grid + (dimensions->pool_hidden == 0);
}

static enum tower tower_of(const struct row *row)
{
    return (row->needs & TEXT) != 0 ? TOWER_TEXT : TOWER_IMAGE;
}

static size_t size_of(enum size size, const struct clip_dimensions *d, enum tower tower)
{
    bool image = tower == TOWER_IMAGE;
    size_t width = image ? d->image_width : d->text_width;
    const size_t sizes[] = {[CHANNELS] = 3,
                            [PATCH] = d->patch,
                            [EMBED] = d->embed,
                            [POSITIONS] = image ? clip_image_positions(d) : d->context,
                            [VOCABULARY] = d->vocabulary,
                            [WIDTH] = width,
                            [WIDTH_3] = 3 * width,
                            [HIDDEN] = image ? d->image_hidden : d->text_hidden,
                            [POOL_HIDDEN] = d->pool_hidden,
                            [CLASSES] = d->classes};
    return sizes[size];
}

/* The row's name, which goes on where the row has two tensors. */
static const char *name_of(const struct row *row, enum clip_naming naming, bool text_block)
{
    static const int columns[CLIP_NAMINGS] = {0, 1, 2, 2, 3};
    return row->names[naming == CLIP_OPEN_CLIP && text_block ? 0 : columns[naming]];
}

/* What goes before timm's names in open_clip's files. */
static const char *trunk_of(enum clip_naming naming, enum tower tower)
{
    return naming == CLIP_OPEN_CLIP && tower == TOWER_IMAGE ? "visual.trunk." : "";
}

/* name as "before{a|b}after", or without braces. */
static void fill_parts(struct clip_tensor *tensor, const char *prefix, const char *name, const char *ending)
{
    const char *open = strchr(name, '{'), *close = strchr(name, '}');
    if (open == NULL || close == NULL) {
        tensor->parts = 1;
        snprintf(tensor->names[0], CLIP_NAME, "%s%s%s", prefix, name, ending);
        return;
    }
    size_t third = tensor->shape[0] / 3, rows = 0;
    for (const char *part = open + 1; part < close; tensor->parts++) {
        size_t length = strcspn(part, "|}");
        snprintf(tensor->names[tensor->parts], CLIP_NAME, "%s%.*s%.*s%s%s", prefix, (int)(open - name), name,
                 (int)length, part, close + 1, ending);
        part += length + 1;
        tensor->rows[tensor->parts] = part < close ? third : 3 * third - rows;
        rows += third;
    }
}

/* The row's tensor: its only or first one, or its second. start: the row of the blocks that it belongs to, or NULL. */
static struct clip_tensor tensor_of(const struct row *row, bool second, const struct clip_dimensions *dimensions,
                                    enum clip_naming naming, const struct row *start, size_t block)
{
    enum tower tower = tower_of(start != NULL ? start : row);
    struct clip_tensor tensor = {.transposed = row->form == PROJECTION && naming != CLIP_OPENAI,
                                 .tower = tower,
                                 .block = start != NULL ? block : SIZE_MAX,
                                 .norm = row->form == NORM,
                                 .place = row->place + (second ? offsetof(struct linear, bias) : 0)};
    int most = second ? 1 : CLIP_RANK;
    for (; tensor.rank < most && row->shape[tensor.rank] != NONE; tensor.rank++)
        tensor.shape[tensor.rank] = size_of(row->shape[tensor.rank], dimensions, tower);
    if (row->form == EMBEDDING && naming >= VIT_TIMM)
        tensor.ones = 3 - tensor.rank;
    char own[CLIP_NAME / 2] = "", prefix[CLIP_NAME / 2] = "";
    if (start != NULL) {
        snprintf(own, sizeof own, "%s%zu.", name_of(start, CLIP_OPENAI, false), block);
        snprintf(prefix, sizeof prefix, "%s%s%zu.", trunk_of(naming, tower), name_of(start, naming, false), block);
    } else {
        snprintf(prefix, sizeof prefix, "%s", trunk_of(naming, tower));
    }
    const char *ending = row->form < LINEAR ? ""
                         : second           ? "bias"
                                            : "weight",
               *name = name_of(row, naming, start != NULL && tower == TOWER_TEXT);
    snprintf(tensor.openai, CLIP_NAME, "%s%s%s", own, name_of(row, CLIP_OPENAI, false), ending);
    if (name != NULL)
        fill_parts(&tensor, prefix, name, ending);
    return tensor;
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

/* The row's tensors in a model of these dimensions. */
static size_t tensors_of(const struct row *row, const struct clip_dimensions *d)
{
    bool siglip = d->pool_hidden > 0, bias = siglip || d->patch_bias > 0;
    int has = (siglip ? SIGLIP : CLIP) | (bias ? PATCH_BIAS : NORM_FIRST) | (d->embed > 0 ? PROJECTED : 0) |
              (d->text_blocks > 0 ? TEXT : 0) | (d->classes > 0 ? HEAD : 0);
    if ((row->needs & ~has) != 0)
        return 0;
    size_t blocks = tower_of(row) == TOWER_IMAGE ? d->image_blocks : d->text_blocks;
    return row->form == BLOCKS ? CLIP_BLOCK_TENSORS * blocks : row->form >= LINEAR ? 2 : 1;
}

size_t clip_tensors(const struct clip_dimensions *dimensions)
{
    size_t count = 0;
    for (size_t i = 0; i < MODEL_ROWS; i++)
        count += tensors_of(&model_rows[i], dimensions);
    return count;
}

struct clip_tensor clip_tensor_at(const struct clip_dimensions *dimensions, enum clip_naming naming, size_t index)
{
    const struct row *row = model_rows;
    for (size_t count; (count = tensors_of(row, dimensions)) <= index; row++)
        index -= count;
    if (row->form != BLOCKS)
        return tensor_of(row, index > 0, dimensions, naming, NULL, 0);
    size_t block = index / CLIP_BLOCK_TENSORS, within = index % CLIP_BLOCK_TENSORS;
    return tensor_of(&block_rows[within / 2], within % 2 > 0, dimensions, naming, row, block);
}

struct clip_tensor clip_tensor_named(enum clip_naming naming, bool siglip, const char *openai)
{
    const struct clip_dimensions all = {.patch = 1,
                                        .embed = 1,
                                        .pool_hidden = siglip,
                                        .image_blocks = 1,
                                        .text_blocks = naming < VIT_TIMM,
                                        .classes = naming >= VIT_TIMM}; /* names need no more */
    for (size_t i = 0; i < clip_tensors(&all); i++) {
        struct clip_tensor tensor = clip_tensor_at(&all, naming, i);
        if (strcmp(tensor.openai, openai) == 0)
            return tensor;
    }
    return (struct clip_tensor){.parts = 0};
}

/* transformers' ViTModel has the names of its ViTForImageClassification without "vit.". */
bool clip_block_of(const char *name, enum clip_naming naming, enum tower tower, size_t *block)
{
    const struct row *row = model_rows;
    while (row->form != BLOCKS || tower_of(row) != tower)
        row++;
    const char *trunk = trunk_of(naming, tower), *prefix = name_of(row, naming, false);
    size_t skip = strlen(trunk);
    if (prefix == NULL || strncmp(name, trunk, skip) != 0)
        return false;
    if (naming == VIT_HUGGINGFACE && strncmp(name, "vit.", 4) != 0)
        prefix += 4;
    const char *number = name + skip + strlen(prefix);
    if (strncmp(name + skip, prefix, strlen(prefix)) != 0 || *number < '0' || *number > '9')
        return false;
    char *end;
    *block = strtoul(number, &end, 10);
    return *end == '.';
}

bool clip_name_is_harmless(const char *name, enum clip_naming naming)
{
    enum place { WHOLE, AT_START, AT_END, IN_A_BLOCK, BESIDE_A_VIT };
    static const struct {
        enum place place;
        const char *word;
    } list[] = {{WHOLE, "input_resolution"},   {WHOLE, "context_length"}, {WHOLE, "vocab_size"},
                {WHOLE, "attn_mask"},          {WHOLE, "mean"},           {WHOLE, "std"},
                {AT_END, "position_ids"},      {AT_END, ".attn_mask"},    {AT_END, "num_batches_tracked"},
                {IN_A_BLOCK, ".adaptmlp."},    {IN_A_BLOCK, ".router."},  {IN_A_BLOCK, ".adaptmlp_list."},
                {IN_A_BLOCK, ".ln_3."},        {IN_A_BLOCK, ".mean"},     {IN_A_BLOCK, ".router_list."},
                {IN_A_BLOCK, ".std"},          {BESIDE_A_VIT, "head."},   {IN_A_BLOCK, ".w_noise_list."},
                {BESIDE_A_VIT, "classifier."}, {BESIDE_A_VIT, "pooler."}, {BESIDE_A_VIT, "vit.pooler."},
                {AT_START, "selector."}};
    size_t block;
    bool vit = naming >= VIT_TIMM, in_block = clip_block_of(name, CLIP_OPENAI, TOWER_IMAGE, &block) ||
                                              clip_block_of(name, CLIP_OPENAI, TOWER_TEXT, &block);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *word = list[i].word;
        bool starts = strncmp(name, word, strlen(word)) == 0;
        bool fits[] = {[WHOLE] = strcmp(name, word) == 0,
                       [AT_START] = starts,
                       [AT_END] = text_ends_with(name, word),
                       [IN_A_BLOCK] = in_block && strstr(name, word) != NULL,
                       [BESIDE_A_VIT] = starts};
        if (vit == (list[i].place == BESIDE_A_VIT) && fits[list[i].place])
            return true;
    }
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
