/* Routers whose choices fall on two experts: noisy top-k routers start at zero, so that noise chooses, each expert as
 * often as any other.
 *
 *     must(skew_routers(backend, forward, context, &error));       // forward meets every router once
 *     must(skew_share(adapters, TOWER_IMAGE, &share, &error));     // 1: all choices since the task began
 */
#pragma once

#include "adapters/adapter.h"

/* Gives the first two experts of every router that `forward` meets a logit of about 100 more than the others. */
status skew_routers(struct backend *backend, recorded_body forward, void *context, struct error *error);

/* What the two most used experts of each block have of its choices, the mean of the blocks. */
status skew_share(const struct adapters *adapters, enum tower tower, double *share, struct error *error);
