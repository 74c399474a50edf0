#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/sweep/child.h"
#include "harness/sweep/sweep.h"
#include "harness/terminal/stop.h"
#include "results/store/live.h"

struct tally_run {
    double amount, first, share; /* first: done before the first report; share: of the rest */
    bool heard;
};

void tally_open(struct tally *tally, size_t runs)
{
    *tally = (struct tally){.runs = xcalloc(runs, sizeof *tally->runs)};
}

void tally_close(struct tally *tally)
{
    free(tally->runs);
}

void tally_expect(struct tally *tally, size_t run, double amount, bool begun)
{
    tally->runs[run] = (struct tally_run){.amount = amount, .heard = !begun};
    tally->work.total[0] += amount;
}

static void advance(struct tally *tally, struct tally_run *run, double share)
{
    double gained = fmin(fmax(share - run->share, 0), 1);
    run->share += gained;
    tally->work.done[0] += gained * run->amount;
}

void tally_hear(struct tally *tally, size_t index, double done)
{
    struct tally_run *run = &tally->runs[index];
    if (!run->heard)
        run->first = done;
    run->heard = true;
    if (run->first < 1)
        advance(tally, run, (done - run->first) / (1 - run->first));
}

void tally_end(struct tally *tally, size_t run)
{
    advance(tally, &tally->runs[run], 1);
}

enum { LOOK_MS = 50, LOOKS_PER_REPORT = 10, PATIENCE_MS = 500, TRIES_MOST = 20 };

struct slot {
    bool busy;
    size_t run;
    time_t begun;
    struct child child;
};

struct pool {
    const struct sweep_runner *runner;
    struct store *store;  /* to read the progress of the children */
    struct slot *slots;   /* [placement.jobs] */
    unsigned char *tries; /* [runs] attempts to start a run; in all but the last, another process was faster */
    bool *taken;          /* [runs] started here, not to be started again */
    size_t next;          /* all runs before it have been started */
    size_t work, done;    /* runs to do, and finished */
    size_t elsewhere;     /* runs of other processes */
    struct tally tally;
    bool stopping;
};

static struct sweep_run *run_of(const struct pool *pool, const struct slot *slot)
{
    return &pool->runner->sweep->runs[slot->run];
}

/* --- Start and end of a run --- */

static void fail(struct pool *pool, struct sweep_run *run, const char *reason)
{
    tally_end(&pool->tally, (size_t)(run - pool->runner->sweep->runs));
    run->failure = xstrdup(reason);
    log_warn(pool->runner->log, "%s failed: %s", run->label, reason);
}

static status start(struct pool *pool, size_t slot, struct error *error)
{
    struct sweep *sweep = pool->runner->sweep;
    struct slot *s = &pool->slots[slot];
    struct sweep_run *run = run_of(pool, s);
    const struct sweep_configuration *c = &sweep->configurations[run->configuration];
    const struct placement *placement = &pool->runner->placement;
    size_t threads = placement_threads(placement, slot);
    SCOPED(strings_free) struct strings arguments = {0};
    sweep_arguments(sweep, s->run, &arguments);
    strings_format(&arguments, "run.threads=%zu", threads);
    if (c->shares)
        strings_format(&arguments, "run.cache=disk");
    if (c->moves && sweep->gpus > 0)
        strings_format(&arguments, "run.device=%zu", placement_gpu(placement, slot));
    TRY(child_start(&s->child, &arguments, run->log, error));
    log_info(pool->runner->log, "%s %s, run.threads=%zu, %s", run->label,
             run->standing == SWEEP_UNFINISHED ? "goes on" : "begins", threads, run->log);
    return OK;
}

/* --- Runs of other processes --- */

/* Runs in databases of a cluster's jobs (row 0) are left to the cluster. */
static bool is_waited_for(const struct sweep_run *run)
{
    return run->standing == SWEEP_ELSEWHERE && run->row != 0;
}

static void finish(struct pool *pool, const struct sweep_run *run, const char *how)
{
    pool->done++;
    tally_end(&pool->tally, (size_t)(run - pool->runner->sweep->runs));
    log_info(pool->runner->log, "%s finished %s (%zu of %zu)", run->label, how, pool->done, pool->work);
}

/* The process that writes the run, or wrote it last; 0: unknown. */
static long long process_of(const struct pool *pool, const struct sweep_run *run)
{
    int64_t process;
    return database_ask(store_database(pool->store), "SELECT process FROM runs WHERE run = ?1",
                        VALUES(value_integer(run->row)), &process, NULL) == OK
               ? (long long)process
               : 0;
}

