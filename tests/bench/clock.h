/* The time, and the order of times, for benches. */
#ifndef MTIL_TESTS_BENCH_CLOCK_H
#define MTIL_TESTS_BENCH_CLOCK_H

#include <time.h>

static inline double now(void) /* seconds */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of doubles, for qsort. */
static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
