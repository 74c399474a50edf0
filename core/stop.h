/* A stop request, polled wherever stopping is safe. harness/terminal/stop.h raises it on signals.
 *
 *     if (stop_requested(stop))
 *         return error_set(error, ERROR_STOPPED, "stopped after iteration %zu of task %zu", iteration, task);
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct stop {
    atomic_int signal; /* 0: go on; a test may set it itself */
    atomic_bool held;  /* there is something to save first (harness/terminal/stop.h) */
};

/* stop may be NULL: never. Safe from any thread. */
static inline bool stop_requested(const struct stop *stop)
{
    return stop != NULL && atomic_load_explicit(&stop->signal, memory_order_relaxed) != 0;
}
