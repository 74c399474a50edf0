/* A sweep: the runs of every combination of a grid under every seed, and the state of each.
 *
 *     struct sweep *sweep;
 *     TRY(sweep_open(&sweep, &(struct sweep_request){.suite = "mini", .words = words, .count = n}, error));
 *     TRY(sweep_look(sweep, store, error));                  // sweep->runs[i].standing, from the results
 *     ... sweep_cost.h, sweep_tables.h, sweep_runner.h, slurm.h ...
 *     sweep_close(sweep);
 *
 * A run is one configuration under one seed; the results identify it by (suite hash, seed).
 */
#pragma once

#include <stdint.h>

#include "core/digest.h"
#include "harness/sweep/grid.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"
#include "results/store.h"

enum sweep_standing {
    SWEEP_MISSING,    /* never started */
    SWEEP_UNFINISHED, /* stopped, failed or died; can be resumed */
    SWEEP_ELSEWHERE,  /* another process is working on it */
    SWEEP_FINISHED
};
enum { SWEEP_STANDINGS = SWEEP_FINISHED + 1 };

/* The cost of a run of a configuration. */
struct sweep_cost {
    double core_seconds; /* of one core, or of one GPU; NAN: unknown */
    double memory, disk; /* bytes; 0: unknown */
    bool measured;       /* in earlier runs, not estimated */
};

struct sweep_configuration {
    size_t combination;      /* of the grid */
    uint64_t unread;         /* bits of the axes that it does not read */
    char *label;             /* "policy=none every=50": the axes with several values that it reads; "": none */
    char hash[DIGEST_SIZE];  /* of settings and inputs (inputs.h) */
    char asked[DIGEST_SIZE]; /* of settings and paths, not contents */
    size_t first, runs;      /* in sweep->runs */
    size_t threads;          /* set by the suite; 0: unset */
    size_t gpus;             /* per run, if it computes on GPUs */
    bool shares;             /* the suite does not set run.cache: runs on this machine share a cache on disk */
    bool moves;              /* the suite does not set run.device: any GPU of this machine may be used */
    struct sweep_cost cost;
};

struct sweep_run {
    size_t configuration;
    uint64_t seed;
    char *label; /* "policy=none every=50 seed=1" */
    char *log;   /* the log of its output, below the sweep's folder */
    enum sweep_standing standing;
    int64_t row;   /* in the results; 0: none */
    double spent;  /* core seconds already spent on it */
    char *failure; /* why it is not finished, "exit status 1: …"; NULL: unknown */
};

struct sweep {
    char *suite; /* as given: a name or a file */
    struct grid grid;
    struct sweep_configuration *configurations; /* in the grid's order */
    size_t
        configuration_count; /* grid.combinations, without those that differ from another in keys that they do not read */
    char *left_out;          /* "policy=none does not read merge.every: 5 runs instead of 10"; NULL: none is left out */
    struct sweep_run *runs; /* by configuration, then seed */
    size_t run_count;
    size_t gpus;                 /* of this machine, if the runs use them; otherwise 0 */
    char *database, *run_folder; /* run.database, run.folder */
    char *folder; /* of its files: RUN_FOLDER/sweep-SUITE-DIGEST, the same for the same runs in the same order */
};

struct sweep_request {
    const char *suite;
    const char *const *words; /* [count], the axes */
    size_t count;
    enum grid_values values;
    struct progress *progress; /* while reading the inputs of the runs; NULL: none */
    const struct stop *stop;   /* NULL: never */
};

/* Reads and checks every configuration. ERROR_ARGUMENT for a suite that a run would refuse, for two configurations that
 * compute the same, and for axes that no configuration reads. If the inputs of a configuration cannot be read, its runs
 * count as missing and will report why. Digests of weights and images are stored in the cache folder; nothing else is
 * written. */
status sweep_open(struct sweep **sweep, const struct sweep_request *request, struct error *error);
void sweep_close(struct sweep *sweep); /* NULL is allowed */

/* The value of an axis; NULL for the seeds' axis, and where the configuration does not read it. Borrowed. */
const char *sweep_value(const struct sweep *sweep, size_t axis, size_t configuration);

/* Reads the state of every run from a database; store NULL: none yet. */
status sweep_look(struct sweep *sweep, struct store *store, struct error *error);

status sweep_look_at(struct sweep *sweep, size_t run, struct store *store, struct error *error); /* of one run */

size_t sweep_count(const struct sweep *sweep, enum sweep_standing standing);

/* Whether a run is missing or unfinished, and the number of such runs. */
bool sweep_wants(const struct sweep_run *run);
size_t sweep_work(const struct sweep *sweep);

/* The suite of a configuration, with all its seeds. The caller destroys it. */
status sweep_suite(const struct sweep *sweep, size_t configuration, struct suite **suite, struct error *error);

/* Creates the sweep's folder, and this one below it. */
status sweep_make_folder(const struct sweep *sweep, const char *name, struct error *error);

/* Appends the arguments of `mtil` for a run: "run", suite, overrides, its seed. */
void sweep_arguments(const struct sweep *sweep, size_t run, struct strings *arguments);
