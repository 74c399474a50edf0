/* Decodes images and computes their features with the frozen image tower.
 *
 *     TRY(frozen_features(model, data, dataset, SPLIT_TRAIN, items, n, means, NULL, stop, error));
 */
#pragma once

#include "harness/heads/model.h"
#include "harness/scenario/data.h"

/* Computes for n items of a split (NULL: all), on the host: means [n, image_width] over the patches and
 * features [n, embed], not normalised, each unless NULL. */
status frozen_features(struct model *model, const struct data *data, const struct dataset *dataset, enum split split,
                       const uint32_t *items, size_t n, float *means, float *features, const struct stop *stop,
                       struct error *error);
