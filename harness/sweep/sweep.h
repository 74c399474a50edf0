/* A sweep: the runs of every combination of a grid under every seed, and the state of each.
 *
 *     struct sweep *sweep;
 *     TRY(sweep_open(&sweep, &(struct sweep_request){.suite = "mini", .words = words, .count = n}, error));
 *     TRY(sweep_look(sweep, store, error));                  // sweep->runs[i].standing, from the results
 *     TRY(sweep_cost_estimate(sweep, store, log, progress, error));
 *     struct placement placement = placement_choose(&machine, &request);     // request.memory: sweep_cost_memory(sweep)
 *     sweep_tables_plan(sweep, &placement, &table);
 *     struct sweep_runner runner = {.sweep = sweep, .placement = placement, .log = log, .progress = progress, .stop = stop};
 *     TRY(sweep_runner_run(&runner, error));                 // or slurm_submit
 *     TRY(sweep_tables_results(sweep, store, &results, error));
 *     sweep_close(sweep);
 *
 * A run is one configuration under one seed; the results identify it by (suite hash, seed).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/digest.h"
#include "core/scope.h"
#include "core/status.h"
#include "harness/sweep/grid.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"
#include "results/store.h"
#include "results/table.h"

/* Placement of runs that share a machine: how many at a time, how many threads each, and which GPU.
 *
 *     struct machine machine = machine_look();
 *     struct placement placement = placement_choose(&machine, &(struct placement_request){.runs = 40, .memory = bytes});
 *     for (size_t slot = 0; slot < placement.jobs; slot++)
 *         placement_threads(&placement, slot) …                       // of the run in this slot
 */

struct machine {
    size_t cores;  /* that this process may use */
    double memory; /* bytes that are free, or with GPUs, that the smallest has; 0: unknown */
    size_t gpus;   /* that runs compute on; 0: they compute on the cores */
};

struct machine machine_look(void); /* cores and their memory; gpus depend on the suite */

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

/* Takes the requested number of jobs. Without one, it takes as many as there are cores, limited by four fifths of the
 * free memory; one core each has the highest throughput, because no run then waits for its own threads. With GPUs it
 * takes one run per GPU, or per request->gpus of them. */
struct placement placement_choose(const struct machine *machine, const struct placement_request *request);

/* The threads of a slot, at least 1. They add up to the cores when there are at most as many jobs as cores and no
 * thread count was requested. */
size_t placement_threads(const struct placement *placement, size_t slot);

/* Number of the GPU of a slot, the first of its GPUs; 0 where there is none. */
size_t placement_gpu(const struct placement *placement, size_t slot);

/* Core seconds of work that the run in slot 0 does per second; 1 on a GPU. */
double placement_speed(const struct placement *placement);

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
    bool allows_commands;
    struct grid grid;
    struct sweep_configuration *configurations; /* in the grid's order */
    size_t
        configuration_count; /* grid.combinations, without those that differ from another in keys that they do not read */
    char *left_out;          /* "policy=none does not read merge.every: 5 runs instead of 10"; NULL: none is left out */
    struct sweep_run *runs; /* by configuration, then seed */
    size_t run_count;
    size_t gpus;                 /* of this machine, if the runs use them; otherwise 0 */
    double gpu_memory;           /* bytes of the smallest */
    char *database, *run_folder; /* run.database, run.folder */
    char *folder; /* of its files: RUN_FOLDER/sweep-SUITE-DIGEST, the same for the same runs in the same order */
};

