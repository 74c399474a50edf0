/* The tensors of a selector in a file of adapters.
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

#include "adapters/autoencoder.h"
#include "models/files/safetensors.h"

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

/* One function names a kind's arrays in both directions: an array is added to `tensors`, or read from `file` as above. */
struct selector_arrays {
    struct selector_tensors *tensors;
    const struct safetensors *file; /* NULL: adds */
};
status selector_array(const struct selector_arrays *arrays, const char *name, int rank, const size_t *shape,
                      float *values, struct error *error);

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
