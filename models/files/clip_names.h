/* The tensors of a CLIP, a SigLIP or a ViT: their names in files, their shapes from the dimensions, and where struct clip has
 * them.
 *
 *     for (size_t i = 0; i < clip_tensors(&dimensions); i++) {
 *         struct clip_tensor tensor = clip_tensor_at(&dimensions, CLIP_OPENAI, i);
 *         ... tensor.openai, tensor.rank, tensor.shape ...
 *     }
 *
 * Pure functions over two tables. OpenAI's names are the canonical ones, which a ViT and its head have, too; transformers' models
 * split the attention's stacked projection into query, key and value, and its CLIPModel keeps the two output projections as
 * linear layers, that is, transposed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/block.h"

enum { CLIP_RANK = 4, CLIP_NAME = 96, CLIP_SOURCES = 3, CLIP_BLOCK_TENSORS = 12 };

/* Whose names: OpenAI's, which are this program's; transformers' CLIPModel and SiglipModel; open_clip's SigLIP, whose image
 * tower is timm's; and those of an image tower alone: timm's VisionTransformer, transformers' ViTForImageClassification. */
enum clip_naming { CLIP_OPENAI, CLIP_HUGGINGFACE, CLIP_OPEN_CLIP, VIT_TIMM, VIT_HUGGINGFACE, CLIP_NAMINGS };

/* Everything but the heads follows from the shapes of the weights (clip_config.h has those). hidden: units of the MLPs. */
struct clip_dimensions {
    size_t embed; /* 0: no projection, as in a ViT */
    size_t resolution, patch, image_width, image_hidden, image_heads, image_blocks;
    size_t context, vocabulary, text_width, text_hidden, text_heads, text_blocks; /* text_blocks 0: no text tower */
    size_t pool_hidden; /* of SigLIP: units of the MLP of its attention pooling; 0: a CLIP or a ViT */
    size_t patch_bias;  /* 1: a ViT with a bias of the patches and without the norm before its blocks */
    size_t classes;     /* of the linear head in a ViT's file; 0: none */
};
size_t clip_image_positions(const struct clip_dimensions *dimensions); /* patches, and CLIP's class token */

/* Whether test images are resized to the square whole (SigLIP); otherwise their shorter side, and the centre is cut out. */
static inline bool clip_squashes(const struct clip_dimensions *dimensions)
{
    return dimensions->pool_hidden > 0;
}

/* A tensor under this program's name, and the parts of a file that make it up, one below the other (query, key, value). */
struct clip_tensor {
    char openai[CLIP_NAME];
    size_t parts; /* 0: the naming has no such tensor */
    char names[CLIP_SOURCES][CLIP_NAME];
    size_t rows[CLIP_SOURCES]; /* leading size of each part, where there are several */
    bool transposed;           /* of rank 2, in the file */
    int ones;                  /* sizes of 1 before its own, in the file */
    int rank;
    size_t shape[CLIP_RANK];
    enum tower tower;
    size_t block; /* of the tower; SIZE_MAX: outside the blocks */
    bool norm;    /* a gain or a bias of a norm */
    size_t place; /* of its struct weight, in struct block or, outside the blocks, in struct clip */
};

/* "512 values, images of 224 pixels in patches of 16, 12 blocks of width 768 …", for messages. */
struct clip_words {
    char text[320];
};
struct clip_words clip_dimensions_words(const struct clip_dimensions *dimensions);

/* The number of tensors of a model of these dimensions, and the tensor at index in [0, clip_tensors): in the order in which struct
 * clip declares them, a block's after those of the block before it, and a head's at the end. */
size_t clip_tensors(const struct clip_dimensions *dimensions);
struct clip_tensor clip_tensor_at(const struct clip_dimensions *dimensions, enum clip_naming naming, size_t index);

/* The tensor with this program's name, of a model's first block, or of a head; parts 0: there is none. siglip: or a CLIP. */
struct clip_tensor clip_tensor_named(enum clip_naming naming, bool siglip, const char *openai);

/* The block's number when name is "<prefix>.<number>.…" with the prefix of a tower's blocks. */
bool clip_block_of(const char *name, enum clip_naming naming, enum tower tower, size_t *block);

/* True for names (without a wrapper's prefix) that published files carry beside the weights and that change no result:
 * buffers such as position_ids, OpenAI's three recorded sizes, the adapters and unused modules that the MoE-Adapters code
 * saves into the same file, and in a ViT's file its head and the pooler of transformers' ViTModel. */
bool clip_name_is_harmless(const char *name, enum clip_naming naming);

/* The other kind of model that a tensor's name shows ("a ResNet tower"), where it is no CLIP of two transformers as
 * OpenAI's; NULL: none. rank in [0, CLIP_OTHER_RANKS) is the sign to look for, the most telling first. */
enum { CLIP_OTHER_RANKS = 8 };
const char *clip_other_model(const char *name, size_t rank);
