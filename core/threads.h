/* A pool of threads that runs numbered jobs, and a request to stop that any of them may see.
 *
 *     struct threads *pool;
 *     TRY(threads_create(&pool, 0, error));                        // 0: one per available core
 *     threads_run(pool, tiles, multiply_tile, &product);           // returns when every job has run
 *     threads_destroy(pool);
 *
 * Jobs are taken in increasing order by whichever thread is free. A job must write only what no other job writes; then
 * the result does not depend on the number of threads.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/scope.h"
#include "core/status.h"

/* A stop request, polled wherever stopping is safe. harness/terminal/stop.h raises it on signals.
 *
 *     if (stop_requested(stop))
 *         return error_set(error, ERROR_STOPPED, "stopped after iteration %zu of task %zu", iteration, task);
 */
struct stop {
    atomic_int signal; /* 0: go on; a test may set it itself */
    atomic_bool held;  /* there is something to save first (harness/terminal/stop.h) */
};

/* stop may be NULL: never. Safe from any thread. */
static inline bool stop_requested(const struct stop *stop)
{
    return stop != NULL && atomic_load_explicit(&stop->signal, memory_order_relaxed) != 0;
}

/* ERROR_STOPPED, "stopped while WHAT", once it is requested. */
status stop_check(const struct stop *stop, const char *what, struct error *error);

struct threads;

/* job in [0, jobs); worker in [0, threads_count), so that it can index per-thread scratch. */
typedef void (*threads_job)(void *context, size_t job, size_t worker);

/* count 0 means one per core this process may use. The caller destroys the pool. */
status threads_create(struct threads **pool, size_t count, struct error *error);

/* Runs function for every job in [0, jobs) and returns when all are done; the calling thread works too (as worker 0), alone
 * where pool is NULL. Not to be called from inside a job, nor from two threads at once. */
void threads_run(struct threads *pool, size_t jobs, threads_job function, void *context);

/* The number of workers, the caller included. */
size_t threads_count(const struct threads *pool);

/* From now on, jobs that have not begun once stop (NULL: never) is requested are left out. What they were to compute is then
 * incomplete, so a caller uses nothing of it before threads_check, which fails with "stopped while WHAT". */
void threads_obey(struct threads *pool, const struct stop *stop);
bool threads_stopped(const struct threads *pool); /* NULL: never */
status threads_check(const struct threads *pool, const char *what, struct error *error);

/* Cores this process may use (its affinity mask). */
size_t threads_available(void);

void threads_destroy(struct threads *pool); /* NULL is allowed */
SCOPED_POINTER(struct threads, threads_destroy)
