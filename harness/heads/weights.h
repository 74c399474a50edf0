/* A model's weights and vocabulary by name: a path, or "mini" for those that ship, beside the program.
 *
 *     char *path = weights_path("mini");        // …/weights/mini-clip.safetensors
 *     TRY(weights_load(&clip, backend, &arena, "mini", PARAMETERS_FROZEN, NULL, NULL, error));
 *     TRY(vocabulary_open(&tokenizer, "mini", clip, "mini", NULL, error));
 */
#pragma once

#include "adapters/adapter.h"
#include "core/digest.h"
#include "models/clip.h"
#include "models/tokenizer.h"
#include "models/vit.h"

/* The caller frees. "mini" is looked for in weights/ beside the executable, then
 * where make install puts it. */
char *weights_path(const char *name);
char *vocabulary_path(const char *name);

/* The stamp of the file, or of an index and all its shards together: it changes with any of them. */
status weights_stamp(struct file_stamp *stamp, const char *path, struct error *error);

/* clip_load; stamp, unless NULL, receives the stamp of the file. The error for a missing file says what is expected. */
status weights_load(struct clip **clip, struct backend *backend, struct arena *arena, const char *name,
                    enum parameters_mode mode, const struct clip_stated *stated, struct file_stamp *stamp,
                    struct error *error);

/* The same for an image tower alone, as vit_load reads it. */
status vit_weights_load(struct clip **vit, struct backend *backend, struct arena *arena, const char *name,
                        enum parameters_mode mode, const struct vit_stated *stated, struct file_stamp *stamp,
                        struct error *error);

/* Whether the weights are of an image tower alone; found describes it as far as is known without reading the
 * weights. */
status vit_weights_look(struct vit_file *found, bool *is_vit, const char *name, const struct vit_stated *stated,
                        struct error *error);

/* The experts in place of MLPs in the file of an image tower, for inference through router 0. */
status vit_weights_experts(struct adapters **experts, const struct clip *vit, struct arena *arena, const char *name,
                           struct error *error);

/* The statements about an image tower by --heads and --activation on the command line, or model.heads in a suite. */
struct vit_stated vit_weights_stated(const struct clip_stated *stated);

/* tokenizer_open; ERROR_ARGUMENT when clip, whose weights have that name, has another number of tokens. */
status vocabulary_open(struct tokenizer **tokenizer, const char *name, const struct clip *clip, const char *weights,
                       struct file_stamp *stamp, struct error *error);
