/* Where runs that go on at the same time take their place: how many, how many threads each, and which GPU.
 *
 *     struct machine machine = machine_look();
 *     struct placement placement = placement_choose(&machine, &(struct placement_wish){.runs = 40, .memory = bytes});
 *     for (size_t slot = 0; slot < placement.jobs; slot++)
 *         placement_threads(&placement, slot) …                       // of the run in this slot
 */
#ifndef MTIL_HARNESS_SWEEP_PLACEMENT_H
#define MTIL_HARNESS_SWEEP_PLACEMENT_H

#include <stddef.h>

struct machine {
    size_t cores;  /* this process may use */
    double memory; /* bytes that are free; 0: unknown */
    size_t gpus;   /* that the runs compute on; 0: on the cores */
};

struct machine machine_look(void); /* cores and memory; what the runs compute on is their suite's to say */

struct placement_wish {
    size_t runs;    /* to be placed */
    size_t jobs;    /* at a time; 0: as many as the machine has room for */
    size_t threads; /* of each; 0: the cores are shared out */
    size_t gpus;    /* that a run takes together; 0: one */
    double memory;  /* bytes a run needs; 0: unknown */
};

struct placement {
    size_t jobs;                 /* slots, at least 1 */
    size_t cores, gpus, threads; /* as the machine's and the wish's */
    size_t gpus_each;            /* of a run, next to each other; at least 1 */
};

/* A wish for a number of jobs is granted; without one there are as many as cores and four fifths of the memory
 * carry: one core each does most, because no run then waits for its own threads. With GPUs there is one run on each, or on each so many. */
struct placement placement_choose(const struct machine *machine, const struct placement_wish *wish);

/* At least 1; the slots' threads add up to the cores where there are no more jobs than cores and no wish. */
size_t placement_threads(const struct placement *placement, size_t slot);

/* Number of the GPU of a slot, the first of its GPUs; 0 where there is none. */
size_t placement_gpu(const struct placement *placement, size_t slot);

/* How many core seconds a run in slot 0 gets done in a second; on a GPU a second is one, whatever the threads. */
double placement_speed(const struct placement *placement);

#endif