/* Reads the run's current state from the results; a failed reading is repeated. */
static void refresh(struct pool *pool, size_t index)
{
    struct sweep_run *run = &pool->runner->sweep->runs[index];
    enum sweep_standing before = run->standing;
    if (sweep_look_at(pool->runner->sweep, index, pool->store, NULL) != OK || run->standing == before)
        return;
    if (run->standing == SWEEP_FINISHED)
        finish(pool, run, "in another process");
    if (run->standing == SWEEP_ELSEWHERE)
        log_info(pool->runner->log, "%s: waiting for process %lld, which is working on it", run->label,
                 process_of(pool, run));
    if (sweep_wants(run) && index < pool->next)
        pool->next = index;
}

static void look_elsewhere(struct pool *pool)
{
    pool->elsewhere = 0;
    for (size_t i = 0; i < pool->runner->sweep->run_count; i++) {
        if (is_waited_for(&pool->runner->sweep->runs[i]))
            refresh(pool, i);
        pool->elsewhere += is_waited_for(&pool->runner->sweep->runs[i]);
    }
}

static void fill_slot(struct pool *pool, size_t slot)
{
    struct sweep *sweep = pool->runner->sweep;
    struct slot *s = &pool->slots[slot];
    while (!s->busy && pool->next < sweep->run_count) {
        struct error error;
        *s = (struct slot){.run = pool->next++, .begun = time(NULL)};
        if (pool->taken[s->run] || !sweep_wants(run_of(pool, s)))
            continue;
        refresh(pool, s->run);
        if (!sweep_wants(run_of(pool, s)))
            continue;
        pool->taken[s->run] = true;
        s->busy = start(pool, slot, &error) == OK;
        if (!s->busy)
            fail(pool, run_of(pool, s), error.message);
    }
}

/* The child obeyed the stop request, or ended before it had installed its handlers. */
static bool was_stopped(const struct pool *pool, const struct child_end *end)
{
    int number = atomic_load(&pool->runner->stop->signal);
    return pool->stopping && (end->exit_status == EXIT_SIGNAL + number || end->signal == number);
}

/* Another process had the run locked and may have left it unfinished. */
static bool try_again(struct pool *pool, size_t index, const struct child_end *end)
{
    struct sweep_run *run = &pool->runner->sweep->runs[index];
    if (end->exit_status != EXIT_BUSY || pool->tries[index]++ == TRIES_MOST)
        return false;
    pool->taken[index] = false;
    if (sweep_wants(run) && index < pool->next)
        pool->next = index;
    return true;
}

static void describe_end(const struct child_end *end, struct text *text)
{
    if (end->exit_status < 0)
        text_add(text, "ended by signal %d (%s)", end->signal, strsignal(end->signal));
    else
        text_add(text, "exit status %d", end->exit_status);
    if (*end->message != 0)
        text_add(text, ": %s", end->message);
}

/* The results decide whether a run is finished, not its exit status. */
static void end_run(struct pool *pool, struct slot *slot, const struct child_end *end)
{
    struct sweep_run *run = run_of(pool, slot);
    SCOPED(text_free) struct text text = {0};
    slot->busy = false;
    run->standing = SWEEP_UNFINISHED;
    status looked = sweep_look_at(pool->runner->sweep, slot->run, pool->store, NULL);
    if (looked == OK && run->standing == SWEEP_FINISHED) {
        text_add(&text, "after ");
        text_add_duration(&text, difftime(time(NULL), slot->begun));
        finish(pool, run, text.data);
    } else if (!was_stopped(pool, end) && !try_again(pool, slot->run, end)) {
        describe_end(end, &text);
        fail(pool, run, text.data);
    }
}

/* --- All runs --- */

/* The progress that a child reports; false before its first report. */
static bool hear(const struct pool *pool, const struct slot *slot, struct live *live)
{
    struct sweep_run *run = run_of(pool, slot);
    enum run_status past;
    if (run->row == 0 && store_run_find(pool->store, pool->runner->sweep->configurations[run->configuration].hash,
                                        (int64_t)run->seed, &run->row, &past, NULL) != OK)
        return false;
    return run->row != 0 && live_read(pool->store, run->row, live) && live->tasks > 0;
}

/* The first of the other processes: "process 123 (policy=none seed=1)". */
static void add_waited_for(const struct pool *pool, struct text *text)
{
    const struct sweep *sweep = pool->runner->sweep;
    size_t i = 0;
    while (i < sweep->run_count && !is_waited_for(&sweep->runs[i]))
        i++;
    if (i < sweep->run_count)
        text_add(text, "process %lld (%s)", process_of(pool, &sweep->runs[i]), sweep->runs[i].label);
}

/* Every child with its task: "policy=none seed=1 (task 4 of 11), policy=none seed=2 (task 3 of 11)". */
static void add_children(struct pool *pool, struct text *text, double *longest)
{
    for (size_t i = 0; i < pool->runner->placement.jobs; i++) {
        const struct slot *slot = &pool->slots[i];
        struct live live;
        if (!slot->busy)
            continue;
        text_add(text, "%s%s", text->size > 0 ? ", " : "", run_of(pool, slot)->label);
        if (hear(pool, slot, &live)) {
            if (live.task > 0)
                text_add(text, " (task %lld of %lld)", (long long)live.task, (long long)live.tasks);
            else
                text_add(text, " (before task 1 of %lld)", (long long)live.tasks);
            tally_hear(&pool->tally, slot->run, live.done);
            *longest = fmax(*longest, live.seconds_left);
        }
    }
}

