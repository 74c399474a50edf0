/* The autoencoders that predict the task of an image (adapters/README.md).
 *
 *     struct autoencoder *coder;
 *     TRY(autoencoder_create(&coder, backend, &task_arena, width, 100, PARAMETERS_TRAINED, error));
 *     TRY(autoencoder_initialize(coder, seed, task, error));
 *     TRY(autoencoder_train_step(coder, &step_arena, &features, state, &rule, &loss, error));
 *     TRY(autoencoder_errors(coder, &step_arena, &features, errors, error));  // the smallest one picks the router
 *
 * y = sigmoid(x); r = sigmoid(W₂ ReLU(W₁ y + b₁) + b₂); error = mean (r − y)².
 */
#pragma once

#include "core/scope.h"
#include "models/block.h"

enum { AUTOENCODER_TENSORS = 4 };

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
SCOPED_POINTER(struct autoencoder, autoencoder_destroy)

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
