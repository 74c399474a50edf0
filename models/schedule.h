/* The learning rate over a task's iterations: linear warm-up, then cosine to 0 at `iterations`.
 *
 *     struct schedule schedule = {.peak = 1e-3, .warmup = 100, .iterations = 1000};
 *     for (size_t i = 0; i < 1000; i++)
 *         … schedule_rate(&schedule, i) …
 */
#pragma once

#include <stddef.h>

struct schedule {
    double peak;
    size_t warmup, iterations;
};

/* For iteration i, counted from 0: peak · (i + 1) / warmup while i < warmup, then peak · ½ (1 + cos(π (i − warmup) /
 * (iterations − warmup))). */
double schedule_rate(const struct schedule *schedule, size_t iteration);
