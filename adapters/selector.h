/* The selector's autoencoders, which predict the task of an image, and the selector's tensors in a file of adapters.
 * See adapters/README.md.
 *
 *     struct autoencoder *coder;
 *     TRY(autoencoder_create(&coder, backend, &task_arena, width, 100, PARAMETERS_TRAINED, error));
 *     TRY(autoencoder_initialize(coder, seed, task, error));
 *     TRY(autoencoder_train_step(coder, &step_arena, &features, state, &rule, &loss, error));
 *     TRY(autoencoder_errors(coder, &step_arena, &features, errors, error));  // the smallest one picks the router
 *
 * y = sigmoid(x); r = sigmoid(W₂ ReLU(W₁ y + b₁) + b₂); error = mean (r − y)².
 *
 *     struct selector_tensors tensors = {0};
 *     selector_tensors_add_thresholds(&tensors, thresholds, trained);
 *     TRY(selector_tensors_add_coders(&tensors, coders, trained, error));   // … tensors.list to the writer …
 *     selector_tensors_free(&tensors);
 *
 *     TRY(selector_file_check(file, width, code, 0, &trained, error));  // before memory is taken for the coders
 *     TRY(selector_file_read(file, coders, trained, error));
 */
#pragma once

#include "models/block.h"
#include "models/files/safetensors.h"

struct autoencoder {
    struct backend *backend;
    size_t width, code;
    struct parameters *
        parameters; /* encoder.0.weight [code, width], encoder.0.bias, decoder.0.weight [width, code], decoder.0.bias */
    struct linear encoder, decoder;
};

status autoencoder_create(struct autoencoder **coder, struct backend *backend, struct arena *arena, size_t width,
                          size_t code, enum parameters_mode mode, struct error *error);
void autoencoder_destroy(struct autoencoder *coder); /* NULL is allowed */

/* Weights and biases start uniform within ±1/√inputs, as in a linear layer of PyTorch; drawn with RNG_SELECTOR. */
status autoencoder_initialize(struct autoencoder *coder, uint64_t seed, uint32_t task, struct error *error);

/* errors [n] on the host, of features [n, width] (before the sigmoid). */
status autoencoder_errors(struct autoencoder *coder, struct arena *arena, const struct tensor *features, float *errors,
                          struct error *error);

/* One Adam step on the mean of the errors; *loss on the host, before the step. */
status autoencoder_train_step(struct autoencoder *coder, struct arena *arena, const struct tensor *features,
                              const struct step_state *state, const struct update_rule *rule, float *loss,
                              struct error *error);

/* The router for an image whose errors under coders 0 … n−1 are given: the index of the smallest (ties: the lowest), or
 * −1, the original CLIP, when the smallest exceeds its threshold. thresholds [n]. */
int autoencoder_choice(const float *errors, const float *thresholds, size_t n);

/* In files, autoencoders have the names that a PyTorch user would choose: selector.K.encoder.weight [code, width], .encoder.bias,
 * .decoder.weight [width, code], .decoder.bias of the K-th task; every selector has selector.thresholds [trained tasks], which
 * may be infinite. */
struct selector_tensors {
    size_t count;
    struct safetensor *list; /* with names and values of their own */
};

/* Returns the tensor's values [product of shape], which the caller fills in. */
float *selector_tensors_add(struct selector_tensors *tensors, const char *name, int rank, const size_t *shape);
status selector_tensors_add_coders(struct selector_tensors *tensors, struct autoencoder *const *coders, size_t count,
                                   struct error *error);
void selector_tensors_add_thresholds(struct selector_tensors *tensors, const float *thresholds, size_t count);
void selector_tensors_free(struct selector_tensors *tensors); /* also after a failure */

/* A tensor of this shape with finite values, which are borrowed from the file. */
status selector_file_array(const struct safetensors *file, const char *name, int rank, const size_t *shape,
                           const float **values, struct error *error);

/* thresholds [trained], borrowed; some may be infinite. */
status selector_file_thresholds(const struct safetensors *file, const float **thresholds, size_t *trained,
                                struct error *error);

/* Counts the tasks with autoencoders in the file. All must be there, with these sizes and finite values, and a threshold
 * each. After them come `more` without a threshold. */
status selector_file_check(const struct safetensors *file, size_t width, size_t code, size_t more, size_t *trained,
                           struct error *error);

/* Reads a file that selector_file_check accepted into coders of the same sizes. */
status selector_file_read(const struct safetensors *file, struct autoencoder *const *coders, size_t count,
                          struct error *error);
