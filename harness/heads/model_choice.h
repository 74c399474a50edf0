/* The options "heads" and "activation", by which a suite or a command line describes the weights of a model.
 *
 *     TRY(model_choice_read(&stated, options, "--heads", "--activation", error));
 */
#pragma once

#include "core/option.h"
#include "models/files/clip_config.h"
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
/* clang-format off */
#define MODEL_CHOICE_OPTIONS \
    {.name = "heads", \
     .type = OPTION_LIST, \
     .fallback = "auto", \
     .help = "attention heads of the image and the text tower, as in 16,16; auto: from a configuration beside the " \
             "weights"}, \
    {.name = "activation", \
     .type = OPTION_CHOICE, \
     .choices = CLIP_ACTIVATION_CHOICES, \
     .fallback = "auto", \
     .help = \
         "activation of the MLPs: quick_gelu for OpenAI's weights, gelu_tanh for SigLIP's, gelu for most others; auto: from a configuration " \
             "beside the weights"}
/* clang-format on */
