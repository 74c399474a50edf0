/* The common part of selectors with autoencoders: one autoencoder per task, trained on features of the task's images,
 * whose reconstruction error measures how foreign an image is. The selectors differ in the features: FEATURES_PATCHES
 * are computed once, FEATURES_PIXELS (AlexNet's, which are not kept in memory) from the images every time.
 */
#pragma once

#include "harness/selectors/selectors.h"

size_t coders_width(const struct selector_kind *kind, const struct model *model);

/* The functions of struct selector_kind. */
size_t coders_most(const struct selector_settings *settings);
status coders_open(struct selector *selector, enum parameters_mode mode, struct error *error);
void coders_close(struct selector *selector);
status coders_before(struct selector *selector, struct error *error);
status coders_fit(struct selector *selector, const struct task *task, const struct selector_images *images, size_t used,
                  struct error *error);
status coders_errors(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                     struct error *error);
status coders_keep(struct selector *selector, const struct serializer *serializer, size_t trained, struct error *error);
status coders_write(const struct selector *selector, struct selector_tensors *tensors, struct error *error);
status coders_read(struct selector *selector, const struct safetensors *file, struct error *error);

#define CODER_FORMULA "x = sigmoid(features), r = sigmoid(W2 ReLU(W1 x + b1) + b2), error = mean (r - x)^2"
#define CODER_KEYS "code|iterations|batch|learning_rate|l2|unrelated"
#define CODER_FUNCTIONS                                                                                                \
    .most = coders_most, .open = coders_open, .close = coders_close, .before = coders_before, .fit = coders_fit,       \
    .errors = coders_errors, .keep = coders_keep, .write = coders_write, .read = coders_read
