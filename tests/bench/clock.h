/* The time, and the order of times, for benches. */
#ifndef MTIL_TESTS_BENCH_CLOCK_H
#define MTIL_TESTS_BENCH_CLOCK_H

#include "core/clock.h"

/* Of doubles, for qsort. */
static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
