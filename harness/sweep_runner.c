#include "harness/sweep_runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/text.h"
#include "harness/child.h"
#include "results/live.h"

enum { SIGNAL_EXIT = 128, LOOK_MS = 50, LOOKS_PER_REPORT = 10 };

struct slot {
    bool busy;
    size_t run;
    time_t begun;
    struct child child;
};

struct pool {
    const struct sweep_runner *runner;
    struct store *store; /* to look at what the children are doing */
    struct slot *slots;  /* [placement.jobs] */
    size_t next;         /* of the runs to be looked at */
    size_t work, done;   /* runs to do, and done */
    bool stopping;
};

static struct sweep_run *run_of(const struct pool *pool, const struct slot *slot)
{
    return &pool->runner->sweep->runs[slot->run];
}

/* --- Begin and end of a run --- */

static void fail(const struct pool *pool, struct sweep_run *run, const char *reason)
{
    run->failure = strdup(reason);
    log_warn(pool->runner->log, "%s failed: %s", run->label, reason);
}

static status start(struct pool *pool, size_t slot, struct error *error)
{
    struct sweep *sweep = pool->runner->sweep;
    struct slot *s = &pool->slots[slot];
    struct sweep_run *run = run_of(pool, s);
    const struct sweep_configuration *c = &sweep->configurations[run->configuration];
    char threads[48], device[48], **arguments;
    const char *more[4] = {threads};
    size_t count = 1;
    snprintf(threads, sizeof threads, "run.threads=%zu", placement_threads(&pool->runner->placement, slot));
    snprintf(device, sizeof device, "run.device=%zu", placement_gpu(&pool->runner->placement, slot));
    if (c->shares)
        more[count++] = "run.cache=disk";
    if (c->moves && sweep->gpus > 0)
        more[count++] = device;
    TRY(sweep_arguments(sweep, s->run, more, &arguments, error));
    status result = child_start(&s->child, (const char *const *)arguments, run->log, error);
    sweep_arguments_free(arguments);
    if (result == OK)
        log_info(pool->runner->log, "%s %s, %s, %s", run->label,
                 run->standing == SWEEP_UNFINISHED ? "goes on" : "begins", threads, run->log);
    return result;
}

static void fill_slot(struct pool *pool, size_t slot)
{
    struct sweep *sweep = pool->runner->sweep;
    struct slot *s = &pool->slots[slot];
    while (!s->busy && pool->next < sweep->run_count) {
        struct error error;
        *s = (struct slot){.run = pool->next++, .begun = time(NULL)};
        if (!sweep_wants(run_of(pool, s)))
            continue;
        s->busy = start(pool, slot, &error) == OK;
        if (!s->busy)
            fail(pool, run_of(pool, s), error.message);
    }
}

/* It obeyed the wish to stop; or did so before it could ask for signals. */
static bool was_stopped(const struct pool *pool, const struct child_end *end)
{
    int number = atomic_load(&pool->runner->stop->signal);
    return pool->stopping && (end->exit_status == SIGNAL_EXIT + number || end->signal == number);
}

static void end_run(struct pool *pool, struct slot *slot, const struct child_end *end)
{
    struct sweep_run *run = run_of(pool, slot);
    struct text text = {0};
    slot->busy = false;
    if (end->exit_status == 0) {
        run->standing = SWEEP_FINISHED;
        pool->done++;
        text_add_duration(&text, difftime(time(NULL), slot->begun));
        log_info(pool->runner->log, "%s finished after %s (%zu of %zu)", run->label, text.failed ? "" : text.data,
                 pool->done, pool->work);
    } else {
        run->standing = SWEEP_UNFINISHED;
        if (end->exit_status < 0)
            text_add(&text, "ended by signal %d (%s)", end->signal, strsignal(end->signal));
        else
            text_add(&text, "exit status %d", end->exit_status);
        if (*end->message != 0)
            text_add(&text, ": %s", end->message);
        if (!was_stopped(pool, end))
            fail(pool, run, text.failed ? "no memory for its message" : text.data);
    }
    text_free(&text);
}

/* --- All runs --- */

/* What a child tells of itself; false before it told something. */
static bool hear(const struct pool *pool, const struct slot *slot, struct live *live)
{
    struct sweep_run *run = run_of(pool, slot);
    enum run_status past;
    if (run->row == 0 && store_run_find(pool->store, pool->runner->sweep->configurations[run->configuration].hash,
                                        (int64_t)run->seed, &run->row, &past, NULL) != OK)
        return false;
    return run->row != 0 && live_read(pool->store, run->row, live) && live->tasks > 0;
}

