/* What a ViT's tensors are called: in timm's VisionTransformer, in Hugging Face's ViT, and in our own groups (OpenAI's
 * names for an image tower, and head.weight, head.bias).
 *
 *     for (size_t i = 0; i < vit_tensors(settings.blocks); i++) {
 *         struct vit_tensor tensor = vit_tensor_at(&settings, VIT_TIMM, i);
 *         const struct parameter *p = parameters_find(group, tensor.own);   // NULL: this form has no such tensor
 *     }
 */
#ifndef MTIL_MODELS_FILES_VIT_NAMES_H
#define MTIL_MODELS_FILES_VIT_NAMES_H

#include "models/vit.h"

enum { VIT_NAME = 96, VIT_PARTS = 3 };

struct vit_tensor {
    char own[VIT_NAME];
    bool copy;                       /* the block uses another one's: own is that block's */
    size_t parts;                    /* 3 where query, key and value are tensors of their own; 0: the naming has none */
    char names[VIT_PARTS][VIT_NAME]; /* our tensor cut into `parts` along its first axis */
    int ones;                        /* sizes of 1 before those of our tensor */
};

size_t vit_tensors(size_t blocks);
struct vit_tensor vit_tensor_at(const struct vit_settings *settings, enum vit_names names, size_t index);

/* The one that is called own in our groups; it is there. */
struct vit_tensor vit_tensor_named(enum vit_names names, const char *own);

/* What starts the names of block i, before i. */
const char *vit_block_prefix(enum vit_names names);

#endif