struct sweep_request {
    const char *suite;
    const char *const *words; /* [count], the axes */
    size_t count;
    bool allows_commands; /* runs get --allow-commands */
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
SCOPED_POINTER(struct sweep, sweep_close)

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

/* --- cost.c: measured in finished runs if there are some, otherwise estimated from the operations --- */

/* Fills the cost of the configurations, and what was spent on the runs. Configurations that differ only in merge.*
 * are assumed to cost the same. One that cannot be opened (missing data or weights) has no cost, and a warning says
 * why. store may be NULL. */
status sweep_cost_estimate(struct sweep *sweep, struct store *store, const struct log *log, struct progress *progress,
                           struct error *error);

/* Seconds until all runs are finished; NAN when a configuration with work left has no cost. */
double sweep_cost_left(const struct sweep *sweep, const struct placement *placement);

/* The largest memory of a run with work left, and the disk space of all of them; bytes, 0: unknown. */
double sweep_cost_memory(const struct sweep *sweep);
double sweep_cost_disk(const struct sweep *sweep);

/* --- tables.c: the plan and the results; the caller frees the tables, after a failure too --- */

/* A row per configuration: axes, runs by standing. Core seconds are converted to the time of a run with the threads
 * of the placement. */
void sweep_tables_plan(const struct sweep *sweep, const struct placement *placement, struct table *table);

/* Axes, and metrics as means over the finished seeds. "±" is the half-width of the 95% interval of the mean
 * (Student), over at least two seeds. Configurations without a finished run have empty cells. Of rows of classifiers,
 * on one dataset or several, it is the paper's table of all runs of their suite (results/query.h). */
status sweep_tables_results(const struct sweep *sweep, struct store *store, struct table *table, struct error *error);

/* --- runner.c: the missing runs as child processes (child.h), as many at a time as the placement allows --- */

struct sweep_runner {
    struct sweep *sweep;
    struct placement placement;
    const struct log *log;
    struct progress *progress;
    struct stop *stop;
};

/* The database must exist. The reason of a failed run is in `failure`; the others continue and the result is OK. Waits
 * for runs of other processes, and for another process with the same sweep, and resumes what they leave unfinished. A
 * stop request is passed on to the children, which are waited for (ERROR_STOPPED). */
status sweep_runner_run(const struct sweep_runner *runner, struct error *error);

/* The progress of a sweep's runs, in amounts of work that never decrease, whatever runs report.
 *
 *     struct tally tally;
 *     tally_open(&tally, sweep->run_count);
 *     tally_expect(&tally, run, seconds, false);      // a run to be done; true: it has begun before
 *     tally_hear(&tally, run, 0.4);                   // it reports the share of its work that is done
 *     tally_end(&tally, run);                         // the run has ended
 *     progress … tally.work …
 *     tally_close(&tally);
 *
 * Work of a resumed run that was done before its first report counts neither as done nor as left.
 */

struct tally {
    struct tally_run *runs;
    struct progress_work work; /* of one kind */
};

void tally_open(struct tally *tally, size_t runs);
void tally_close(struct tally *tally);

void tally_expect(struct tally *tally, size_t run, double amount, bool begun);
void tally_hear(struct tally *tally, size_t run, double done);
void tally_end(struct tally *tally, size_t run); /* also more than once */

/* --- slurm.c: runs that write one database each, which are then joined into the sweep's --- */

enum sweep_parts {
    PARTS_GO_ON, /* unfinished runs are resumed in their own databases, which hold their state */
    PARTS_END    /* runs start or resume in the sweep's database; their own count only if finished or running */
};

/* After sweep_look: sets the state of runs that are not finished in the sweep's database. A finished run without a
 * row there is to be collected. With PARTS_GO_ON, `failure` is the last line of the log of a run that is neither
 * finished nor running. */
status sweep_parts_look(struct sweep *sweep, enum sweep_parts parts, struct error *error);

/* Joins the runs to be collected; sweep_look then finds them. */
status sweep_parts_collect(const struct sweep *sweep, const struct log *log, struct error *error);

/* Job arrays with a task per run, as many as the cluster's MaxArraySize asks for, and a job that joins their databases when all
 * have ended. */

/* partition, time, memory and arguments are passed to sbatch unchanged; NULL or 0: not given. */
struct slurm_options {
    const struct sweep_request *request; /* of the sweep, for the job that joins */
    const char *partition, *time, *memory;
    const char *arguments; /* more arguments, separated by spaces */
    size_t cpus;           /* per run */
    size_t jobs;           /* at a time, at most */
};

/* Submits missing and unfinished runs by the scripts batch.sh (batch-1000.sh, … of the runs from there on) and collect.sh, which stay in the sweep's folder and
 * can be changed and submitted by hand. Every run writes its own database, because an SQLite file may be written from
 * several processes, but not from several machines. The folder must be on a file system that all of them share. jobs
 * are the numbers of the arrays, "42" or "42,43". ERROR_BUSY while an earlier submission of the same sweep is queued; ERROR_IO with its
 * message if sbatch fails. */
status slurm_submit(const struct sweep *sweep, const struct slurm_options *options, struct text *jobs,
                    struct error *error);
