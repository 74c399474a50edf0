/* A sweep on a cluster: a Slurm job array with a task per run, and a job that joins their databases when all have ended.
 *
 *     struct slurm_options options = {.request = &request, .partition = "gpu", .cpus = 8};
 *     char job[SLURM_JOB];
 *     TRY(slurm_submit(sweep, &options, job, error));                      // writes FOLDER/batch.sh, FOLDER/collect.sh
 *
 * Both scripts lie in the sweep's folder, to be read, changed and submitted by hand. Every run writes a database of its own
 * (sweep_parts.h): SQLite's files may be written from several processes, but not from several machines. The folder is to be
 * on a file system that all of them share.
 */
#ifndef MTIL_HARNESS_SWEEP_SLURM_H
#define MTIL_HARNESS_SWEEP_SLURM_H

#include "harness/sweep/sweep.h"

enum { SLURM_JOB = 64 };

/* Words of sbatch's are as sbatch takes them; NULL or 0: not given. */
struct slurm_options {
    const struct sweep_request *request; /* of the sweep, for the job that joins */
    const char *partition, *time, *memory;
    const char *arguments; /* more of sbatch's, separated by spaces */
    size_t cpus;           /* per run */
    size_t jobs;           /* at a time, at most */
};

/* Submits what is missing or to go on with; job is the array's number. ERROR_BUSY while an earlier submission of the same
 * sweep is in the queue; what sbatch refuses is ERROR_IO with its words. */
status slurm_submit(const struct sweep *sweep, const struct slurm_options *options, char job[SLURM_JOB],
                    struct error *error);

#endif
