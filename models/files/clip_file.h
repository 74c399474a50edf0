/* CLIP's weights in a safetensors file, under OpenAI's names or Hugging Face's; read by OpenAI's names either way.
 *
 *     struct clip_file *file;
 *     TRY(clip_file_open(&file, "ViT-B-16.safetensors", error));
 *     const struct clip_dimensions *d = clip_file_dimensions(file);
 *     TRY(clip_file_read(file, "visual.proj", 2, (size_t[]){d->image_width, d->embed}, values, error));
 *     clip_file_close(file);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"
#include "models/files/clip_names.h"

struct clip_file;

/* Opens the file, finds its naming and infers the dimensions. Missing tensors, wrong shapes, and tensors that belong to
 * neither naming (except for harmless ones: position_ids, input_resolution, context_length, vocab_size, …) are errors that
 * name the tensor, the file and both shapes. A wrapper's prefix ("module.", "model.") is ignored. */
status clip_file_open(struct clip_file **file, const char *path, struct error *error);
/* Opens the file for its dimensions and metadata alone: no tensor can be read. */
status clip_file_open_header(struct clip_file **file, const char *path, struct error *error);

void clip_file_close(struct clip_file *file); /* NULL is allowed */

const struct clip_dimensions *clip_file_dimensions(const struct clip_file *file); /* without heads: 0 */
const char *clip_file_path(const struct clip_file *file);
const char *clip_file_metadata(const struct clip_file *file, const char *key); /* NULL: absent */

/* Whether the file has the three sizes that only OpenAI's own archives record beside the weights. */
bool clip_file_is_openai_archive(const struct clip_file *file);

/* The tensor with OpenAI's name and this shape, as floats (F16 and BF16 are widened; q, k, v are stacked; projections transposed).
 * NaN or infinity in it is an error. */
status clip_file_read(const struct clip_file *file, const char *name, int rank, const size_t *shape, float *values,
                      struct error *error);
