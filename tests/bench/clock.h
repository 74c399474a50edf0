/* The time, and the order of times, for benches. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

/* Of doubles, for qsort. */
static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of at most MOST_FIGURES values. */
enum { MOST_FIGURES = 20 };
struct figures {
    double lowest, middle, highest;
};

static inline struct figures figures_of(const double *values, size_t count)
{
    double sorted[MOST_FIGURES];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, ascending);
    return (struct figures){sorted[0], (sorted[(count - 1) / 2] + sorted[count / 2]) / 2, sorted[count - 1]};
}
