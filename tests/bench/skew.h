/* Routers whose choices fall on two experts: noisy top-k routers start at zero, so that noise chooses, each expert as
 * often as any other.
 *
 *     skew_routers(backend, forward, context);               // forward meets every router once
 *     double share = skew_share(adapters, TOWER_IMAGE);      // 1: all choices since the task began
 */
#pragma once

#include "adapters/adapter.h"

/* Gives the first two experts of every router that `forward` meets a logit of about 100 more than the others. */
void skew_routers(struct backend *backend, recorded_body forward, void *context);

/* What the two most used experts of each block have of its choices, the mean of the blocks. */
double skew_share(const struct adapters *adapters, enum tower tower);
