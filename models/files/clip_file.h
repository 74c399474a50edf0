/* The weights of a CLIP, a SigLIP or a ViT in a file, under OpenAI's names or those of other programs; read in the order of
 * clip_names.h whatever their names are.
 *
 *     struct clip_file *file;
 *     TRY(clip_file_open(&file, "ViT-B-16.safetensors", error));
 *     const struct clip_dimensions *d = clip_file_dimensions(file);
 *     for (size_t i = 0; i < clip_tensors(d); i++)
 *         TRY(clip_file_read(file, i, values, error));
 *     clip_file_close(file);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"
#include "models/files/clip_names.h"

struct clip_file;

/* Opens the file of a CLIP or a SigLIP, finds its naming and infers the dimensions. Missing tensors, wrong shapes, and tensors
 * that belong to no such model (except for harmless ones: position_ids, input_resolution, context_length, vocab_size, …) are
 * errors that name the tensor, the file and both shapes. A wrapper's prefix ("module.", "model.") is ignored. */
status clip_file_open(struct clip_file **file, const char *path, struct error *error);
/* Opens the file for its dimensions and metadata alone: no tensor can be read. */
status clip_file_open_header(struct clip_file **file, const char *path, struct error *error);

/* The same for an image tower alone (models/vit.h) under timm's or Hugging Face's names. It may have a head, which is not checked
 * before it is read, and experts in place of MLPs. clip_file_look_vit: for the dimensions and metadata alone; *file is NULL where
 * the file has other names, which is no error. */
status clip_file_open_vit(struct clip_file **file, const char *path, struct error *error);
status clip_file_look_vit(struct clip_file **file, const char *path, struct error *error);

void clip_file_close(struct clip_file *file); /* NULL is allowed */

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
