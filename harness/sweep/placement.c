#include "harness/sweep/placement.h"

#include "core/alloc.h"
#include "core/threads.h"

struct machine machine_look(void)
{
    return (struct machine){.cores = threads_available(), .memory = (double)memory_available("")};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number of runs that fit into memory; all of them when sizes are unknown. */
static size_t fitting(const struct machine *machine, const struct placement_request *request)
{
    if (request->memory <= 0 || machine->memory <= 0)
        return request->runs;
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
