/* Names of a ViT's tensors in timm's VisionTransformer, in Hugging Face's ViT, and in our own groups (OpenAI's names for an
 * image tower, and head.weight, head.bias).
 *
 *     for (size_t i = 0; i < vit_tensors(settings.blocks); i++) {
 *         struct vit_tensor tensor = vit_tensor_at(&settings, VIT_TIMM, i);
 *         const struct parameter *p = parameters_find(group, tensor.own);   // NULL: this form has no such tensor
 *     }
 */
#pragma once

#include "models/vit.h"

enum { VIT_NAME = 96, VIT_PARTS = 3 };

struct vit_tensor {
    char own[VIT_NAME];
    bool copy;                       /* the block shares the tensor of another block, which `own` names */
    size_t parts;                    /* 3 where query, key and value are tensors of their own; 0: the naming has none */
    char names[VIT_PARTS][VIT_NAME]; /* our tensor cut into `parts` along its first axis */
    int ones;                        /* sizes of 1 before the sizes of our tensor */
};

size_t vit_tensors(size_t blocks);
struct vit_tensor vit_tensor_at(const struct vit_settings *settings, enum vit_names names, size_t index);

/* The tensor called own in our groups, which must exist. */
struct vit_tensor vit_tensor_named(enum vit_names names, const char *own);

/* The beginning of a block's tensor names, before the block's number. */
const char *vit_block_prefix(enum vit_names names);