static void report(struct pool *pool)
{
    SCOPED(text_free) struct text children = {0};
    double longest = 0; /* of the time left that children report */
    add_children(pool, &children, &longest);
    const char *activity = pool->stopping ? "stop" : children.data != NULL ? "sweep" : "wait";
    if (children.data == NULL)
        add_waited_for(pool, &children);
    if (children.data != NULL)
        progress_report(pool->runner->progress, &(struct progress_state){.activity = activity,
                                                                         .subject = children.data,
                                                                         .step = pool->done,
                                                                         .steps = pool->work,
                                                                         .work = &pool->tally.work,
                                                                         .at_least = longest});
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

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}

static status run_pool(struct pool *pool, struct error *error)
{
    for (size_t looks = 0;; looks++) {
        size_t busy = look(pool);
        bool due = looks % LOOKS_PER_REPORT == 0;
        if (due || (busy == 0 && pool->elsewhere == 0))
            look_elsewhere(pool);
        bool left = pool->elsewhere > 0 || pool->next < pool->runner->sweep->run_count;
        if (busy == 0 && (pool->stopping || !left))
            break;
        if (due)
            report(pool);
        pause_briefly();
    }
    progress_end(pool->runner->progress);
    if (!pool->stopping)
        return OK;
    return error_set(error, ERROR_STOPPED, "stopped after %zu of %zu runs; the same command goes on from here",
                     pool->done, pool->work);
}

/* Two processes of one sweep would compete for every run, so the second one waits and computes what the first one
 * leaves. A file system without locks is no reason to stop. */
static status lock_folder(const struct sweep_runner *runner, int *lock, struct error *error)
{
    const char *folder = runner->sweep->folder;
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return error_errno(error, errno, "%s: cannot open the sweep's folder", folder);
    for (bool announced = false; flock(*lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; announced = true) {
        if (!announced)
            log_info(runner->log, "%s: waiting for another process that is running this sweep", folder);
        if (stop_requested(runner->stop)) {
            close(*lock);
            return error_set(error, ERROR_STOPPED, "stopped while another process was running the same sweep");
        }
        progress_report(runner->progress, &(struct progress_state){.activity = "wait", .subject = "the same sweep"});
        pause_briefly();
    }
    progress_end(runner->progress);
    return OK;
}

/* Runs are weighted by their remaining core seconds, or equally if some of these are unknown. */
static void expect_runs(struct pool *pool)
{
    const struct sweep *sweep = pool->runner->sweep;
    bool known = true;
    for (size_t i = 0; i < sweep->run_count; i++)
        known = known && sweep->configurations[sweep->runs[i].configuration].cost.core_seconds > 0;
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct sweep_run *run = &sweep->runs[i];
        double all = sweep->configurations[run->configuration].cost.core_seconds,
               left = fmax(all - run->spent, all / 100);
        if (sweep_wants(run) || is_waited_for(run))
            tally_expect(&pool->tally, i, known ? left : 1, run->standing != SWEEP_MISSING);
    }
}

static status run_all(struct pool *pool, struct error *error)
{
    const struct sweep_runner *runner = pool->runner;
    pool->slots = xcalloc(runner->placement.jobs, sizeof *pool->slots);
    pool->tries = xcalloc(runner->sweep->run_count, sizeof *pool->tries);
    pool->taken = xcalloc(runner->sweep->run_count, sizeof *pool->taken);
    tally_open(&pool->tally, runner->sweep->run_count);
    status result = store_open(&pool->store, runner->sweep->database, STORE_READ, error);
    if (result == OK) {
        expect_runs(pool);
        database_set_patience(store_database(pool->store), PATIENCE_MS); /* read the states again under the lock */
        stop_hold(runner->stop);
        result = run_pool(pool, error);
        if (result != ERROR_STOPPED)
            stop_release(runner->stop);
    }
    store_close(pool->store);
    tally_close(&pool->tally);
    free(pool->slots);
    free(pool->tries);
    free(pool->taken);
    return result;
}

status sweep_runner_run(const struct sweep_runner *runner, struct error *error)
{
    struct sweep *sweep = runner->sweep;
    struct pool pool = {.runner = runner, .work = sweep_work(sweep)};
    int lock;
    for (size_t i = 0; i < sweep->run_count; i++)
        pool.work += is_waited_for(&sweep->runs[i]);
    if (pool.work == 0)
        return OK;
    TRY(sweep_make_folder(sweep, "logs", error));
    TRY(lock_folder(runner, &lock, error));
    status result = run_all(&pool, error);
    close(lock);
    return result;
}
