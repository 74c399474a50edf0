/* A sweep: the runs of every combination of a grid and every seed; which of them are there, and what is left.
 *
 *     struct sweep *sweep;
 *     TRY(sweep_open(&sweep, &(struct sweep_request){.suite = "mini", .words = words, .count = n}, error));
 *     TRY(sweep_look(sweep, store, error));                  // sweep->runs[i].standing, from the results
 *     ... sweep_cost.h, sweep_tables.h, sweep_runner.h, slurm.h ...
 *     sweep_close(sweep);
 *
 * A run is one configuration under one seed, what `mtil run` computes and the results know by (suite hash, seed).
 */
#ifndef MTIL_HARNESS_SWEEP_SWEEP_H
#define MTIL_HARNESS_SWEEP_SWEEP_H

#include <stdint.h>

#include "core/digest.h"
#include "harness/sweep/grid.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"
#include "results/store.h"

enum sweep_standing {
    SWEEP_MISSING,    /* never begun */
    SWEEP_UNFINISHED, /* begun; stopped, failed or died: goes on where it was */
    SWEEP_ELSEWHERE,  /* another process is at it */
    SWEEP_FINISHED
};
enum { SWEEP_STANDINGS = SWEEP_FINISHED + 1 };

/* What a run of a configuration takes. */
struct sweep_cost {
    double core_seconds; /* of one core, or of one GPU; NAN: unknown */
    double memory, disk; /* bytes; 0: unknown */
    bool measured;       /* in runs of the past, not estimated */
};

struct sweep_configuration {
    char *label;             /* "policy=none every=50": the axes that have several values; "" when none has */
    char hash[DIGEST_SIZE];  /* of settings and inputs (inputs.h) */
    char asked[DIGEST_SIZE]; /* of settings and paths, whatever lies there */
    size_t first, runs;      /* in sweep->runs */
    size_t threads;          /* that the suite asks for; 0: unset */
    size_t gpus;             /* that a run of it takes, where it computes on GPUs */
    bool shares;             /* the suite leaves run.cache open: runs on this machine share it, as files */
    bool moves;              /* it leaves run.device open: any GPU of this machine will do */
    struct sweep_cost cost;
};

struct sweep_run {
    size_t configuration;
    uint64_t seed;
    char *label; /* "policy=none every=50 seed=1" */
    char *log;   /* what it prints goes here, below the sweep's folder */
    enum sweep_standing standing;
    int64_t row;   /* in the results; 0: none */
    double spent;  /* core seconds already in it */
    char *failure; /* why it is not finished, "exit status 1: …"; NULL: nothing is known */
};

struct sweep {
    char *suite; /* as given: a name or a file */
    struct grid grid;
    struct sweep_configuration *configurations; /* [grid.combinations], in the grid's order */
    struct sweep_run *runs;                     /* by configuration, then seed */
    size_t run_count;
    size_t gpus;                 /* of this machine, where the runs are to use them; else 0 */
    char *database, *run_folder; /* run.database, run.folder */
    char *folder; /* of its own files: RUN_FOLDER/sweep-SUITE-DIGEST, the same for the same runs in the same order */
};

struct sweep_request {
    const char *suite;
    const char *const *words; /* [count], the axes */
    size_t count;
    enum grid_values values;
    struct progress *progress; /* of reading what the runs are computed from; NULL: none */
    const struct stop *stop;   /* NULL: nobody asks for one */
};

/* Reads and checks every configuration: whatever a run would refuse of its suite is ERROR_ARGUMENT here, and so are two
 * configurations that compute the same. Where what a configuration is computed from cannot be read, its runs are taken as
 * missing: they say why themselves. What is found in files of weights and images is kept in the cache's folder;
 * nothing else is written. */
status sweep_open(struct sweep **sweep, const struct sweep_request *request, struct error *error);
void sweep_close(struct sweep *sweep); /* NULL is allowed */

/* Every run's standing in a database; store NULL: there is none yet. */
status sweep_look(struct sweep *sweep, struct store *store, struct error *error);

status sweep_look_at(struct sweep *sweep, size_t run, struct store *store, struct error *error); /* one run's */

size_t sweep_count(const struct sweep *sweep, enum sweep_standing standing);

/* Whether a run is missing or to go on with, and how many are. */
bool sweep_wants(const struct sweep_run *run);
size_t sweep_work(const struct sweep *sweep);

/* The suite of a configuration, with all its seeds. The caller destroys it. */
status sweep_suite(const struct sweep *sweep, size_t configuration, struct suite **suite, struct error *error);

/* The arguments of `mtil` for a run: "run", suite, overrides, its seed, then those of more (ended by NULL), then NULL.
 * The caller frees with sweep_arguments_free. */
status sweep_arguments(const struct sweep *sweep, size_t run, const char *const *more, char ***arguments,
                       struct error *error);
void sweep_arguments_free(char **arguments); /* NULL is allowed */

#endif
