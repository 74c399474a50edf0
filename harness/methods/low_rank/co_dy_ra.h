/* The arithmetic of CoDyRA (co_dy_ra.c): thresholds of importances, and what they do. */
#pragma once

#include <stddef.h>

struct sparsity_rule {
    double most, dense; /* the last level's κ; the share of a task's iterations without a threshold */
    size_t levels;      /* of κ, at least 2: evenly spaced from 0 */
};

/* κ behind iteration 1 … iterations. */
double co_dy_ra_threshold(const struct sparsity_rule *rule, size_t iteration, size_t iterations);

/* sign(m) · max(|m| − κ, 0) */
float co_dy_ra_shrink(float importance, float threshold);
