/* The selector's tensors in a file of adapters, as a PyTorch user would name them: selector.K.encoder.weight [code, width],
 * .encoder.bias, .decoder.weight [width, code], .decoder.bias of the K-th task, and selector.thresholds [coders].
 *
 *     struct selector_tensors tensors;
 *     TRY(selector_tensors_create(&tensors, coders, thresholds, trained, error));   // … tensors.list to the writer …
 *     selector_tensors_free(&tensors);
 *
 *     TRY(selector_file_check(file, width, code, &trained, error));    // before memory is taken for the coders
 *     TRY(selector_file_read(file, coders, thresholds, trained, error));
 */
#ifndef MTIL_ADAPTERS_FILES_SELECTOR_FILE_H
#define MTIL_ADAPTERS_FILES_SELECTOR_FILE_H

#include "adapters/experts/autoencoder.h"
#include "models/files/safetensors.h"

struct selector_tensors {
    size_t count;
    struct safetensor *list;
    struct selector_tensor_name *names; /* storage */
    float *values;
};

/* Copies of the first `trained` coders and their thresholds, on the host; nothing to free after a failure. */
status selector_tensors_create(struct selector_tensors *tensors, struct autoencoder *const *coders,
                               const float *thresholds, size_t trained, struct error *error);
void selector_tensors_free(struct selector_tensors *tensors);

/* How many coders the file has: all must be there, with these sizes and finite values, and a threshold each, which may
 * be infinite. */
status selector_file_check(const struct safetensors *file, size_t width, size_t code, size_t *trained,
                           struct error *error);

/* Into coders of the same sizes, thresholds [trained]; the file was checked. */
status selector_file_read(const struct safetensors *file, struct autoencoder *const *coders, float *thresholds,
                          size_t trained, struct error *error);

#endif
