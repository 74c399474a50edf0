#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/threads.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "harness/sweep/sweep.h"

struct machine machine_look(void)
{
    return (struct machine){.cores = threads_available(), .memory = (double)memory_available("")};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number of runs that fit into memory; all of them when sizes are unknown. GPUs have one each: where none fits, one is tried. */
static size_t fitting(const struct machine *machine, const struct placement_request *request)
{
    if (request->memory <= 0 || machine->memory <= 0)
        return request->runs;
    if (machine->gpus > 0)
        return request->memory <= machine->memory ? request->runs : 1;
    double count = 0.8 * machine->memory / request->memory;
    return count < (double)request->runs ? (size_t)count : request->runs;
}

struct placement placement_choose(const struct machine *machine, const struct placement_request *request)
{
    size_t threads = request->threads > 0 ? request->threads : 1, each = request->gpus > 0 ? request->gpus : 1,
           places = machine->gpus > 0 ? machine->gpus / each : machine->cores / threads;
    size_t jobs = request->jobs > 0 ? request->jobs : least(places, fitting(machine, request));
    jobs = least(jobs, request->runs);
    return (struct placement){.jobs = jobs > 0 ? jobs : 1,
                              .cores = machine->cores,
                              .gpus = machine->gpus,
                              .threads = request->threads,
                              .gpus_each = each};
}

size_t placement_threads(const struct placement *placement, size_t slot)
{
    if (placement->threads > 0)
        return placement->threads;
    size_t share = placement->cores / placement->jobs + (slot < placement->cores % placement->jobs ? 1 : 0);
    return share > 0 ? share : 1;
}

size_t placement_gpu(const struct placement *placement, size_t slot)
{
    size_t places = placement->gpus / placement->gpus_each;
    return places > 0 ? slot % places * placement->gpus_each : 0;
}

double placement_speed(const struct placement *placement)
{
    return placement->gpus > 0 ? 1 : (double)placement_threads(placement, 0);
}

/* --- The past --- */

static status read_past(struct sweep *sweep, struct store *store, size_t configuration, struct error *error)
{
    struct sweep_configuration *c = &sweep->configurations[configuration];
    size_t finished = 0;
    double core_seconds = 0;
    for (size_t i = c->first; i < c->first + c->runs; i++) {
        struct sweep_run *run = &sweep->runs[i]; /* spent: seconds on one core, or on the GPUs */
        struct statement *row;
        if (run->row == 0)
            continue;
        TRY(database_row(store_database(store),
                         "SELECT total(seconds), max(peak_bytes), (SELECT value FROM settings WHERE run = ?1 AND key = "
                         "'run.threads') FROM timings WHERE run = ?1",
                         VALUES(value_integer(run->row)), &row, error));
        double threads = sweep->gpus > 0 ? 1 : (double)statement_integer(row, 2);
        run->spent = statement_value(row, 0).real * (threads > 0 ? threads : (double)threads_available());
        if (sweep->gpus == 0) /* it is the host's */
            c->cost.memory = fmax(c->cost.memory, (double)statement_integer(row, 1));
        statement_close(row);
        if (run->standing == SWEEP_FINISHED) {
            core_seconds += run->spent;
            finished++;
        }
    }
    c->cost.measured = finished > 0;
    if (finished > 0)
        c->cost.core_seconds = core_seconds / (double)finished;
    return OK;
}

/* --- The future --- */

static bool has_work(const struct sweep *sweep, const struct sweep_configuration *c)
{
    for (size_t i = c->first; i < c->first + c->runs; i++)
        if (sweep_wants(&sweep->runs[i]))
            return true;
    return false;
}

/* Whether two configurations differ only in merge.*. */
static bool same_cost(const struct sweep *sweep, size_t a, size_t b)
{
    for (size_t i = 0; i < sweep->grid.count; i++) {
        const struct grid_axis *axis = &sweep->grid.axes[i];
        const char *x = sweep_value(sweep, i, a), *y = sweep_value(sweep, i, b);
        if (strncmp(axis->key, "merge.", strlen("merge.")) != 0 && x != y &&
            (x == NULL || y == NULL || strcmp(x, y) != 0))
            return false;
    }
    return true;
}

/* The cost of another configuration with the same cost, preferably a measured one; NULL: none. */
static const struct sweep_cost *known_cost(const struct sweep *sweep, size_t configuration)
{
    const struct sweep_cost *known = NULL;
    for (size_t i = 0; i < sweep->configuration_count; i++) {
        const struct sweep_cost *cost = &sweep->configurations[i].cost;
        if (isnan(cost->core_seconds) || (known != NULL && known->measured >= cost->measured) ||
            !same_cost(sweep, i, configuration))
            continue;
        known = cost;
    }
    return known;
}

static status estimate_configuration(struct sweep *sweep, size_t configuration, struct rates *rates,
                                     struct error *error)
{
    struct sweep_configuration *c = &sweep->configurations[configuration];
    double threads = sweep->gpus > 0 ? 1 : c->threads > 0 ? (double)c->threads : (double)threads_available();
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    SCOPED(run_close_at) struct run *run = NULL;
    TRY(sweep_suite(sweep, configuration, &suite, error));
    status result = run_open(&run, suite, sweep->runs[c->first].seed, NULL, error);
    NEXT(result, rates_measure(rates, run, error));
    if (result == OK && run->model.clip != NULL) { /* another program's work is unknown */
        const struct estimate estimate = workload_estimate(run);
        c->cost = (struct sweep_cost){.core_seconds = threads * rates_seconds(rates, &estimate),
                                      .memory = fmax(c->cost.memory, estimate.memory),
                                      .disk = estimate.disk};
    }
    return result;
}

status sweep_cost_estimate(struct sweep *sweep, struct store *store, const struct log *log, struct progress *progress,
                           struct error *error)
{
    size_t count = sweep->configuration_count;
    struct rates rates = {0};
    for (size_t i = 0; store != NULL && i < count; i++)
        TRY(read_past(sweep, store, i, error));
    for (size_t i = 0; i < count; i++) {
        struct sweep_configuration *c = &sweep->configurations[i];
        if (!isnan(c->cost.core_seconds) || !has_work(sweep, c))
            continue;
        const struct sweep_cost *known = known_cost(sweep, i);
        struct error reason;
        if (known != NULL) {
            c->cost = *known;
            continue;
        }
        progress_report(progress, &(struct progress_state){.activity = "estimate", .step = i + 1, .steps = count});
        if (estimate_configuration(sweep, i, &rates, &reason) != OK)
            log_warn(log, "%s%sno estimate: %s", c->label, *c->label != 0 ? ": " : "", reason.message);
    }
    progress_end(progress);
    return OK;
}

double sweep_cost_left(const struct sweep *sweep, const struct placement *placement)
{
    double sum = 0, longest = 0, speed = placement_speed(placement);
    double places = (double)placement->cores;
    if (placement->gpus > 0) {
        size_t groups = placement->gpus / placement->gpus_each;
        places = fmax((double)groups, 1);
    }
    double used = fmin(places, speed * (double)placement->jobs);
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct sweep_run *run = &sweep->runs[i];
        if (!sweep_wants(run))
            continue;
        double left = sweep->configurations[run->configuration].cost.core_seconds - run->spent;
        if (isnan(left))
            return NAN;
        sum += fmax(left, 0);
        longest = fmax(longest, left);
    }
    return fmax(sum / used, longest / speed);
}

double sweep_cost_memory(const struct sweep *sweep)
{
    double most = 0;
    for (size_t i = 0; i < sweep->configuration_count; i++)
        if (has_work(sweep, &sweep->configurations[i]))
            most = fmax(most, sweep->configurations[i].cost.memory);
    return most;
}

double sweep_cost_disk(const struct sweep *sweep)
{
    double sum = 0;
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep_wants(&sweep->runs[i]))
            sum += sweep->configurations[sweep->runs[i].configuration].cost.disk;
    return sum;
}
