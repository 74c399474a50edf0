/* Clocks: seconds of one that only goes forward, from an unnamed beginning, and the time.
 *
 *     double start = clock_seconds();
 *     ...
 *     took = clock_seconds() - start;
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds since 1970. */
static inline int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
