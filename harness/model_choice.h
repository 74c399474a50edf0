/* What a suite or a command line says of the weights of a model: the options "heads" and "activation".
 *
 *     TRY(model_choice_read(&stated, options, "--heads", "--activation", error));
 */
#ifndef MTIL_HARNESS_MODEL_CHOICE_H
#define MTIL_HARNESS_MODEL_CHOICE_H

#include "core/option.h"
#include "models/clip_config.h"

#define CLIP_ACTIVATION_CHOICES "auto|quick_gelu|gelu"

/* The names of both options as the user knows them are borrowed. */
status model_choice_read(struct clip_stated *stated, const struct options *options, const char *heads,
                         const char *activation, struct error *error);

#endif
