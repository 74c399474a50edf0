/* A model's weights and vocabulary by name: a path, or "mini" for those that ship, beside the program.
 *
 *     char *path = weights_path("mini");        // …/weights/mini-clip.safetensors
 *     TRY(weights_load(&clip, backend, &arena, "mini", PARAMETERS_FROZEN, NULL, NULL, error));
 *     TRY(vocabulary_open(&tokenizer, "mini", clip, "mini", NULL, error));
 *
 * The options "heads" and "activation", by which a suite or a command line describes the weights of a model.
 *
 *     TRY(model_choice_read(&stated, options, "--heads", "--activation", error));
 */
#pragma once

#include "adapters/adapter.h"
#include "core/option.h"
#include "harness/scenario/witness.h"
#include "models/clip.h"
#include "models/files/clip_config.h"
#include "models/tokenizer.h"
#include "models/vit.h"

#define CLIP_ACTIVATION_CHOICES "auto|quick_gelu|gelu|gelu_tanh"

/* The names of both options, as shown to the user, are borrowed. */
status model_choice_read(struct clip_stated *stated, const struct options *options, const char *heads,
                         const char *activation, struct error *error);

/* The keys that come with weights: the sizes of an image tower. With scratch they have defaults; with a file they may
 * be stated and must agree with it. */
status model_choice_keys(const char *weights, const struct option **table, struct error *error);

/* The settings of a tower with weights scratch; zeros for other weights. heads: as above, but one number is
 * expected. */
status model_choice_scratch(struct vit_settings *vit, const struct options *options, const char *heads,
                            struct error *error);

/* The first of these sizes that is stated for a file; NULL: none. */
const char *model_choice_size(const struct options *options);

/* The side of the images: the file's, unless it is stated. */
size_t model_choice_resolution(const struct options *options, size_t of_file);

/* Checks that the stated sizes are the model's; the resolution may differ. */
status model_choice_check(const struct options *options, const struct vit_settings *vit, struct error *error);

/* The option table entries that model_choice_read reads. */
#define MODEL_CHOICE_OPTIONS                                                                                           \
    OPTION(LIST, "heads", "auto",                                                                                      \
           "attention heads of the image and the text tower, as in 16,16; auto: from a configuration beside the "      \
           "weights"),                                                                                                 \
        OPTION_ONE_OF("activation", CLIP_ACTIVATION_CHOICES, "auto",                                                   \
                      "activation of the MLPs: quick_gelu for OpenAI's weights, gelu_tanh for SigLIP's, gelu for "     \
                      "most others; auto: from a configuration beside the weights")

/* The caller frees. "mini" is looked for in weights/ beside the executable, then
 * where make install puts it. */
char *weights_path(const char *name);
char *vocabulary_path(const char *name);

/* ERROR_IO where the file is not the one that was read; drawn weights have none. */
status weights_expect(const struct witness *read, const char *path, struct error *error);

/* clip_load; witness, unless NULL, receives that of the file before it was read. The error for a missing file says what is expected. */
status weights_load(struct clip **clip, struct backend *backend, struct arena *arena, const char *name,
                    enum parameters_mode mode, const struct clip_stated *stated, struct witness *witness,
                    struct error *error);

/* For a missing file with the name of one that OpenAI published, creates a CLIP of its size, of zeros. Otherwise
 * ERROR_IO, without a message. */
status weights_plan(struct clip **clip, struct backend *backend, struct arena *arena, const char *name,
                    enum parameters_mode mode, struct error *error);

/* Loads an image tower alone, as vit_load reads it. */
status vit_weights_load(struct clip **vit, struct backend *backend, struct arena *arena, const char *name,
                        enum parameters_mode mode, const struct vit_stated *stated, struct witness *witness,
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
                       struct witness *witness, struct error *error);
