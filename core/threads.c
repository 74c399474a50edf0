#include "core/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "core/alloc.h"

/* Some ten microseconds: the next operation of a step usually comes earlier, and other programs need the core. */
enum { SPINS = 500 };

status stop_check(const struct stop *stop, const char *what, struct error *error)
{
    return stop_requested(stop) ? error_set(error, ERROR_STOPPED, "stopped while %s", what) : OK;
}

struct threads {
    size_t count, started;
    pthread_t *handles;
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    atomic_ulong generation; /* incremented by every run; workers wait for it to change */
    atomic_size_t next, working;
    atomic_bool stop;
    const struct stop *request; /* to leave out jobs; NULL: none */
    size_t jobs;
    threads_job function;
    void *context;
};

struct worker {
    struct threads *pool;
    size_t index;
};

static void work(struct threads *pool, size_t worker)
{
    for (;;) {
        size_t job = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (job >= pool->jobs || stop_requested(pool->request))
            return;
        pool->function(pool->context, job, worker);
    }
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void wait_for_generation(struct threads *pool, unsigned long seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool->generation) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load(&pool->generation) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    struct worker worker = *(struct worker *)argument;
    free(argument);
    struct threads *pool = worker.pool;
    unsigned long seen = 0;
    for (;;) {
        wait_for_generation(pool, seen);
        seen++;
        if (atomic_load(&pool->stop))
            return NULL;
        work(pool, worker.index);
        if (atomic_fetch_sub(&pool->working, 1) == 1) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

static void next_generation(struct threads *pool)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

size_t threads_available(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (size_t)CPU_COUNT(&set);
    return 1;
}

/* Workers block signals, because the code they run may use the stack in ways that a handler would corrupt. */
static int create_without_signals(pthread_t *handle, struct worker *worker)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(handle, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static status start_workers(struct threads *pool, struct error *error)
{
    for (size_t i = 1; i < pool->count; i++) {
        struct worker *worker = xmalloc(sizeof *worker);
        *worker = (struct worker){pool, i};
        int failed = create_without_signals(&pool->handles[i], worker);
        if (failed != 0) {
            free(worker);
            return error_errno(error, failed, "threads: cannot start thread %zu of %zu", i + 1, pool->count);
        }
        pool->started = i;
    }
    return OK;
}

status threads_create(struct threads **result, size_t count, struct error *error)
{
    SCOPED(threads_destroy_at) struct threads *pool = xcalloc(1, sizeof *pool);
    pool->count = count > 0 ? count : threads_available();
    pool->handles = xcalloc(pool->count, sizeof *pool->handles);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    TRY(start_workers(pool, error));
    *result = TAKE(pool);
    return OK;
}

void threads_run(struct threads *pool, size_t jobs, threads_job function, void *context)
{
    if (jobs == 0)
        return;
    if (pool == NULL || pool->started == 0 || jobs == 1) {
        for (size_t job = 0; job < jobs && !threads_stopped(pool); job++)
            function(context, job, 0);
        return;
    }
    pool->jobs = jobs;
    pool->function = function;
    pool->context = context;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->working, pool->started);
    next_generation(pool);
    work(pool, 0);
    for (int i = 0; i < SPINS && atomic_load(&pool->working) > 0; i++)
        relax();
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load(&pool->working) > 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

size_t threads_count(const struct threads *pool)
{
    return pool->count;
}

void threads_obey(struct threads *pool, const struct stop *stop)
{
    pool->request = stop;
}

bool threads_stopped(const struct threads *pool)
{
    return pool != NULL && stop_requested(pool->request);
}

status threads_check(const struct threads *pool, const char *what, struct error *error)
{
    return pool != NULL ? stop_check(pool->request, what, error) : OK;
}

void threads_destroy(struct threads *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->stop, true);
    next_generation(pool);
    for (size_t i = 1; i <= pool->started; i++)
        pthread_join(pool->handles[i], NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->handles);
    free(pool);
}
