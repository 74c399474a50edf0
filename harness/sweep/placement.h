/* Placement of runs that share a machine: how many at a time, how many threads each, and which GPU.
 *
 *     struct machine machine = machine_look();
 *     struct placement placement = placement_choose(&machine, &(struct placement_request){.runs = 40, .memory = bytes});
 *     for (size_t slot = 0; slot < placement.jobs; slot++)
 *         placement_threads(&placement, slot) …                       // of the run in this slot
 */
#pragma once

#include <stddef.h>

struct machine {
    size_t cores;  /* that this process may use */
    double memory; /* bytes that are free; 0: unknown */
    size_t gpus;   /* that runs compute on; 0: they compute on the cores */
};

struct machine machine_look(void); /* cores and memory; gpus depend on the suite */

struct placement_request {
    size_t runs;    /* to be placed */
    size_t jobs;    /* at a time; 0: as many as the machine can hold */
    size_t threads; /* of each run; 0: the cores are divided */
    size_t gpus;    /* per run; 0: one */
    double memory;  /* bytes a run needs; 0: unknown */
};

struct placement {
    size_t jobs;                 /* slots, at least 1 */
    size_t cores, gpus, threads; /* copied from machine and request */
    size_t gpus_each;            /* of a run, with consecutive numbers; at least 1 */
};

/* Takes the requested number of jobs. Without one: as many as there are cores, limited by four fifths of the free memory;
 * one core each has the highest throughput, because no run then waits for its own threads. With GPUs: one run per GPU, or
 * per request->gpus of them. */
struct placement placement_choose(const struct machine *machine, const struct placement_request *request);

/* At least 1; the slots' threads add up to the cores when there are at most as many jobs as cores and no thread count was requested. */
size_t placement_threads(const struct placement *placement, size_t slot);

/* Number of the GPU of a slot, the first of its GPUs; 0 where there is none. */
size_t placement_gpu(const struct placement *placement, size_t slot);

/* Core seconds of work that the run in slot 0 does per second; 1 on a GPU. */
double placement_speed(const struct placement *placement);
