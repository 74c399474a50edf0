#include "models/files/vit_names.h"

#include <stdio.h>
#include <string.h>

struct entry {
    const char *own, *timm, *huggingface; /* with %s: query, key and value */
    int ones;
};

static const struct entry model_entries[] = {
    {"visual.class_embedding", "cls_token", "vit.embeddings.cls_token", 2},
    {"visual.positional_embedding", "pos_embed", "vit.embeddings.position_embeddings", 1},
    {"visual.conv1.weight", "patch_embed.proj.weight", "vit.embeddings.patch_embeddings.projection.weight", 0},
    {"visual.conv1.bias", "patch_embed.proj.bias", "vit.embeddings.patch_embeddings.projection.bias", 0},
    {"visual.ln_pre.weight", "norm_pre.weight", NULL, 0},
    {"visual.ln_pre.bias", "norm_pre.bias", NULL, 0},
    {"visual.ln_post.weight", "norm.weight", "vit.layernorm.weight", 0},
    {"visual.ln_post.bias", "norm.bias", "vit.layernorm.bias", 0},
    {"head.weight", "head.weight", "classifier.weight", 0},
    {"head.bias", "head.bias", "classifier.bias", 0},
};

/* After "<prefix><block>." */
static const struct entry block_entries[] = {
    {"ln_1.weight", "norm1.weight", "layernorm_before.weight", 0},
    {"ln_1.bias", "norm1.bias", "layernorm_before.bias", 0},
    {"attn.in_proj_weight", "attn.qkv.weight", "attention.attention.%s.weight", 0},
    {"attn.in_proj_bias", "attn.qkv.bias", "attention.attention.%s.bias", 0},
    {"attn.out_proj.weight", "attn.proj.weight", "attention.output.dense.weight", 0},
    {"attn.out_proj.bias", "attn.proj.bias", "attention.output.dense.bias", 0},
    {"ln_2.weight", "norm2.weight", "layernorm_after.weight", 0},
    {"ln_2.bias", "norm2.bias", "layernorm_after.bias", 0},
    {"mlp.c_fc.weight", "mlp.fc1.weight", "intermediate.dense.weight", 0},
    {"mlp.c_fc.bias", "mlp.fc1.bias", "intermediate.dense.bias", 0},
    {"mlp.c_proj.weight", "mlp.fc2.weight", "output.dense.weight", 0},
    {"mlp.c_proj.bias", "mlp.fc2.bias", "output.dense.bias", 0},
};

enum {
    MODEL_ENTRIES = sizeof model_entries / sizeof *model_entries,
    BLOCK_ENTRIES = sizeof block_entries / sizeof *block_entries
};

const char *vit_block_prefix(enum vit_names names)
{
    return names == VIT_TIMM ? "blocks." : "vit.encoder.layer.";
}

size_t vit_tensors(size_t blocks)
{
    return MODEL_ENTRIES + BLOCK_ENTRIES * blocks;
}

/* prefix: what goes before the name; name may hold one %s, or be NULL. */
static void fill_names(struct vit_tensor *tensor, const char *prefix, const char *name)
{
    static const char *const parts[VIT_PARTS] = {"query", "key", "value"};
    const char *place = name != NULL ? strstr(name, "%s") : NULL;
    for (size_t i = 0; place != NULL && i < VIT_PARTS; i++)
        snprintf(tensor->names[i], VIT_NAME, "%s%.*s%s%s", prefix, (int)(place - name), name, parts[i], place + 2);
    if (place == NULL && name != NULL)
        snprintf(tensor->names[0], VIT_NAME, "%s%s", prefix, name);
    tensor->parts = name == NULL ? 0 : place != NULL ? VIT_PARTS : 1;
}

struct vit_tensor vit_tensor_at(const struct vit_settings *s, enum vit_names names, size_t index)
{
    bool in_block = index >= MODEL_ENTRIES;
    const struct entry *entry =
        in_block ? &block_entries[(index - MODEL_ENTRIES) % BLOCK_ENTRIES] : &model_entries[index];
    struct vit_tensor tensor = {.ones = entry->ones};
    char prefix[VIT_NAME / 2] = "";
    if (in_block) {
        size_t block = (index - MODEL_ENTRIES) / BLOCK_ENTRIES;
        bool norm = strncmp(entry->own, "ln_", 3) == 0;
        size_t owner = norm && !s->share_norms ? block : vit_leader(s, block);
        tensor.copy = owner != block;
        snprintf(tensor.own, VIT_NAME, "visual.transformer.resblocks.%zu.%s", owner, entry->own);
        snprintf(prefix, sizeof prefix, "%s%zu.", vit_block_prefix(names), block);
    } else {
        snprintf(tensor.own, VIT_NAME, "%s", entry->own);
    }
    fill_names(&tensor, prefix, names == VIT_TIMM ? entry->timm : entry->huggingface);
    return tensor;
}

struct vit_tensor vit_tensor_named(enum vit_names names, const char *own)
{
    const struct vit_settings one_block = {.blocks = 1};
    struct vit_tensor tensor = {.parts = 0};
    for (size_t i = 0; i < vit_tensors(1) && strcmp(tensor.own, own) != 0; i++)
        tensor = vit_tensor_at(&one_block, names, i);
    return tensor;
}
