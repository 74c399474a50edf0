/* The mean of the training loss over some iterations, summed on the device, so that the host waits only when it reads
 * the mean.
 *
 *     TRY(loss_mean_open(&mean, model, memory, error));
 *     TRY(loss_mean_add(&mean, model, error));                 // after every iteration; skipped ones do not count
 *     TRY(loss_mean_take(&mean, model, &loss, error));         // and starts anew
 */
#pragma once

#include "harness/heads/model.h"
#include "harness/train/serializer.h"

struct loss_mean {
    float *sums; /* device [3]: Σ loss, number of iterations, and 1 */
};

status loss_mean_open(struct loss_mean *mean, const struct model *model, struct arena *arena, struct error *error);
status loss_mean_add(const struct loss_mean *mean, const struct model *model, struct error *error);
status loss_mean_take(const struct loss_mean *mean, const struct model *model, double *loss, struct error *error);
status loss_mean_clear(const struct loss_mean *mean, const struct model *model, struct error *error);

/* For a method's keep. */
status loss_mean_keep(const struct loss_mean *mean, const char *name, const struct serializer *serializer,
                      struct error *error);
