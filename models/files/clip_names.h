/* The tensors of a CLIP or SigLIP: their names in files, and their shapes from the dimensions.
 *
 *     for (size_t i = 0; i < clip_tensors(&dimensions); i++) {
 *         struct clip_tensor tensor = clip_tensor_at(&dimensions, CLIP_OPENAI, i);
 *         ... tensor.openai, tensor.rank, tensor.shape ...
 *     }
 *
 * Pure functions over two tables. OpenAI's names are the canonical ones; transformers' CLIPModel splits the attention's
 * stacked projection into query, key and value, and keeps the two output projections as linear layers, that is, transposed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CLIP_RANK = 4, CLIP_NAME = 96, CLIP_SOURCES = 3 };

/* Whose names: OpenAI's, which are this program's; transformers' CLIPModel and SiglipModel; open_clip's SigLIP, whose image
 * tower is timm's. */
enum clip_naming { CLIP_OPENAI, CLIP_HUGGINGFACE, CLIP_OPEN_CLIP, CLIP_NAMINGS };

/* Everything but the heads follows from the shapes of the weights (clip_config.h has those). hidden: units of the MLPs. */
struct clip_dimensions {
    size_t embed;
    size_t resolution, patch, image_width, image_hidden, image_heads, image_blocks;
    size_t context, vocabulary, text_width, text_hidden, text_heads, text_blocks;
    size_t pool_hidden; /* of SigLIP: units of the MLP of its attention pooling; 0: a CLIP */
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
    size_t parts;
    char names[CLIP_SOURCES][CLIP_NAME];
    size_t rows[CLIP_SOURCES]; /* leading size of each part, where there are several */
    bool transposed;           /* of rank 2, in the file */
    int rank;
    size_t shape[CLIP_RANK];
};

/* "512 values, images of 224 pixels in patches of 16, 12 blocks of width 768 …", for messages. */
struct clip_words {
    char text[320];
};
struct clip_words clip_dimensions_words(const struct clip_dimensions *dimensions);

/* The number of tensors of a model of these dimensions, and the tensor at index in [0, clip_tensors). */
size_t clip_tensors(const struct clip_dimensions *dimensions);
struct clip_tensor clip_tensor_at(const struct clip_dimensions *dimensions, enum clip_naming naming, size_t index);

/* The tensor with this program's name, of a model's first block; parts 0: there is none. */
struct clip_tensor clip_tensor_named(const struct clip_dimensions *dimensions, enum clip_naming naming,
                                     const char *openai);

/* The block's number when name is "<prefix>.<number>.…" with the prefix of a tower's blocks. */
enum clip_tower { CLIP_IMAGE, CLIP_TEXT };
bool clip_block_of(const char *name, enum clip_naming naming, enum clip_tower tower, size_t *block);

/* True for names (without a wrapper's prefix) that published files carry beside the weights and that change no result:
 * buffers such as position_ids, OpenAI's three recorded sizes, and the adapters and unused modules that the MoE-Adapters
 * code saves into the same file. */
bool clip_name_is_harmless(const char *name);

/* The other kind of model that a tensor's name shows ("a ResNet tower"), where it is no CLIP of two transformers as
 * OpenAI's; NULL: none. rank in [0, CLIP_OTHER_RANKS) is the sign to look for, the most telling first. */
enum { CLIP_OTHER_RANKS = 8 };
const char *clip_other_model(const char *name, size_t rank);
