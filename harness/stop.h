/* The wish to stop: raised by Ctrl-C or SIGTERM, asked for wherever stopping is safe.
 *
 *     if (stop_requested(stop))
 *         return error_set(error, ERROR_STOPPED, "stopped after iteration %zu of task %zu", iteration, task);
 *
 * The first signal raises the wish, the second one of its kind ends the program at once.
 */
#ifndef MTIL_HARNESS_STOP_H
#define MTIL_HARNESS_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

struct stop {
    atomic_int signal; /* 0: go on; a test may raise it itself */
};

/* stop may be NULL: never. Safe from any thread. */
bool stop_requested(const struct stop *stop);

/* SIGINT and SIGTERM raise stop from now on; stop must live until the program ends. */
void stop_on_signals(struct stop *stop);

#endif
