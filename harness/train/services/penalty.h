/* A pull towards an anchor: loss += strength · Σ importance · (θ − anchor)², gradients += 2 · strength · importance ·
 * (θ − anchor), over all values of a group (L2-SP, Li et al. 2018, arXiv 1802.01483; in ZSCL, arXiv 2303.06628; with
 * importances, EWC, Kirkpatrick et al. 2017, arXiv 1612.00796).
 */
#pragma once

#include "models/parameters.h"

/* anchor, importance (NULL: 1): device, as long as the group's values; loss: device, one value. */
status penalty_add(const struct parameters *group, const float *anchor, const float *importance, float strength,
                   float *loss, struct error *error);
