/* Seconds of a clock that only goes forward, from an unnamed beginning.
 *
 *     double start = clock_seconds();
 *     ...
 *     took = clock_seconds() - start;
 */
#pragma once

#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