/* Every child with its task: "policy=none seed=1 4/11, policy=none seed=2 3/11". */
static void report(const struct pool *pool)
{
    struct text children = {0};
    double share = (double)pool->done;
    for (size_t i = 0; i < pool->runner->placement.jobs; i++) {
        const struct slot *slot = &pool->slots[i];
        struct live live;
        if (!slot->busy)
            continue;
        text_add(&children, "%s%s", children.size > 0 ? ", " : "", run_of(pool, slot)->label);
        if (hear(pool, slot, &live)) {
            text_add(&children, " %lld/%lld", (long long)live.task, (long long)live.tasks);
            share += live.done;
        }
    }
    if (children.data != NULL)
        progress_report(pool->runner->progress, &(struct progress_state){.activity = pool->stopping ? "stop" : "sweep",
                                                                         .subject = children.data,
                                                                         .step = pool->done,
                                                                         .steps = pool->work,
                                                                         .done = share / (double)pool->work});
    text_free(&children);
}

static void pass_on_stop(struct pool *pool)
{
    if (pool->stopping || !stop_requested(pool->runner->stop))
        return;
    pool->stopping = true;
    for (size_t i = 0; i < pool->runner->placement.jobs; i++)
        if (pool->slots[i].busy)
            child_signal(&pool->slots[i].child, atomic_load(&pool->runner->stop->signal));
}

/* Reaps, stops, fills; returns the number of children that run. */
static size_t look(struct pool *pool)
{
    size_t busy = 0;
    pass_on_stop(pool);
    for (size_t i = 0; i < pool->runner->placement.jobs; i++) {
        struct slot *slot = &pool->slots[i];
        struct child_end end;
        if (slot->busy && child_ended(&slot->child, &end))
            end_run(pool, slot, &end);
        if (!pool->stopping)
            fill_slot(pool, i);
        busy += slot->busy;
    }
    return busy;
}

static status run_pool(struct pool *pool, struct error *error)
{
    for (size_t looks = 0; look(pool) > 0; looks++) {
        if (looks % LOOKS_PER_REPORT == 0)
            report(pool);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    progress_end(pool->runner->progress);
    if (!pool->stopping)
        return OK;
    return error_set(error, ERROR_STOPPED, "stopped after %zu of %zu runs; the same command goes on from here",
                     pool->done, pool->work);
}

/* Two processes of one sweep would get into each other's way at every run. */
static status lock_folder(const char *folder, int *lock, struct error *error)
{
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return error_errno(error, errno, "%s: cannot open the sweep's folder", folder);
    if (flock(*lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(*lock);
        return error_set(error, ERROR_BUSY, "%s: in use: another process is running this sweep; wait for it or stop it",
                         folder);
    }
    return OK; /* a file system without locks is no reason to stop */
}

static status make_folders(const struct sweep *sweep, struct error *error)
{
    char *logs = path_format("%s/logs", sweep->folder);
    if (logs == NULL)
        return error_set(error, ERROR_MEMORY, "sweep: no memory for a path");
    status result = directory_create(logs, error);
    free(logs);
    return result;
}

static status run_all(struct pool *pool, struct error *error)
{
    pool->slots = calloc(pool->runner->placement.jobs, sizeof *pool->slots);
    if (pool->slots == NULL)
        return error_set(error, ERROR_MEMORY, "sweep: no memory for %zu runs at a time", pool->runner->placement.jobs);
    status result = store_open(&pool->store, pool->runner->sweep->database, STORE_READ, error);
    if (result == OK)
        result = run_pool(pool, error);
    store_close(pool->store);
    free(pool->slots);
    return result;
}

status sweep_runner_run(const struct sweep_runner *runner, struct error *error)
{
    struct sweep *sweep = runner->sweep;
    struct pool pool = {.runner = runner, .work = sweep_work(sweep)};
    int lock;
    if (pool.work == 0)
        return OK;
    TRY(make_folders(sweep, error));
    TRY(lock_folder(sweep->folder, &lock, error));
    status result = run_all(&pool, error);
    close(lock);
    return result;
}

size_t sweep_runner_failures(const struct sweep *sweep)
{
    size_t failures = 0;
    for (size_t i = 0; i < sweep->run_count; i++)
        failures += sweep->runs[i].failure != NULL;
    return failures;
}
