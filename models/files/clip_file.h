/* The weights of a CLIP, a SigLIP or a ViT in a file, under OpenAI's names or those of other programs; read in the order of
 * clip_tensor_at whatever their names are. OpenAI's names are the canonical ones, which a ViT and its head have, too; transformers'
 * models split the attention's stacked projection into query, key and value, and its CLIPModel keeps the two output projections as
 * linear layers, that is, transposed.
 *
 *     struct clip_file *file;
 *     TRY(clip_file_open(&file, "ViT-B-16.safetensors", WEIGHTS_WHOLE, error));
 *     const struct clip_dimensions *d = clip_file_dimensions(file);
 *     for (size_t i = 0; i < clip_tensors(d); i++)
 *         TRY(clip_file_read(file, i, values, error));
 *     clip_file_close(file);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/scope.h"
#include "core/status.h"
#include "models/block.h"
#include "models/files/safetensors.h"

/* ---- the names, and the shapes that follow from the dimensions: pure functions over two tables (clip_names.c) ---- */

enum { CLIP_RANK = 4, CLIP_NAME = 96, CLIP_SOURCES = 3, CLIP_BLOCK_TENSORS = 12 };

/* The program whose names a file has: OpenAI's, which this program uses, too; transformers' CLIPModel and
 * SiglipModel; open_clip's SigLIP with timm's image tower; and for an image tower alone timm's VisionTransformer and
 * transformers' ViTForImageClassification. */
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

/* ---- the file ---- */

struct clip_file;

/* Opens the file of a CLIP or a SigLIP, finds its naming and infers the dimensions. Missing tensors, wrong shapes, and tensors
 * that belong to no such model (except for harmless ones: position_ids, input_resolution, context_length, vocab_size, …) are
 * errors that name the tensor, the file and both shapes. No tensor can be read of a header. */
status clip_file_open(struct clip_file **file, const char *path, enum weights_part part, struct error *error);

/* The same for an image tower alone (models/vit.h) under timm's or Hugging Face's names. It may have a head, which is not checked
 * before it is read, and experts in place of MLPs. With WEIGHTS_HEADER, *file is NULL where the file has other names, which is no
 * error. */
status clip_file_open_vit(struct clip_file **file, const char *path, enum weights_part part, struct error *error);

void clip_file_close(struct clip_file *file); /* NULL is allowed */
SCOPED_POINTER(struct clip_file, clip_file_close)

const struct clip_dimensions *clip_file_dimensions(const struct clip_file *file); /* without heads: 0 */
enum clip_naming clip_file_naming(const struct clip_file *file);
const char *clip_file_path(const struct clip_file *file);
const char *clip_file_metadata(const struct clip_file *file, const char *key); /* NULL: absent */

/* Whether the file has the three sizes that only OpenAI's own archives record beside the weights. */
bool clip_file_is_openai_archive(const struct clip_file *file);

/* The name of a tensor of a ViT's experts, which are not read here; NULL: it has none. */
const char *clip_file_experts(const struct clip_file *file);
uint64_t clip_file_replaced(const struct clip_file *file); /* bits of the blocks whose MLPs such experts replace */
bool clip_file_lacks(const struct clip_file *file, const struct clip_tensor *tensor); /* it is of such an MLP */

/* Tensor `index` of clip_tensor_at for the file's dimensions as floats (F16 and BF16 are widened; q, k, v are stacked; projections
 * transposed). NaN or infinity in it is an error. */
status clip_file_read(const struct clip_file *file, size_t index, float *values, struct error *error);
