/* Features of images from the frozen image tower, decoded on the way.
 *
 *     TRY(frozen_features(e, dataset, SPLIT_TRAIN, items, n, means, NULL, stop, error));
 */
#ifndef MTIL_HARNESS_SELECTORS_FROZEN_FEATURES_H
#define MTIL_HARNESS_SELECTORS_FROZEN_FEATURES_H

#include "harness/run/experiment.h"

/* Of n items of a split (NULL: all): means [n, image_width] over the patches and, unless NULL, features [n, embed],
 * unnormalised, on the host. */
status frozen_features(struct experiment *experiment, const struct dataset *dataset, enum split split,
                       const uint32_t *items, size_t n, float *means, float *features, const struct stop *stop,
                       struct error *error);

#endif
